// A sample is a std::tuple of tensors or an aggregate of them (struct { Tensor image, label; }); a
// batch is the same type, its tensors with one more dimension in front.
#pragma once
#include <tuple>
#include <type_traits>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg::data {

namespace detail {

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;

// Converts to anything: T{any, any} compiles for as many as T has members.
struct AnyMember {
  template <class T>
  operator T() const;
};
template <class T, class... Any>
constexpr int member_count() {
  if constexpr (requires { T{Any{}..., AnyMember{}}; })
    return member_count<T, Any..., AnyMember>();
  else
    return int(sizeof...(Any));
}

}  // namespace detail

// Calls fn(tensor) for each member, in order. Up to 8 members.
template <class Sample, class F>
void for_each_tensor(Sample&& sample, F&& fn) {
  using S = std::remove_cvref_t<Sample>;
  if constexpr (std::is_same_v<S, Tensor>) {
    fn(sample);
  } else if constexpr (detail::is_tuple<S>) {
    std::apply([&](auto&&... t) { (fn(t), ...); }, sample);
  } else {
    constexpr int n = detail::member_count<S>();
    static_assert(n >= 1 && n <= 8, "a sample is a tuple or an aggregate of 1 to 8 tensors");
    if constexpr (n == 1) {
      auto& [a] = sample;
      fn(a);
    } else if constexpr (n == 2) {
      auto& [a, b] = sample;
      fn(a), fn(b);
    } else if constexpr (n == 3) {
      auto& [a, b, c] = sample;
      fn(a), fn(b), fn(c);
    } else if constexpr (n == 4) {
      auto& [a, b, c, d] = sample;
      fn(a), fn(b), fn(c), fn(d);
    } else if constexpr (n == 5) {
      auto& [a, b, c, d, e] = sample;
      fn(a), fn(b), fn(c), fn(d), fn(e);
    } else if constexpr (n == 6) {
      auto& [a, b, c, d, e, f] = sample;
      fn(a), fn(b), fn(c), fn(d), fn(e), fn(f);
    } else if constexpr (n == 7) {
      auto& [a, b, c, d, e, f, g] = sample;
      fn(a), fn(b), fn(c), fn(d), fn(e), fn(f), fn(g);
    } else {
      auto& [a, b, c, d, e, f, g, h] = sample;
      fn(a), fn(b), fn(c), fn(d), fn(e), fn(f), fn(g), fn(h);
    }
  }
}

template <class Sample>
std::vector<Tensor> to_list(const Sample& sample) {
  std::vector<Tensor> list;
  for_each_tensor(sample, [&](const Tensor& t) { list.push_back(t); });
  return list;
}

template <class Sample>
Sample from_list(const std::vector<Tensor>& list) {
  Sample sample{};
  size_t i = 0;
  for_each_tensor(sample, [&](Tensor& t) { t = list[i++]; });
  return sample;
}

}  // namespace tg::data
