// Kernel interfaces that have no CUDA kernel yet: using one on a GPU raises, with the way out. A
// kernel that is written takes its line away from here.
#include "tapegrad/core/error.h"
#include "tapegrad/kernels/accumulate.h"
#include "tapegrad/kernels/attention.h"
#include "tapegrad/kernels/batch_norm.h"
#include "tapegrad/kernels/conv2d.h"
#include "tapegrad/kernels/cross_entropy.h"
#include "tapegrad/kernels/dropout.h"
#include "tapegrad/kernels/embedding.h"
#include "tapegrad/kernels/index.h"
#include "tapegrad/kernels/mask.h"
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

void attention(Cuda, View, View, View, View, MutView, MutView, Attention) { none("attention"); }
void attention_backward(Cuda, const AttentionSaved&, View, MutView, MutView, MutView, Attention) {
  none("attention_backward");
}
void attention_dropout_mask(Cuda, MutView, Dropout) { none("attention_dropout_mask"); }

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

void index(Cuda, View, std::span<const IndexColumn>, MutView) { none("index"); }
void index_put(Cuda, MutView, std::span<const IndexColumn>, View, bool) { none("index_put"); }
void gather(Cuda, View, int, View, MutView) { none("gather"); }
void scatter_add(Cuda, MutView, int, View, View) { none("scatter_add"); }

int64_t count_nonzero(Cuda, View) { none("count_nonzero"); }
void nonzero(Cuda, View, MutView) { none("nonzero"); }

void sort(Cuda, View, int, bool, MutView, MutView) { none("sort"); }
void topk(Cuda, View, int, bool, MutView, MutView) { none("topk"); }

void embedding(Cuda, View, View, MutView) { none("embedding"); }
void embedding_backward(Cuda, View, View, MutView, int64_t) { none("embedding_backward"); }

void check_targets(Cuda, View, int64_t, int64_t) { none("check_targets"); }
void cross_entropy(Cuda, View, View, View, MutView, MutView, MutView, CrossEntropy) {
  none("cross_entropy");
}
void cross_entropy_backward(Cuda, View, View, View, View, View, MutView, CrossEntropy) {
  none("cross_entropy_backward");
}

}  // namespace tg::kernels
