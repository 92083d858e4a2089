// Reading and writing the places that integer tensors name.
//
// Reading: a thread for each element. Writing: places may be named twice, and then the last one
// stays, or sums are made in order; so each thread takes what cannot meet another's (a line along
// the indexed dimension, or one element of the dimensions that are not indexed) and walks it in
// order. No atomic additions: the same bits every time.
#include "tapegrad/kernels/index.h"

#include "tapegrad/kernels/cuda/add_to.cuh"
#include "tapegrad/kernels/cuda/check_range.cuh"
#include "tapegrad/kernels/cuda/rows.cuh"

namespace tg::kernels {
namespace {

using gpu::Strided;

void check_index(View values, int64_t low, int64_t n, int dim) {
  const gpu::OutOfRange bad = gpu::find_outside(values, {low, n});
  check<IndexError>(bad.position < 0, "index", bad.value, "is out of range for dim", dim, "of size",
                    n);
}

// ---- Several indexed dimensions: rows that the columns name together

// What each column adds to the place of row b, in bytes.
struct Columns {
  int count;
  const int64_t* values[kMaxRank];
  int64_t step[kMaxRank], size[kMaxRank], stride[kMaxRank];
  __device__ int64_t place(int64_t b) const {
    int64_t offset = 0;
    for (int k = 0; k < count; ++k) {
      const int64_t at = values[k][b * step[k]];
      offset += (at < 0 ? at + size[k] : at) * stride[k];
    }
    return offset;
  }
};

struct Table {
  Columns columns;
  Strided<1> rest;  // dimensions that are not indexed: of the rows, of x
  int64_t rows, row_step;
};

Table table_of(View x, std::span<const IndexColumn> columns, View rows) {
  Table t{};
  const int indexed = int(columns.size());
  const int64_t bytes = int64_t(size_of(x.dtype));
  t.columns.count = indexed;
  for (int k = 0; k < indexed; ++k) {
    const IndexColumn& c = columns[size_t(k)];
    check_index(c.values, c.from_end ? -x.size(k) : 0, x.size(k), c.dim);
    t.columns.values[k] = c.values.as<int64_t>();
    t.columns.step[k] = c.values.stride(0);
    t.columns.size[k] = x.size(k);
    t.columns.stride[k] = x.stride(k) * bytes;
  }
  t.rows = rows.size(0);
  t.row_step = rows.stride(0) * bytes;
  t.rest = Strided<1>{x.rank() - indexed, 1, {}, {}};
  for (int d = indexed; d < x.rank(); ++d) {
    t.rest.size[d - indexed] = x.size(d);
    t.rest.step[0][d - indexed] = rows.stride(d - indexed + 1) * bytes;
    t.rest.step[1][d - indexed] = x.stride(d) * bytes;
    t.rest.numel *= x.size(d);
  }
  return t;
}

template <class Bits>
__global__ void index_kernel(Table t, const char* x, char* y) {
  for (int64_t i = gpu::first_index(); i < t.rows * t.rest.numel; i += gpu::index_step()) {
    const int64_t b = i / t.rest.numel;
    int64_t place[2];
    gpu::find_places(t.rest, i % t.rest.numel, place);
    *reinterpret_cast<Bits*>(y + b * t.row_step + place[0]) =
        *reinterpret_cast<const Bits*>(x + t.columns.place(b) + place[1]);
  }
}

template <class T, bool kAdd>
__global__ void index_put_kernel(Table t, char* x, const char* values) {
  for (int64_t i = gpu::first_index(); i < t.rest.numel; i += gpu::index_step()) {
    int64_t place[2];
    gpu::find_places(t.rest, i, place);
    for (int64_t b = 0; b < t.rows; ++b) {
      T& to = *reinterpret_cast<T*>(x + t.columns.place(b) + place[1]);
      const T value = *reinterpret_cast<const T*>(values + b * t.row_step + place[0]);
      if constexpr (kAdd)
        gpu::add_to(to, value);
      else
        to = value;
    }
  }
}

// ---- One indexed dimension

// Lines: of the index, of y or source along it, and of x or y, which the index points into.
template <class Bits>
__global__ void gather_kernel(gpu::RowLoops l, const char* index, char* y, const char* x) {
  for (int64_t i = gpu::first_index(); i < l.rows.numel * l.length; i += gpu::index_step()) {
    const int64_t j = i % l.length;
    int64_t place[3];
    gpu::find_places(l.rows, i / l.length, place);
    const int64_t at = reinterpret_cast<const int64_t*>(index + place[0])[j * l.step[0]];
    reinterpret_cast<Bits*>(y + place[1])[j * l.step[1]] =
        reinterpret_cast<const Bits*>(x + place[2])[at * l.step[2]];
  }
}

template <class T>
__global__ void scatter_add_kernel(gpu::RowLoops l, const char* index, const char* source,
                                   char* y) {
  for (int64_t i = gpu::first_index(); i < l.rows.numel; i += gpu::index_step()) {
    int64_t place[3];
    gpu::find_places(l.rows, i, place);
    for (int64_t j = 0; j < l.length; ++j) {
      const int64_t at = reinterpret_cast<const int64_t*>(index + place[0])[j * l.step[0]];
      gpu::add_to(reinterpret_cast<T*>(y + place[2])[at * l.step[2]],
                  reinterpret_cast<const T*>(source + place[1])[j * l.step[1]]);
    }
  }
}

}  // namespace

void index(Cuda, View x, std::span<const IndexColumn> columns, MutView y) {
  const Table t = table_of(x, columns, y);
  if (y.numel == 0) return;
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::start<index_kernel<Bits>>({gpu::blocks_for_each(y.numel), gpu::kThreads}, t, x.as<char>(),
                                   y.as<char>());
  });
}

void index_put(Cuda, MutView x, std::span<const IndexColumn> columns, View values,
               bool accumulate) {
  const Table t = table_of(x, columns, values);
  if (values.numel == 0) return;
  const gpu::Config config{gpu::blocks_for_each(t.rest.numel), gpu::kThreads};
  if (accumulate)
    visit_all(x.dtype, [&]<class T>() {
      gpu::start<index_put_kernel<T, true>>(config, t, x.as<char>(), values.as<char>());
    });
  else
    visit_bytes(x.dtype, [&]<class Bits>() {
      gpu::start<index_put_kernel<Bits, false>>(config, t, x.as<char>(), values.as<char>());
    });
}

void gather(Cuda, View x, int dim, View index, MutView y) {
  check_index(index, 0, x.rank() ? x.size(dim) : 1, dim);
  if (y.numel == 0) return;
  const gpu::RowLoops l = gpu::plan_rows(std::array<View, 3>{index, y, x}, dim);
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::start<gather_kernel<Bits>>({gpu::blocks_for_each(y.numel), gpu::kThreads}, l,
                                    index.as<char>(), y.as<char>(), x.as<char>());
  });
}

void scatter_add(Cuda, MutView y, int dim, View index, View source) {
  check_index(index, 0, y.rank() ? y.size(dim) : 1, dim);
  if (index.numel == 0) return;
  const gpu::RowLoops l = gpu::plan_rows(std::array<View, 3>{index, source, y}, dim);
  visit_all(y.dtype, [&]<class T>() {
    gpu::start<scatter_add_kernel<T>>({gpu::blocks_for_each(l.rows.numel), gpu::kThreads}, l,
                                      index.as<char>(), source.as<char>(), y.as<char>());
  });
}

}  // namespace tg::kernels
