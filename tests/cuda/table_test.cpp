// The operator table on device cuda: values and gradients against the references that the CPU is
// held against, in every layout.
#include "cuda/flavour.h"
#include "ops/compare.h"
#include "ops/walk_rows.h"
#include "tapegrad/autograd/engine.h"

using namespace tg;
using namespace tg::test;

namespace {

Tensors moved(const Tensors& x, Tensor (*layout)(const Tensor&) = nullptr) {
  Tensors there;
  for (const Tensor& t : x) {
    Tensor y = t.detach().to(kGpu);
    if (layout) y = layout(y);
    there.push_back(t.requires_grad() ? y.detach().requires_grad_() : y);
  }
  return there;
}

void check_values(const Family& family, const Row& row, size_t s, DType dtype, const Tensors& ys) {
  const std::string kind = reference_kind(dtype);
  for (size_t k = 0; k < ys.size(); ++k) {
    Tensor r = reference(family.name, key(row, s, kind + "y" + std::to_string(k)));
    REQUIRE(r.defined());
    CHECK(difference(ys[k].detach().to(kCpuDevice), r, precision_of(ys[k], dtype), row.ulps) == "");
  }
}

void check_gradients(const Family& family, const Row& row, size_t s, DType dtype, const Tensors& x,
                     const Tensors& outs) {
  Tensors ys, dys;
  for (size_t k = 0; k < outs.size(); ++k)
    if (outs[k].requires_grad()) {
      ys.push_back(outs[k]);
      dys.push_back(make_gradient(outs[k].detach().to(kCpuDevice), int(k)).to(kGpu));
    }
  if (ys.empty()) return;
  backward(ys, dys);
  for (size_t k = 0; k < x.size(); ++k) {
    if (!x[k].requires_grad()) continue;
    Tensor r = reference(family.name, key(row, s, "dx" + std::to_string(k)));
    REQUIRE(r.defined());
    INFO("gradient of input " << k);
    if (x[k].grad().defined()) CHECK(x[k].grad().device() == kGpu);
    Tensor g = x[k].grad().defined() ? x[k].grad().to(kCpuDevice) : zeros(x[k].shape(), dtype);
    CHECK(difference(g, r, dtype, 4 * row.ulps) == "");
  }
}

void check_sample(const Family& family, const Row& row, size_t s) {
  const Sample& sample = row.samples[s];
  const bool gradient = differentiable(row);
  for (DType dtype : row.dtypes) {
    if (is_low(dtype) && opted_out(row, Part::low_precision)) continue;
    if (!says_something(sample, dtype) || sample.torch.empty()) continue;
    INFO(name_of(dtype) << ": " << sample.torch);
    for (auto layout : {(Tensor(*)(const Tensor&)) nullptr, reversed, strided}) {
      if (layout && (opted_out(row, Part::layouts) || is_low(dtype))) continue;
      Tensors x = moved(make_inputs(sample, dtype, gradient && is_floating(dtype)), layout);
      Tensors ys = run(sample, x);
      check_values(family, row, s, dtype, ys);
      if (gradient && is_floating(dtype)) check_gradients(family, row, s, dtype, x, ys);
    }
  }
}

}  // namespace

TEST_CASE("cuda: the operator table, values and gradients", "[cuda][table]") {
  in_every_order([] {
    for (const Family& family : families())
      for (const Row& row : family.rows)
        for (size_t k = 0; k < row.samples.size(); ++k) {
          INFO(row.name << " sample " << k);
          try {
            check_sample(family, row, k);
          } catch (const std::exception& e) {
            FAIL_CHECK(e.what());
          }
        }
  });
}
