#include "tapegrad/kernels/cpu/gemm/gemm.h"

#include <algorithm>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/gemm/block_product.h"
#include "tapegrad/kernels/cpu/gemm/row_product.h"
#include "tapegrad/kernels/cpu/lab/frame.h"

namespace tg::kernels::gemm {
namespace {

// Below this many operations waking another thread costs more than it brings.
constexpr double kSerialWork = 2e6;

// Inner steps per slice, as even as possible. One rule for the whole problem: it decides the bits.
int64_t slice_depth(int64_t depth) {
  constexpr int64_t kSlice = 512;
  const int64_t slices = std::max<int64_t>(1, (depth + kSlice * 5 / 4 - 1) / (kSlice * 5 / 4));
  const int64_t slice = (depth + slices - 1) / slices;
  return std::max(kBlock, (slice + kBlock - 1) / kBlock * kBlock);
}

template <class T>
void multiply_serial(const Product<T>& p, int64_t slice) {
  BlockProduct<T>(p, slice).run();
}

template <class T>
Product<T> rows_of(const Product<T>& p, int64_t begin, int64_t end) {
  Product<T> part = p;
  part.rows = end - begin;
  part.a += p.a_transposed ? begin : begin * p.a_row;
  part.c += begin * p.c_row;
  if (p.addend) part.addend += begin * p.addend_row;
  return part;
}

template <class T>
Product<T> columns_of(const Product<T>& p, int64_t begin, int64_t end) {
  Product<T> part = p;
  part.columns = end - begin;
  part.b += p.b_transposed ? begin * p.b_row : begin;
  part.c += begin;
  if (p.addend) part.addend += begin;
  return part;
}

// Cuts C into pieces for the threads: columns where there are enough of them (each piece then packs
// its own part of B), else rows. How many pieces does not change a bit of the result.
template <class T>
void multiply_parallel(const Product<T>& p, int64_t slice) {
  const double work = 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.columns) *
                      static_cast<double>(std::max<int64_t>(p.depth, 1));
  const int64_t threads = num_threads();
  if (threads == 1 || work < kSerialWork) return multiply_serial(p, slice);
  constexpr int64_t kRows = kTileRows<T>, kColumns = kTileColumns<T>;
  const int64_t row_units = (p.rows + kRows - 1) / kRows;
  const int64_t column_units = (p.columns + kColumns - 1) / kColumns;
  // The share of the threads that is busy when `units` are dealt out.
  const auto balance = [&](int64_t units) {
    return static_cast<double>(units) /
           static_cast<double>((units + threads - 1) / threads * threads);
  };
  const double by_columns = balance(column_units), by_rows = balance(row_units);
  const bool cut_columns =
      (by_columns >= 0.9 && p.columns >= p.rows / 2) || (by_rows < 0.85 && by_columns > by_rows);
  const int64_t units = cut_columns ? column_units : row_units;
  const int64_t unit = cut_columns ? kColumns : kRows, end = cut_columns ? p.columns : p.rows;
  // Up to four pieces a thread, so that a thread that was held up can be helped, each at least a
  // few units wide, so that the other operand is not packed too often.
  const int64_t pieces = std::min(4 * threads, std::max(threads, units / 12));
  parallel_for(units, (units + pieces - 1) / pieces, [&](int64_t from, int64_t to) {
    const int64_t begin = from * unit, stop = std::min(to * unit, end);
    multiply_serial(cut_columns ? columns_of(p, begin, stop) : rows_of(p, begin, stop), slice);
  });
}

template <class T>
Product<T> item(const Product<T>& p, const Batch& batch, int64_t i) {
  Product<T> one = p;
  one.a += i * batch.a_step;
  one.b += i * batch.b_step;
  one.c += i * batch.c_step;
  if (p.addend) one.addend += i * batch.addend_step;
  return one;
}

// One column is one row of the transposed problem.
template <class T>
RowProduct<T> as_rows(const Product<T>& p) {
  RowProduct<T> r;
  r.depth = p.depth;
  r.c = p.c;
  r.addend = p.addend;
  if (p.columns > 1) {
    r.rows = p.rows;
    r.columns = p.columns;
    r.a = p.a;
    r.a_row = p.a_row;
    r.b = p.b;
    r.b_row = p.b_row;
    r.b_transposed = p.b_transposed;
    r.c_row = p.c_row;
    r.addend_row = p.addend_row;
    r.addend_column = 1;
    return r;
  }
  r.rows = 1;
  r.columns = p.rows;
  r.a = p.b;
  r.b = p.a;
  r.b_row = p.a_row;
  r.b_transposed = !p.a_transposed;
  r.c_column = p.c_row;
  r.addend_column = p.addend_row;
  return r;
}

// True for the shapes that row_product.h is for. The rule sees the whole problem only.
template <class T>
bool is_row_product(const Product<T>& p) {
  constexpr int64_t kFewRows = 8;
  if (p.rows == 1 || p.columns == 1) return true;
  return p.rows <= kFewRows && p.b_transposed && !p.a_transposed && p.depth >= 4 * Simd<T>::kLanes;
}

template <class T>
void multiply_as_rows(const Product<T>& p) {
  RowProduct<T> r = as_rows(p);
  // The row must be dense along k; a column of a row-major matrix is not.
  const bool one_column = p.columns == 1;
  const int64_t row_step = p.a_transposed ? p.a_row : 1, column_step = p.b_transposed ? 1 : p.b_row;
  const int64_t step = one_column ? column_step : row_step;
  Scratch<T> dense(step == 1 ? 0 : p.depth);
  if (step != 1) {
    for (int64_t k = 0; k < p.depth; ++k) dense[k] = r.a[k * step];
    r.a = dense.data();
  }
  constexpr int64_t kGrainValues = 128 << 10;  // of B, per piece
  const int64_t unit = 8 * Simd<T>::kLanes;
  const int64_t units = std::max<int64_t>(1, kGrainValues / std::max<int64_t>(1, r.depth) / unit);
  parallel_for(r.columns, units * unit,
               [&](int64_t begin, int64_t end) { multiply_rows(r, begin, end); });
}

template <class T>
void multiply_batch(const Product<T>& p, const Batch& batch) {
  if (p.rows == 0 || p.columns == 0 || batch.count == 0) return;
  const int64_t slice = slice_depth(p.depth);
  const bool few_rows = is_row_product(p);
  if (batch.count == 1) return few_rows ? multiply_as_rows(p) : multiply_parallel(p, slice);
  const double work = 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.columns) *
                      static_cast<double>(std::max<int64_t>(p.depth, 1));
  const int64_t threads = num_threads();
  if (batch.count < 2 * threads && work > 2 * kSerialWork) {
    for (int64_t i = 0; i < batch.count; ++i) {
      const Product<T> one = item(p, batch, i);
      few_rows ? multiply_as_rows(one) : multiply_parallel(one, slice);
    }
    return;
  }
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kSerialWork / 2 / work));
  parallel_for(batch.count, grain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const Product<T> one = item(p, batch, i);
      few_rows ? multiply_as_rows(one) : multiply_serial(one, slice);
    }
  });
}

template <class T>
bool is_empty(const Product<T>& p) {
  return p.rows == 0 || p.columns == 0 || p.depth == 0;
}

// Operands without elements may have no memory at all. Their addresses, which nothing reads, are
// then counted from C's.
template <class T>
Product<T> with_addresses(Product<T> p) {
  if (p.depth > 0) return p;
  p.a = p.b = p.c;
  p.a_row = p.b_row = 0;
  return p;
}

}  // namespace

void multiply(const Product<float>& product, const Batch& batch) {
  if (const auto rung = lab::chosen_rung<lab::Product>(); rung && !is_empty(product)) [[unlikely]]
    return lab::run(rung, product, batch);
  multiply_batch(with_addresses(product), batch);
}
void multiply(const Product<double>& product, const Batch& batch) {
  multiply_batch(with_addresses(product), batch);
}

}  // namespace tg::kernels::gemm
