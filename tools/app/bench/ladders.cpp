#include "tapegrad/tools/app/bench/ladders.h"

#include "tapegrad/tapegrad.h"

namespace tg::app {
namespace {

using Tensors = std::vector<Tensor>;
constexpr double kFloat = sizeof(float);

std::vector<Work> main_works() {
  return {{"matmul",
           []() -> Ready {
             // Few results, each a long sum, as in the gradient of a weight.
             const Tensor a = rand({128, 16384}), b = rand({16384, 128});
             return {[=] { matmul(a, b); }, 2.0 * a.numel() * 128, 2.0 * a.numel() * kFloat};
           }},
          {"softmax",
           []() -> Ready {
             const Tensor x = randn({256, 1024});
             return {[=] { softmax(x, 1); }, 0, 2.0 * x.numel() * kFloat};
           }},
          {"layer_norm",
           []() -> Ready {
             const Tensor x = randn({256, 1024}), weight = rand({1024}), bias = rand({1024});
             return {[=] { layer_norm(x, {1024}, weight, bias); }, 0, 2.0 * x.numel() * kFloat};
           }},
          {"conv2d",
           []() -> Ready {
             const Shape shape{4, 64, 32, 32};
             const Tensor x =
                 copy_(empty_strided(shape, channels_last_strides(shape)), rand(shape));
             const Tensor weight = rand({64, 64, 3, 3}), bias = rand({64});
             return {[=] { conv2d(x, weight, bias, {.padding = 1}); }, 2.0 * x.numel() * 64 * 9,
                     2.0 * x.numel() * kFloat};
           }},
          {"transpose", []() -> Ready {
             const Tensor x = rand({3000, 3000});
             return {[=] { contiguous(t(x)); }, 0, 2.0 * x.numel() * kFloat};
           }}};
}

}  // namespace

Work main_work(const std::string& ladder) {
  for (const Work& work : main_works())
    if (work.name == ladder) return work;
  fail<ValueError>("no size is set for the ladder of", ladder);
}

std::vector<Work> rung_works(const kernels::lab::Ladder& ladder) {
  std::vector<Work> works;
  for (const kernels::lab::Rung& rung : ladder.rungs) {
    works.push_back(
        {"lab " + ladder.name + "/" + rung.name, [of = ladder.name, name = rung.name]() -> Ready {
           Ready ready = main_work(of).make();
           ready.call = [of, name, call = ready.call] {
             const kernels::lab::Using rung_in_use(of, name);
             call();
           };
           return ready;
         }});
  }
  return works;
}

}  // namespace tg::app
