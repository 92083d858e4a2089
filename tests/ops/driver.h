// What the tests of the operator table on the CPU share beside walk_rows.h: a section for each row,
// guard bytes, and more layouts.
#pragma once
#include "catch.h"
#include "ops/compare.h"
#include "ops/table.h"
#include "ops/walk_rows.h"
#include "tapegrad/core/memory_guard.h"

namespace tg::test {

// Runs fn(family, row) for every row, each in a section of its own.
template <class F>
void for_each_row(F fn) {
  for (const Family& family : families())
    for (const Row& row : family.rows) DYNAMIC_SECTION(row.name) {
        INFO(row.name);
        fn(family, row);
      }
}

// Runs fn(family, row, sample, index) for every sample. Guard bytes lie around every buffer
// meanwhile, and fresh memory holds NaN.
template <class F>
void for_each_sample(F fn) {
  for_each_row([&](const Family& family, const Row& row) {
    for (size_t s = 0; s < row.samples.size(); ++s) {
      INFO("sample " << s << ": " << row.samples[s].torch);
      MemoryGuard guard;
      try {
        fn(family, row, row.samples[s], s);
        guard.check();
      } catch (const std::exception& e) {
        FAIL(e.what());
      }
    }
  });
}

// Without gaps, but one element behind where a line of memory begins.
inline Tensor shifted(const Tensor& x) {
  Tensor buffer = full({x.numel() + 1}, 3, x.options());
  Tensor inner = as_strided(buffer, x.shape(), contiguous_strides(x.shape()), 1);
  copy_(inner, x);
  return inner;
}
inline Tensor with_channels_last(const Tensor& x) { return x.dim() == 4 ? channels_last(x) : x; }

// All elements along dimension 0 are one, and share their place.
inline Tensor repeated(const Tensor& x) {
  if (x.dim() == 0 || x.size(0) == 0) return x;
  return expand(slice(x, 0, 0, 1), x.shape());
}

}  // namespace tg::test
