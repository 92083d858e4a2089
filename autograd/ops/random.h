// Random tensors. The bits depend on the generator's seed and position alone, not on device or
// threads (core/random.h). `generator`: nullptr is the device's default one.
#pragma once
#include "tapegrad/core/tensor.h"

namespace tg {

class Generator;

Tensor rand(const Shape& shape, TensorOptions options = {},
            Generator* generator = nullptr);  // [0,1)
Tensor randn(const Shape& shape, TensorOptions options = {},
             Generator* generator = nullptr);  // N(0,1)
Tensor randint(int64_t low, int64_t high, const Shape& shape, TensorOptions options = {i64},
               Generator* generator = nullptr);              // [low, high)
Tensor randperm(int64_t n, Generator* generator = nullptr);  // i64
// 1 with the probability given by each element.
Tensor bernoulli(const Tensor& probability, Generator* generator = nullptr);

const Tensor& uniform_(const Tensor& x, double low = 0, double high = 1,
                       Generator* generator = nullptr);
const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1,
                      Generator* generator = nullptr);

}  // namespace tg
