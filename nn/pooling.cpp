#include "tapegrad/nn/pooling.h"

namespace tg::nn {

namespace {
void check_window(const char* who, Size2 kernel, const Pool2dOptions& o) {
  check<ValueError>(kernel.h > 0 && kernel.w > 0, who, "the kernel size must be at least 1, got",
                    kernel);
  check<ValueError>(o.stride.h >= 0 && o.stride.w >= 0, who, "stride must not be negative, got",
                    o.stride);
  check<ValueError>(o.padding.h >= 0 && o.padding.w >= 0 && o.padding.h <= kernel.h / 2 &&
                        o.padding.w <= kernel.w / 2,
                    who, "padding must be in [0, half the kernel size], got padding", o.padding,
                    "kernel", kernel);
}
}  // namespace

MaxPool2d::MaxPool2d(Size2 kernel, Pool2dOptions o) : kernel_size(kernel), options(o) {
  check_window("MaxPool2d:", kernel, o);
}

AvgPool2d::AvgPool2d(Size2 kernel, Pool2dOptions o) : kernel_size(kernel), options(o) {
  check_window("AvgPool2d:", kernel, o);
}

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Size2 output) : output_size(output) {
  check<ValueError>(output.h > 0 && output.w > 0,
                    "AdaptiveAvgPool2d: the output size must be at least 1, got", output);
}

}  // namespace tg::nn
