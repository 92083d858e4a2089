// What every row of the operator table must compute: values in every dtype and layout, gradients,
// in-place forms, and the same bits for any number of threads.
#include <algorithm>

#include "catch.h"
#include "ops/compare.h"
#include "ops/driver.h"
#include "ops/table.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/gradcheck.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/random.h"
#include "tapegrad/core/split_count.h"

using namespace tg;
using namespace tg::test;

namespace {
const auto kLayouts = {strided, reversed, shifted, with_channels_last};
}

TEST_CASE("operator table: values and dtypes", "[table]") {
  for_each_sample([](const Family& family, const Row& row, const Sample& sample, size_t s) {
    for (DType dtype : row.dtypes) {
      if (is_low(dtype) && opted_out(row, Part::low_precision)) continue;
      if (!says_something(sample, dtype)) continue;
      INFO("dtype " << name_of(dtype));
      Tensors ys = run(sample, make_inputs(sample, dtype));
      for (size_t k = 0; k < ys.size(); ++k) {
        std::string kind = reference_kind(dtype);
        Tensor r = reference(family.name, key(row, s, kind + "y" + std::to_string(k)));
        if (sample.torch.empty()) continue;
        REQUIRE(r.defined());
        // Of the reference's kind, and never less exact than what came in.
        CHECK(ys[k].is_floating() == r.is_floating());
        CHECK((ys[k].dtype() == boolean) == (r.dtype() == boolean));
        if (dtype == i64 || dtype == u8 || dtype == boolean) CHECK(ys[k].dtype() == r.dtype());
        if (ys[k].is_floating() && is_floating(dtype))
          CHECK(size_of(ys[k].dtype()) >= size_of(dtype));
        CHECK(difference(ys[k], r, precision_of(ys[k], dtype), row.ulps) == "");
      }
    }
  });
}

TEST_CASE("operator table: any layout gives the same", "[table]") {
  for_each_sample([](const Family&, const Row& row, const Sample& sample, size_t) {
    if (opted_out(row, Part::layouts)) return;
    for (DType dtype : row.dtypes) {
      if (is_low(dtype) && opted_out(row, Part::low_precision)) continue;
      if (!says_something(sample, dtype)) continue;
      INFO("dtype " << name_of(dtype));
      auto compare = [&](const Tensors& moved, const Tensors& expected) {
        Tensors ys = run(sample, moved);
        REQUIRE(ys.size() == expected.size());
        for (size_t k = 0; k < ys.size(); ++k)
          CHECK(difference(ys[k], expected[k], dtype, row.ulps) == "");
      };
      Tensors x = make_inputs(sample, dtype), expected = run(sample, x);
      for (auto layout : kLayouts) {
        Tensors moved;
        for (const Tensor& t : x) moved.push_back(layout(t));
        compare(moved, expected);
      }
      Tensors many, dense;
      for (const Tensor& t : x) {
        many.push_back(repeated(t));
        dense.push_back(contiguous(many.back()));
      }
      compare(many, run(sample, dense));
    }
  });
}

TEST_CASE("operator table: any layout of the incoming gradient gives the same", "[table]") {
  for_each_sample([](const Family&, const Row& row, const Sample& sample, size_t) {
    if (!differentiable(row)) return;
    for (DType dtype : row.dtypes) {
      if (!is_floating(dtype) || (is_low(dtype) && opted_out(row, Part::low_precision))) continue;
      INFO("dtype " << name_of(dtype));
      // The gradients of the inputs for dy = layout(source).
      auto gradients = [&](auto source, auto layout) {
        Tensors x = make_inputs(sample, dtype, true), ys, dys, grads;
        for (const Tensor& y : run(sample, x))
          if (y.requires_grad()) {
            ys.push_back(y);
            dys.push_back(layout(source(make_gradient(y, int(ys.size())))));
          }
        if (!ys.empty()) backward(ys, dys);
        for (const Tensor& t : x)
          if (t.requires_grad()) grads.push_back(t.grad().defined() ? t.grad() : zeros_like(t));
        return grads;
      };
      auto compare = [&](const Tensors& got, const Tensors& expected) {
        REQUIRE(got.size() == expected.size());
        for (size_t k = 0; k < got.size(); ++k)
          CHECK(difference(got[k], expected[k], dtype, 4 * row.ulps) == "");
      };
      auto same = [](const Tensor& t) { return t; };
      Tensors expected = gradients(same, contiguous);
      for (auto layout : kLayouts) compare(gradients(same, layout), expected);
      compare(gradients(repeated, same), gradients(repeated, contiguous));
    }
  });
}

TEST_CASE("operator table: gradients equal the references", "[table]") {
  for_each_sample([](const Family& family, const Row& row, const Sample& sample, size_t s) {
    if (!differentiable(row) || sample.torch.empty()) return;
    for (DType dtype : row.dtypes) {
      if (!is_floating(dtype)) continue;
      if (is_low(dtype) && opted_out(row, Part::low_precision)) continue;
      INFO("dtype " << name_of(dtype));
      Tensors x = make_inputs(sample, dtype, true);
      Tensors ys, dys;
      Tensors outs = run(sample, x);
      for (size_t k = 0; k < outs.size(); ++k)
        if (outs[k].requires_grad()) {
          ys.push_back(outs[k]);
          dys.push_back(make_gradient(outs[k], int(k)));
        }
      if (ys.empty()) continue;
      backward(ys, dys);
      for (size_t k = 0; k < x.size(); ++k) {
        Tensor r = reference(family.name, key(row, s, "dx" + std::to_string(k)));
        if (!x[k].requires_grad()) continue;
        REQUIRE(r.defined());
        Tensor g = x[k].grad().defined() ? x[k].grad() : zeros_like(x[k]);
        INFO("gradient of input " << k);
        CHECK(difference(g, r, dtype, 4 * row.ulps) == "");
      }
    }
  });
}

TEST_CASE("operator table: gradcheck", "[table]") {
  for_each_sample([](const Family&, const Row& row, const Sample& sample, size_t) {
    if (!differentiable(row) || !sample.smooth) return;
    Tensors x = make_inputs(sample, f64, true);
    if (std::none_of(x.begin(), x.end(), [](const Tensor& t) { return t.requires_grad(); })) return;
    if (run(sample, x)[0].numel() == 0) return;
    gradcheck([&](const Tensors& in) { return run(sample, in); }, x);
    if (opted_out(row, Part::layouts)) return;
    Tensors moved;
    for (const Tensor& t : x)
      moved.push_back(t.requires_grad() ? reversed(t.detach()).requires_grad_() : t);
    gradcheck([&](const Tensors& in) { return run(sample, in); }, moved);
  });
}

TEST_CASE("operator table: gradgradcheck", "[table]") {
  for_each_sample([](const Family&, const Row& row, const Sample& sample, size_t) {
    if (!differentiable(row) || !sample.smooth || opted_out(row, Part::second_derivative)) return;
    Tensors x = make_inputs(sample, f64, true);
    if (std::none_of(x.begin(), x.end(), [](const Tensor& t) { return t.requires_grad(); })) return;
    if (run(sample, x)[0].numel() == 0) return;
    gradgradcheck([&](const Tensors& in) { return run(sample, in); }, x);
  });
}

TEST_CASE("operator table: a derivative that does not exist is never a silent zero", "[table]") {
  for_each_sample([](const Family&, const Row& row, const Sample& sample, size_t) {
    if (!claims(row, f64)) return;
    bool none = opted_out(row, Part::gradient) != nullptr;
    if (!none && !opted_out(row, Part::second_derivative)) return;
    Tensors x = make_inputs(sample, f64, true);
    Tensor y = run(sample, x)[0];
    if (none || !y.requires_grad()) {  // backward() on it raises: it has no history
      CHECK_THROWS_AS(sum(y.to(f64)).backward(), AutogradError);
      return;
    }
    GradOptions options;
    options.create_graph = options.allow_unused = true;
    Tensor first = grad(sum(y), x[0], options);
    if (first.defined()) CHECK_THROWS_AS(sum(first).backward(), AutogradError);
  });
}

TEST_CASE("operator table: in place gives the same value and gradient", "[table]") {
  for_each_sample([](const Family&, const Row& row, const Sample& sample, size_t) {
    if (!row.inplace || !claims(row, f64)) return;
    Tensors a = make_inputs(sample, f64, true), b = make_inputs(sample, f64, true);
    Tensors expected = run(sample, a);
    if (!(expected[0].shape() == b[0].shape())) return;
    Tensors written = b;
    written[0] = b[0].clone();
    manual_seed(7);
    Tensor y = row.inplace(written)[0];
    CHECK(y.same(written[0]));
    CHECK(same_bits(y, expected[0]));
    if (!expected[0].requires_grad()) return;
    Tensor dy = make_gradient(expected[0], 0);
    backward({expected[0]}, {dy});
    backward({y}, {dy});
    for (size_t k = 0; k < a.size(); ++k)
      if (a[k].requires_grad() && a[k].grad().defined()) {
        REQUIRE(b[k].grad().defined());
        CHECK(difference(b[k].grad(), a[k].grad(), f64, row.ulps) == "");
      }
  });
}

TEST_CASE("operator table: in place on strided memory leaves the gaps alone", "[table]") {
  for_each_sample([](const Family&, const Row& row, const Sample& sample, size_t) {
    if (!row.inplace || !claims(row, f32)) return;
    Tensors a = make_inputs(sample, f32), b = make_inputs(sample, f32);
    Tensors expected = run(sample, a);
    if (b[0].dim() == 0 || !(expected[0].shape() == b[0].shape())) return;
    Strided written(b[0]);
    b[0] = written.inner;
    manual_seed(7);
    row.inplace(b);
    CHECK(difference(written.inner, expected[0], f32, row.ulps) == "");
    CHECK(written.gaps_intact());
  });
}

namespace {

struct KeepThreads {
  int before = num_threads();
  ~KeepThreads() { set_num_threads(before); }
};

// Results and gradients of a sample, and how many pieces its largest cut made: of the forward and
// of the backward.
struct Outcome {
  Tensors all;
  int64_t forward = 0, backward = 0;
};

// Pieces beyond the first of each job.
int64_t cuts() {
  SplitCount count = split_count();
  return count.pieces - count.jobs;
}

Outcome outcome(const Row& row, const Sample& sample) {
  Outcome out;
  Tensors x = make_inputs(sample, f32, differentiable(row));
  int64_t start = cuts();
  out.all = run(sample, x);
  out.forward = cuts() - start;
  Tensor y = out.all[0];
  if (!y.requires_grad()) return out;
  Tensor dy = make_gradient(y, 0);
  start = cuts();
  backward({y}, {dy});
  out.backward = cuts() - start;
  for (const Tensor& t : x)
    if (t.requires_grad() && t.grad().defined()) out.all.push_back(t.grad());
  return out;
}

}  // namespace

TEST_CASE("operator table: the same bits for any number of threads", "[table]") {
  KeepThreads keep;
  for (const Family& family : families())
    for (const Row& row : family.rows) {
      if (!row.large || opted_out(row, Part::threads)) continue;
      DYNAMIC_SECTION(row.name) {
        Sample sample = row.large();
        MemoryGuard guard;
        Tensors first;
        for (int threads : {1, 2, 3, 7}) {
          set_num_threads(threads);
          Outcome now = outcome(row, sample);
          INFO(threads << " threads");
          // Work that was never cut would be the same for any number of threads, and say nothing.
          // Three pieces, but a product makes only as many as there are threads.
          int64_t least = std::min(threads, 3) - 1;
          if (!opted_out(row, Part::forward_split)) CHECK(now.forward >= least);
          if (now.all[0].requires_grad() && !opted_out(row, Part::backward_split))
            CHECK(now.backward >= least);
          if (threads == 1) first = now.all;
          REQUIRE(now.all.size() == first.size());
          for (size_t k = 0; k < first.size(); ++k) {
            INFO("result " << k);
            CHECK(same_bits(now.all[k], first[k]));
          }
        }
        CHECK_NOTHROW(guard.check());
      }
    }
}
