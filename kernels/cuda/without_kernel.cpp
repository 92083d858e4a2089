// Kernel interfaces that have no CUDA kernel yet: using one on a GPU raises, with the way out. A
// kernel that is written takes its line away from here.
#include "tapegrad/core/error.h"
#include "tapegrad/kernels/accumulate.h"
#include "tapegrad/kernels/batch_norm.h"
#include "tapegrad/kernels/conv2d.h"
#include "tapegrad/kernels/pool2d.h"
#include "tapegrad/kernels/sort.h"

namespace tg::kernels {
namespace {

[[noreturn]] void none(const char* kernel) {
  fail<DeviceError>(std::string(kernel) +
                    " has no CUDA kernel yet; move its operands with to(kCpuDevice)");
}

}  // namespace

void accumulate(Cuda, View, MutView) { none("accumulate"); }

void batch_norm_statistics(Cuda, View, double, MutView, MutView, double, MutView, MutView) {
  none("batch_norm_statistics");
}
void batch_norm_apply(Cuda, View, View, View, View, View, MutView) { none("batch_norm_apply"); }
void batch_norm_backward(Cuda, View, View, View, View, View, bool, MutView, MutView, MutView) {
  none("batch_norm_backward");
}

void conv2d(Cuda, View, View, View, MutView, const Conv2dGeometry&) { none("conv2d"); }
void conv2d_backward_input(Cuda, View, View, MutView, const Conv2dGeometry&) {
  none("conv2d_backward_input");
}
void conv2d_backward_weight(Cuda, View, View, MutView, const Conv2dGeometry&) {
  none("conv2d_backward_weight");
}

void max_pool2d(Cuda, View, MutView, MutView, const PoolAxis&, const PoolAxis&) {
  none("max_pool2d");
}
void max_pool2d_scatter(Cuda, View, View, MutView, const PoolAxis&, const PoolAxis&) {
  none("max_pool2d_scatter");
}
void max_pool2d_gather(Cuda, View, View, MutView, const PoolAxis&, const PoolAxis&) {
  none("max_pool2d_gather");
}
void avg_pool2d(Cuda, View, MutView, const PoolAxis&, const PoolAxis&, bool) { none("avg_pool2d"); }
void avg_pool2d_backward(Cuda, View, MutView, const PoolAxis&, const PoolAxis&, bool) {
  none("avg_pool2d_backward");
}

void sort(Cuda, View, int, bool, MutView, MutView) { none("sort"); }
void topk(Cuda, View, int, bool, MutView, MutView) { none("topk"); }

}  // namespace tg::kernels
