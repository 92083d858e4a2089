#include "tapegrad/kernels/matmul.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/gemm/gemm.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels {
namespace {

// An operand with its shape stretched to c's batch dimensions: a stride is 0 where it is broadcast.
struct Operand {
  const void* data = nullptr;
  int64_t row = 0, column = 0;  // strides of the last two dimensions
  Shape batch;                  // strides of the batch dimensions of c
};

// One batch dimension of the whole problem.
struct BatchDim {
  int64_t size = 1, a = 0, b = 0, c = 0, addend = 0;
};

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  Operand a, b, addend;
  bool has_addend = false;
  void* c = nullptr;
  Shape batch_sizes, batch_strides;  // of c
};

Operand stretch(View x, int rank) {
  Operand operand;
  operand.data = x.data;
  const auto stride = [&](int i) {  // i counts from the end of c's shape
    const int dim = x.rank() - i;
    return dim < 0 || x.size(dim) == 1 ? 0 : x.stride(dim);
  };
  operand.column = stride(1);
  operand.row = stride(2);
  for (int i = rank; i > 2; --i) operand.batch.push_back(stride(i));
  return operand;
}

Problem describe(View a, View b, MutView c, const View* addend) {
  Problem p;
  const int rank = c.rank();
  p.m = c.size(rank - 2);
  p.n = c.size(rank - 1);
  p.k = a.size(a.rank() - 1);
  p.a = stretch(a, rank);
  p.b = stretch(b, rank);
  p.has_addend = addend != nullptr;
  if (addend) p.addend = stretch(*addend, rank);
  p.c = c.data;
  int64_t step = p.m * p.n;
  p.batch_sizes = p.batch_strides = Shape::filled(rank - 2, 0);
  for (int i = rank - 3; i >= 0; --i) {
    p.batch_sizes[i] = c.size(i);
    p.batch_strides[i] = step;
    step *= c.size(i);
  }
  return p;
}

// The batch dimensions, joined where the strides of all operands allow it; the largest comes last.
// Returns how many there are.
int join_batch(const Problem& p, BatchDim (&dims)[kMaxRank]) {
  int count = 0;
  for (int i = 0; i < p.batch_sizes.rank(); ++i) {
    if (p.batch_sizes[i] == 1) continue;
    const BatchDim d{p.batch_sizes[i], p.a.batch[i], p.b.batch[i], p.batch_strides[i],
                     p.has_addend ? p.addend.batch[i] : 0};
    BatchDim* last = count > 0 ? &dims[count - 1] : nullptr;
    if (last && last->a == d.a * d.size && last->b == d.b * d.size && last->c == d.c * d.size &&
        last->addend == d.addend * d.size) {
      *last = {last->size * d.size, d.a, d.b, d.c, d.addend};
    } else {
      dims[count++] = d;
    }
  }
  if (count > 1) {
    auto largest = std::max_element(
        dims, dims + count, [](const BatchDim& x, const BatchDim& y) { return x.size < y.size; });
    std::swap(*largest, dims[count - 1]);
  }
  return count;
}

float to_float(float x) { return x; }
double to_float(double x) { return x; }
float to_float(Half x) { return static_cast<float>(x); }
float to_float(BFloat16 x) { return static_cast<float>(x); }

// Copies an operand that the product cannot read as it lies (no dimension with stride 1, or 16-bit
// floats) into rows without gaps, in the type that is multiplied; broadcast dimensions once.
template <class From, class To>
void make_dense(Operand& operand, int64_t rows, int64_t columns, const Shape& batch_sizes,
                std::optional<Scratch<To>>& memory) {
  const bool same_rows = operand.row == 0;
  if (same_rows) rows = std::min<int64_t>(rows, 1);
  int64_t blocks = 1;
  Shape steps = Shape::filled(batch_sizes.rank(), 0);
  for (int i = batch_sizes.rank() - 1; i >= 0; --i) {
    if (operand.batch[i] == 0) continue;
    steps[i] = blocks * rows * columns;
    blocks *= batch_sizes[i];
  }
  memory.emplace(blocks * rows * columns);
  const From* from = static_cast<const From*>(operand.data);
  To* to = memory->data();
  constexpr int64_t kPiece = 32768;
  parallel_for(blocks * rows, std::max<int64_t>(1, kPiece / std::max<int64_t>(1, columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) {
                   int64_t block = line / rows, offset = line % rows * operand.row;
                   for (int i = batch_sizes.rank() - 1; i >= 0; --i) {
                     if (operand.batch[i] == 0) continue;
                     offset += block % batch_sizes[i] * operand.batch[i];
                     block /= batch_sizes[i];
                   }
                   const From* x = from + offset;
                   To* y = to + line * columns;
                   for (int64_t j = 0; j < columns; ++j) {
                     y[j] = static_cast<To>(to_float(x[j * operand.column]));
                   }
                 }
               });
  operand.data = to;
  operand.row = same_rows ? 0 : columns;
  operand.column = 1;
  operand.batch = steps;
}

// True if rows or columns lie densely; then says which way: transposed means that rows do.
bool lies_densely(const Operand& x, int64_t rows, int64_t columns, bool& transposed) {
  transposed = false;
  if (x.column == 1 || columns == 1) return true;
  transposed = true;
  return x.row == 1 || rows == 1;
}

template <class T>
void multiply_all(Problem p, T* c) {
  gemm::Product<T> product;
  product.rows = p.m;
  product.columns = p.n;
  product.depth = p.k;
  std::optional<Scratch<T>> dense_a, dense_b, dense_addend;
  if (!lies_densely(p.a, p.m, p.k, product.a_transposed)) {
    make_dense<T>(p.a, p.m, p.k, p.batch_sizes, dense_a);
    product.a_transposed = false;
  }
  if (!lies_densely(p.b, p.k, p.n, product.b_transposed)) {
    make_dense<T>(p.b, p.k, p.n, p.batch_sizes, dense_b);
    product.b_transposed = false;
  }
  if (p.has_addend && p.addend.column != 1 && p.n != 1) {
    make_dense<T>(p.addend, p.m, p.n, p.batch_sizes, dense_addend);
  }
  BatchDim dims[kMaxRank];
  const int count = join_batch(p, dims);

  product.a = static_cast<const T*>(p.a.data);
  product.b = static_cast<const T*>(p.b.data);
  product.addend = static_cast<const T*>(p.addend.data);
  product.a_row = product.a_transposed ? p.a.column : p.a.row;
  product.b_row = product.b_transposed ? p.b.column : p.b.row;
  product.addend_row = p.addend.row;
  product.c = c;
  product.c_row = p.n;

  BatchDim inner = count > 0 ? dims[count - 1] : BatchDim{};
  // A batch that shares B and whose rows follow each other is one product with more rows.
  if (p.m == 1) {
    product.a_row = product.a_transposed ? product.a_row : inner.a;
    product.addend_row = inner.addend;
  }
  if (inner.size > 1 && inner.b == 0 && !product.a_transposed && inner.a == p.m * product.a_row &&
      inner.c == p.m * p.n && inner.addend == p.m * product.addend_row) {
    product.rows *= inner.size;
    inner = {};
  }
  const gemm::Batch batch{inner.size, inner.a, inner.b, inner.c, inner.addend};
  int64_t outer = 1;
  for (int i = 0; i + 1 < count; ++i) outer *= dims[i].size;
  for (int64_t index = 0; index < outer; ++index) {
    gemm::Product<T> one = product;
    int64_t rest = index;
    for (int i = count - 2; i >= 0; --i) {
      const int64_t at = rest % dims[i].size;
      rest /= dims[i].size;
      one.a += at * dims[i].a;
      one.b += at * dims[i].b;
      one.c += at * dims[i].c;
      if (one.addend) one.addend += at * dims[i].addend;
    }
    gemm::multiply(one, batch);
  }
}

// f16 and bf16: everything in f32, rounded once at the end.
template <class T>
void multiply_rounded(Problem p) {
  std::optional<Scratch<float>> a, b, addend;
  make_dense<T>(p.a, p.m, p.k, p.batch_sizes, a);
  make_dense<T>(p.b, p.k, p.n, p.batch_sizes, b);
  if (p.has_addend) make_dense<T>(p.addend, p.m, p.n, p.batch_sizes, addend);
  const int64_t values = p.batch_sizes.numel() * p.m * p.n;
  Scratch<float> sums(values);
  multiply_all<float>(p, sums.data());
  T* c = static_cast<T*>(p.c);
  parallel_for(values, 32768, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) c[i] = T(sums[i]);
  });
}

// Integers wrap around, so the sums are taken in unsigned 64 bits, which keeps the low bits of all.
template <class T>
void multiply_integers(const Problem& p) {
  const int64_t rows = p.batch_sizes.numel() * p.m;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.n * p.k));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t i = line % p.m;
      int64_t block = line / p.m;
      const T* a = static_cast<const T*>(p.a.data) + i * p.a.row;
      const T* b = static_cast<const T*>(p.b.data);
      const T* addend = static_cast<const T*>(p.addend.data);
      if (addend) addend += i * p.addend.row;
      for (int d = p.batch_sizes.rank() - 1; d >= 0; --d) {
        const int64_t at = block % p.batch_sizes[d];
        block /= p.batch_sizes[d];
        a += at * p.a.batch[d];
        b += at * p.b.batch[d];
        if (addend) addend += at * p.addend.batch[d];
      }
      T* c = static_cast<T*>(p.c) + line * p.n;
      for (int64_t j = 0; j < p.n; ++j) {
        uint64_t sum = addend ? static_cast<uint64_t>(addend[j * p.addend.column]) : 0;
        for (int64_t k = 0; k < p.k; ++k) {
          sum += static_cast<uint64_t>(a[k * p.a.column]) *
                 static_cast<uint64_t>(b[k * p.b.row + j * p.b.column]);
        }
        c[j] = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace

void matmul(Cpu, View a, View b, MutView c, const View* addend) {
  if (c.numel == 0) return;
  const Problem p = describe(a, b, c, addend);
  if (c.dtype == f16) return multiply_rounded<Half>(p);
  if (c.dtype == bf16) return multiply_rounded<BFloat16>(p);
  if (is_floating(c.dtype)) {
    return visit_float(c.dtype, [&]<class T>() { multiply_all<T>(p, static_cast<T*>(p.c)); });
  }
  visit_integral(c.dtype, [&]<class T>() { multiply_integers<T>(p); });
}

}  // namespace tg::kernels
