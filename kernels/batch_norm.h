// Batch normalisation: statistics of each channel over all its values, the normalised result, and
// its gradients.
#pragma once
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// x, y, dy, dx: [N,C,...] of one float dtype and one layout: contiguous, or the channels of a pixel
// next to each other without gaps. mean and rstd: [C], contiguous, f64 for f64 and f32 for all
// others: f16 and bf16 are computed in f32. weight, bias, dweight, dbias, running estimates: [C] of
// any float dtype; where `data` is null they are left out.

// Which of the two layouts: true if the channels of a pixel lie next to each other.
inline bool channels_are_innermost(const View& x) {
  Shape shape = x.shape(), strides = x.strides();
  for (Shape* s : {&shape, &strides}) {
    const int64_t of_channels = (*s)[1];
    s->erase(1);
    s->push_back(of_channels);
  }
  const bool innermost = is_contiguous(shape, strides);
  check<InternalError>(innermost || x.is_contiguous(), "layout of strides", x.strides());
  return innermost;
}

// Over the n values of a channel: mean, and rstd = 1 / sqrt(variance + eps) with the variance
// divided by n. The running estimates move by `momentum` towards the mean and the variance divided
// by n - 1.
void batch_norm_statistics(Cpu, View x, double eps, MutView mean, MutView rstd, double momentum,
                           MutView running_mean, MutView running_var);
void batch_norm_statistics(Cuda, View x, double eps, MutView mean, MutView rstd, double momentum,
                           MutView running_mean, MutView running_var);
// y = (x - mean) * rstd * weight + bias
void batch_norm_apply(Cpu, View x, View mean, View rstd, View weight, View bias, MutView y);
void batch_norm_apply(Cuda, View x, View mean, View rstd, View weight, View bias, MutView y);
// With d = x - mean and sums over a channel's n values:
//   dbias = sum dy    dweight = rstd * sum dy d
//   dx = weight * rstd * (dy - sum dy / n - d * rstd^2 * sum dy d / n)
// or, where mean and rstd do not depend on x (through_statistics = false), dx = weight * rstd * dy.
void batch_norm_backward(Cpu, View x, View dy, View mean, View rstd, View weight,
                         bool through_statistics, MutView dx, MutView dweight, MutView dbias);
void batch_norm_backward(Cuda, View x, View dy, View mean, View rstd, View weight,
                         bool through_statistics, MutView dx, MutView dweight, MutView dbias);

}  // namespace tg::kernels
