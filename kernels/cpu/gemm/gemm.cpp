#include "tapegrad/kernels/cpu/gemm/gemm.h"

#include <algorithm>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/gemm/block_product.h"

namespace tg::kernels::gemm {
namespace {

// Below this many operations waking another thread costs more than it brings.
constexpr double kSerialWork = 2e6;

// Inner steps per slice, as even as possible. One rule for the whole problem: it decides the bits.
int64_t slice_depth(int64_t depth) {
  constexpr int64_t kSlice = 320;
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

template <class T>
void multiply_batch(const Product<T>& p, const Batch& batch) {
  if (p.rows == 0 || p.columns == 0 || batch.count == 0) return;
  const int64_t slice = slice_depth(p.depth);
  if (batch.count == 1) return multiply_parallel(p, slice);
  const double work = 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.columns) *
                      static_cast<double>(std::max<int64_t>(p.depth, 1));
  const int64_t threads = num_threads();
  if (batch.count < 2 * threads && work > 2 * kSerialWork) {
    for (int64_t i = 0; i < batch.count; ++i) multiply_parallel(item(p, batch, i), slice);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kSerialWork / 2 / work));
  parallel_for(batch.count, grain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) multiply_serial(item(p, batch, i), slice);
  });
}

}  // namespace

void multiply(const Product<float>& product, const Batch& batch) { multiply_batch(product, batch); }
void multiply(const Product<double>& product, const Batch& batch) {
  multiply_batch(product, batch);
}

}  // namespace tg::kernels::gemm
