// The operator table on device cuda: values and gradients against the references that the CPU is
// held against, in every layout. What has no kernel yet must say so; UNSUPPORTED.md lists it.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "cuda/flavour.h"
#include "ops/compare.h"
#include "ops/table.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/core/random.h"
#include "test_folder.h"

using namespace tg;
using namespace tg::test;

namespace {

bool opted_out(const Row& row, Part part) {
  return std::any_of(row.opt_outs.begin(), row.opt_outs.end(),
                     [&](const OptOut& o) { return o.part == part; });
}
bool claims(const Row& row, DType t) {
  return std::find(row.dtypes.begin(), row.dtypes.end(), t) != row.dtypes.end();
}
bool is_low(DType t) { return t == f16 || t == bf16; }
std::string key(const Row& row, size_t sample, const std::string& rest) {
  return row.name + "." + std::to_string(sample) + "." + rest;
}

// Listed values that an integer dtype does not hold say nothing of it.
bool fits(const Sample& sample, DType dtype) {
  if (is_floating(dtype)) return true;
  for (const In& in : sample.in)
    for (double v : in.listed)
      if (!(std::abs(v) < 128) || v != std::floor(v) || (v < 0 && dtype == u8)) return false;
  return true;
}

// Why a piece of work cannot be done there; "" where it was done. Anything else is an error.
template <class F>
std::string unsupported(F work) {
  try {
    work();
  } catch (const DeviceError& e) {
    const std::string text = e.what();
    // Some rows make tensors of their own on the CPU.
    if (text.find("no CUDA kernel yet") == text.npos && text.find(" on cpu") == text.npos &&
        text.find("on different devices") == text.npos)
      throw;
    return text;
  }
  return "";
}

Tensors moved(const Tensors& x, Tensor (*layout)(const Tensor&) = nullptr) {
  Tensors there;
  for (const Tensor& t : x) {
    Tensor y = t.detach().to(kGpu);
    if (layout) y = layout(y);
    there.push_back(t.requires_grad() ? y.detach().requires_grad_() : y);
  }
  return there;
}

Tensors run(const Sample& sample, const Tensors& x) {
  manual_seed(7);
  return sample.call(x);
}

void check_values(const Family& family, const Row& row, size_t s, DType dtype, const Tensors& ys) {
  const std::string kind = is_floating(dtype) ? "" : "i64.";
  for (size_t k = 0; k < ys.size(); ++k) {
    Tensor r = reference(family.name, key(row, s, kind + "y" + std::to_string(k)));
    REQUIRE(r.defined());
    const DType precision = is_low(dtype)                               ? dtype
                            : ys[k].is_floating() && is_floating(dtype) ? dtype
                                                                        : f32;
    CHECK(difference(ys[k].detach().to(kCpuDevice), r, precision, row.ulps) == "");
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

// What a row cannot do there yet: forward, backward, both or nothing.
struct Missing {
  std::string forward, backward;
};

Missing check_sample(const Family& family, const Row& row, size_t s) {
  const Sample& sample = row.samples[s];
  const bool gradient = claims(row, f64) && !opted_out(row, Part::gradient);
  Missing missing;
  for (DType dtype : row.dtypes) {
    if (is_low(dtype) && opted_out(row, Part::low_precision)) continue;
    if (!fits(sample, dtype) || sample.torch.empty()) continue;
    INFO(row.name << " sample " << s << " " << name_of(dtype) << ": " << sample.torch);
    for (auto layout : {(Tensor(*)(const Tensor&)) nullptr, reversed, spread}) {
      if (layout && (opted_out(row, Part::layouts) || is_low(dtype))) continue;
      Tensors x = moved(make_inputs(sample, dtype, gradient && is_floating(dtype)), layout);
      Tensors ys;
      missing.forward = unsupported([&] { ys = run(sample, x); });
      if (!missing.forward.empty()) return missing;
      check_values(family, row, s, dtype, ys);
      if (!gradient || !is_floating(dtype)) continue;
      missing.backward = unsupported([&] { check_gradients(family, row, s, dtype, x, ys); });
      if (!missing.backward.empty()) return missing;
    }
  }
  return missing;
}

// The list as it stands in the tree.
std::string stored_list() {
  std::ifstream file(test_folder() + "/cuda/UNSUPPORTED.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

const char* const kHead =
    "# What device cuda cannot do yet\n\n"
    "Rows of the operator table that raise a DeviceError on device cuda, and with what reason; all "
    "others\npass there. Made by the test that compares (`tapegrad_cuda_tests \"[table]\"` prints "
    "it when it differs).\n\n"
    "| operator | which part | reason |\n|---|---|---|\n";

// Fails what is wrong and gives the list of what is missing.
std::string check_table() {
  std::string list = kHead;
  for (const Family& family : families())
    for (const Row& row : family.rows) {
      Missing missing;
      for (size_t s = 0; s < row.samples.size(); ++s) {
        Missing m;
        INFO(row.name << " sample " << s);
        try {
          m = check_sample(family, row, s);
        } catch (const std::exception& e) {
          FAIL_CHECK(e.what());
        }
        if (missing.forward.empty()) missing.forward = m.forward;
        if (missing.backward.empty()) missing.backward = m.backward;
      }
      auto line = [&](const char* part, const std::string& reason) {
        list +=
            "| " + row.name + " | " + part + " | " + reason.substr(0, reason.find(';')) + " |\n";
      };
      if (!missing.forward.empty())
        line("forward", missing.forward);
      else if (!missing.backward.empty())
        line("backward", missing.backward);
    }
  return list;
}

}  // namespace

TEST_CASE("cuda: the operator table, values and gradients", "[cuda][table]") {
  in_every_order([] {
    const std::string list = check_table();
    const bool same = list == stored_list();
    if (!same) std::printf("%s", list.c_str());
    CHECK(same);
  });
}
