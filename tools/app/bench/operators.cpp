#include "tapegrad/tools/app/bench/operators.h"

#include <memory>

#include "tapegrad/tapegrad.h"

namespace tg::app {
namespace {

using Tensors = std::vector<Tensor>;

double bytes_of(const Tensor& x) { return double(x.numel()) * double(size_of(x.dtype())); }

// An operator on these inputs: each is read once and the result written once.
template <class Operator>
Ready forward(const Tensors& in, double flops, Operator op) {
  double bytes = bytes_of(op(in));
  for (const Tensor& x : in) bytes += bytes_of(x);
  return {[=] { op(in); }, flops, bytes};
}

// The same with the gradients of all inputs, which cost twice as many operations as the result.
template <class Operator>
Ready with_backward(const Tensors& in, double flops, Operator op) {
  for (const Tensor& x : in) x.requires_grad_();
  const Tensor dy = ones(op(in).shape());
  double bytes = 2 * bytes_of(dy);
  for (const Tensor& x : in) bytes += 2 * bytes_of(x);
  return {[=] {
            op(in).backward(dy);
            for (const Tensor& x : in) x.set_grad({});
          },
          3 * flops, bytes};
}

constexpr int64_t kMany = 16 << 20;  // elements, 64 MB: more than the caches hold
constexpr double kProduct512 = 2.0 * 512 * 512 * 512;

Tensor add_both(const Tensors& in) { return in[0] + in[1]; }
Tensor multiply(const Tensors& in) { return matmul(in[0], in[1]); }
Tensor multiply_nt(const Tensors& in) { return matmul(in[0], t(in[1])); }
Tensor multiply_tn(const Tensors& in) { return matmul(t(in[0]), in[1]); }
Tensor attend(const Tensors& in) {
  return scaled_dot_product_attention(in[0], in[1], in[2], {.causal = true});
}
template <int64_t kStride, int64_t kPadding>
Tensor convolve(const Tensors& in) {
  return conv2d(in[0], in[1], {}, {.stride = kStride, .padding = kPadding});
}

// The images of a batch, channels next to each other, as convolutions hand them on.
Tensor images(const Shape& shape) {
  return copy_(empty_strided(shape, channels_last_strides(shape)), rand(shape));
}

std::vector<Work> small_works() {
  return {{"x + y, 4 elements",
           [] {
             return forward({rand({4}), rand({4})}, 4, add_both);
           }},
          {"linear 64 x 784 to 128", [] {
             return forward({rand({64, 784}), rand({128, 784}), rand({128})}, 2.0 * 64 * 784 * 128,
                            [](const Tensors& in) { return linear(in[0], in[1], in[2]); });
           }}};
}

std::vector<Work> products() {
  const auto square = [](int64_t n) { return rand({n, n}); };
  return {
      {"matmul 512 x 512 x 512",
       [=] {
         return forward({square(512), square(512)}, kProduct512, multiply);
       }},
      {"matmul 512, second transposed",
       [=] {
         return forward({square(512), square(512)}, kProduct512, multiply_nt);
       }},
      {"matmul 512, first transposed",
       [=] {
         return forward({square(512), square(512)}, kProduct512, multiply_tn);
       }},
      {"matmul 1024 x 1024 x 1024",
       [=] {
         return forward({square(1024), square(1024)}, 8 * kProduct512, multiply);
       }},
      {"matmul 96 of 64 x 64 x 64",
       [] {
         return forward({rand({96, 64, 64}), rand({96, 64, 64})}, 96 * 2.0 * 64 * 64 * 64,
                        multiply);
       }},
      {"matmul 512, forward and backward",
       [=] {
         return with_backward({square(512), square(512)}, kProduct512, multiply);
       }},
      {"attention 8 x 8 x 512 x 64, causal",
       [] {
         const Shape shape{8, 8, 512, 64};
         return forward({rand(shape), rand(shape), rand(shape)}, 2.0 * 64 * 512 * 512 * 64, attend);
       }},
      {"attention, forward and backward", [] {
         const Shape shape{8, 8, 512, 64};
         return with_backward({rand(shape), rand(shape), rand(shape)}, 2.0 * 64 * 512 * 512 * 64,
                              attend);
       }}};
}

std::vector<Work> convolutions() {
  const double direct = 2.0 * 32 * 32 * 32 * 64 * 64 * 9;
  return {
      {"conv2d 3x3, 64 to 64, 32 x 32 x 32",
       [=] {
         return forward({images({32, 64, 32, 32}), rand({64, 64, 3, 3})}, direct, convolve<1, 1>);
       }},
      {"conv2d 3x3, forward and backward",
       [=] {
         return with_backward({images({32, 64, 32, 32}), rand({64, 64, 3, 3})}, direct,
                              convolve<1, 1>);
       }},
      {"conv2d 1x1, 64 to 64, 32 x 32 x 32",
       [=] {
         return forward({images({32, 64, 32, 32}), rand({64, 64, 1, 1})}, direct / 9,
                        convolve<1, 0>);
       }},
      {"conv2d 3x3 stride 2, 64 to 128",
       [=] {
         return forward({images({32, 64, 32, 32}), rand({128, 64, 3, 3})}, direct / 2,
                        convolve<2, 1>);
       }},
      {"max_pool2d 2x2, 32 x 64 x 112 x 112", [] {
         return forward({images({32, 64, 112, 112})}, 0,
                        [](const Tensors& in) { return max_pool2d(in[0], 2); });
       }}};
}

std::vector<Work> large_works() {
  const auto many = [] { return rand({kMany}); };
  const auto rows = [] { return rand({kMany / 1024, 1024}); };
  return {
      {"x + y, 16 M",
       [=] {
         return forward({many(), many()}, kMany, add_both);
       }},
      {"relu, 16 M",
       [=] { return forward({many()}, 0, [](const Tensors& in) { return relu(in[0]); }); }},
      {"gelu, 16 M",
       [=] { return forward({many()}, 0, [](const Tensors& in) { return gelu(in[0]); }); }},
      {"dropout, 16 M",
       [=] { return forward({many()}, 0, [](const Tensors& in) { return dropout(in[0]); }); }},
      {"sum, 16 M",
       [=] { return forward({many()}, kMany, [](const Tensors& in) { return sum(in[0]); }); }},
      {"transpose, 4096 x 4096",
       [] {
         return forward({rand({4096, 4096})}, 0,
                        [](const Tensors& in) { return contiguous(t(in[0])); });
       }},
      {"softmax, 16384 x 1024",
       [=] { return forward({rows()}, 0, [](const Tensors& in) { return softmax(in[0], 1); }); }},
      {"layer_norm, 16384 x 1024",
       [=] {
         return forward({rows(), rand({1024}), rand({1024})}, 0,
                        [](const Tensors& in) { return layer_norm(in[0], {1024}, in[1], in[2]); });
       }},
      {"cross_entropy, 16384 x 1024",
       [=] {
         return forward({rows(), randint(0, 1024, {kMany / 1024})}, 0,
                        [](const Tensors& in) { return cross_entropy(in[0], in[1]); });
       }},
      {"embedding, 32768 of 512",
       [] {
         // Of the table, only the rows that are looked up are read.
         const Tensor table = rand({8192, 512}), index = randint(0, 8192, {32768});
         Ready ready =
             forward({index}, 0, [=](const Tensors& in) { return embedding(in[0], table); });
         ready.bytes += 32768 * 512 * 4;
         return ready;
       }},
      {"adamw step, 4 M parameters", [] {
         auto model = std::make_shared<nn::Linear>(2048, 2048, nn::LinearOptions{.bias = false});
         auto optimizer = std::make_shared<optim::AdamW>(model->named_parameters());
         sum((*model)(ones({1, 2048}))).backward();
         // Reads parameter, gradient and two averages, writes all but the gradient.
         return Ready{[=] { optimizer->step(); }, 0, 7.0 * 2048 * 2048 * 4};
       }}};
}

}  // namespace

std::vector<Work> operator_works(const std::string& part) {
  std::vector<Work> works;
  for (const std::vector<Work>& group : {small_works(), products(), convolutions(), large_works()})
    for (const Work& work : group)
      if (work.name.find(part) != std::string::npos) works.push_back(work);
  return works;
}

}  // namespace tg::app
