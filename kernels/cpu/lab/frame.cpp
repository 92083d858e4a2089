#include "tapegrad/kernels/cpu/lab/frame.h"

#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::lab {
namespace {

// An operand as it is stored or, if that is transposed, the right way round.
class Straight {
 public:
  Straight(const float* data, int64_t row, bool transposed, int64_t rows, int64_t columns)
      : copy_(transposed ? rows * columns : 0), data_(data), row_(row) {
    if (!transposed) return;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) copy_[i * columns + j] = data[j * row + i];
    data_ = copy_.data();
    row_ = columns;
  }
  const float* data() const { return data_; }
  int64_t row() const { return row_; }

 private:
  Scratch<float> copy_;
  const float* data_;
  int64_t row_;
};

// f32 values of a shape in the order of given strides: those of a view where they lie so already,
// else room for a copy.
class Dense {
 public:
  Dense(View like, const Shape& shape, const Shape& strides)
      : shape_(shape),
        strides_(strides),
        in_place_(like.dtype == DType::f32 && like.shape() == shape && like.strides() == strides),
        memory_(in_place_ ? 0 : shape.numel()),
        data_(in_place_ ? const_cast<float*>(like.as<float>()) : memory_.data()) {}
  void load(View from) {
    if (!in_place_) copy(Cpu{}, from, MutView{{data_, DType::f32, &shape_, &strides_, numel()}});
  }
  void store(MutView to) {
    if (!in_place_) copy(Cpu{}, View{{data_, DType::f32, &shape_, &strides_, numel()}}, to);
  }
  float* data() const { return data_; }

 private:
  int64_t numel() const { return shape_.numel(); }
  const Shape shape_, strides_;
  const bool in_place_;
  const Scratch<float> memory_;
  float* const data_;
};

// `count` entries of dimension `dim` from `first` on; its shape is kept in `shape`.
template <class AnyView>
AnyView part(AnyView x, Shape& shape, int dim, int64_t first, int64_t count) {
  const auto* bytes = static_cast<const char*>(x.data);
  bytes += first * x.stride(dim) * int64_t(size_of(x.dtype));
  x.data = const_cast<char*>(bytes);
  shape = x.shape();
  shape[dim] = count;
  x.shape_ptr = &shape;
  x.numel = shape.numel();
  return x;
}

}  // namespace

void run(Kernel<Product> rung, const gemm::Product<float>& p, const gemm::Batch& batch) {
  const Scratch<float> sums(p.addend ? p.rows * p.columns : 0);  // C may be the addend
  for (int64_t i = 0; i < batch.count; ++i) {
    const Straight a(p.a + i * batch.a_step, p.a_row, p.a_transposed, p.rows, p.depth);
    const Straight b(p.b + i * batch.b_step, p.b_row, p.b_transposed, p.depth, p.columns);
    float* c = p.c + i * batch.c_step;
    Product one{p.rows, p.columns, p.depth, a.data(), a.row(), b.data(), b.row(), c, p.c_row};
    if (!p.addend) {
      rung(one);
      continue;
    }
    one.c = sums.data();
    one.c_row = p.columns;
    rung(one);
    const float* addend = p.addend + i * batch.addend_step;
    for (int64_t row = 0; row < p.rows; ++row)
      for (int64_t j = 0; j < p.columns; ++j)
        c[row * p.c_row + j] = sums[row * p.columns + j] + addend[row * p.addend_row + j];
  }
}

void run(Kernel<Images> rung, View x, View weight, View bias, MutView y,
         const Conv2dGeometry& geometry) {
  Images p{};
  p.images = x.size(0);
  p.height = x.size(2);
  p.width = x.size(3);
  p.channels = weight.size(1);
  p.out_height = y.size(2);
  p.out_width = y.size(3);
  p.out_channels = weight.size(0) / geometry.groups;
  p.kernel_h = weight.size(2);
  p.kernel_w = weight.size(3);
  p.geometry = geometry;
  p.geometry.groups = 1;

  const Shape x_shape{p.images, p.channels, p.height, p.width};
  const Shape y_shape{p.images, p.out_channels, p.out_height, p.out_width};
  const Shape w_shape{p.out_channels, p.channels, p.kernel_h, p.kernel_w};
  const int64_t tap = p.channels * p.out_channels;
  Dense dense_x(x, x_shape, channels_last_strides(x_shape));
  Dense dense_y(y, y_shape, channels_last_strides(y_shape));
  Dense dense_w(weight, w_shape, {1, p.out_channels, p.kernel_w * tap, tap});
  Dense dense_bias(weight, {p.out_channels}, {1});  // weight is none of that shape: a copy
  p.x = dense_x.data();
  p.y = dense_y.data();
  p.weight = dense_w.data();
  if (bias.data) p.bias = dense_bias.data();
  Shape shape;
  for (int64_t group = 0; group < geometry.groups; ++group) {
    dense_x.load(part(x, shape, 1, group * p.channels, p.channels));
    dense_w.load(part(weight, shape, 0, group * p.out_channels, p.out_channels));
    if (bias.data) dense_bias.load(part(bias, shape, 0, group * p.out_channels, p.out_channels));
    rung(p);
    dense_y.store(part(y, shape, 1, group * p.out_channels, p.out_channels));
  }
}

}  // namespace tg::kernels::lab
