// Products of the last two dimensions: which kernel takes them. See kernels/cuda/matmul/.
#include "tapegrad/kernels/matmul.h"

#include "tapegrad/kernels/cuda/matmul/product.h"

namespace tg::kernels {
namespace {

// The dimensions of a view before the last two.
struct Batch {
  Shape shape, strides;
  explicit Batch(View v) {
    for (int d = 0; d + 2 < v.rank(); ++d) {
      shape.push_back(v.size(d));
      strides.push_back(v.stride(d));
    }
  }
};

gpu::Matrix matrix_of(View v) {
  const int rank = v.rank();
  // A dimension that is stretched to c's size has stride 0.
  return {v.data, v.size(rank - 2) == 1 ? 0 : v.stride(rank - 2),
          v.size(rank - 1) == 1 ? 0 : v.stride(rank - 1)};
}

// A vector that is added to every row, as a matrix.
struct AtLeastMatrix {
  Shape shape, strides;
  View view;
  explicit AtLeastMatrix(View v) : shape(v.shape()), strides(v.strides()), view(v) {
    while (shape.rank() < 2) {
      shape.insert(0, 1);
      strides.insert(0, 0);
    }
    view.shape_ptr = &shape;
    view.stride_ptr = &strides;
  }
};

}  // namespace

void matmul(Cuda, View a, View b, MutView c, const View* addend) {
  if (c.numel == 0) return;
  const int rank = c.rank();
  gpu::Product p{};
  p.m = c.size(rank - 2);
  p.n = c.size(rank - 1);
  p.k = a.size(a.rank() - 1);
  p.a = matrix_of(a);
  p.b = matrix_of(b);
  p.c = c.data;
  const AtLeastMatrix added(addend ? *addend : View(c));
  if (addend) p.addend = matrix_of(added.view);
  const Batch of_c(c), of_a(a), of_b(b), of_addend(added.view);
  const int64_t bytes = int64_t(size_of(c.dtype));
  const Layout layouts[] = {{&of_c.shape, &of_c.strides, bytes},
                            {&of_a.shape, &of_a.strides, bytes},
                            {&of_b.shape, &of_b.strides, bytes},
                            {&of_addend.shape, &of_addend.strides, bytes}};
  p.batch = gpu::loops_of<3>(plan_walk(layouts));
  if (!gpu::tensor_core_product(p, c.dtype)) gpu::tiled_product(p, c.dtype);
}

}  // namespace tg::kernels
