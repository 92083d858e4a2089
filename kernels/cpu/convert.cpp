#include "tapegrad/kernels/cpu/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

namespace {

template <int kDType>
struct TypeOf;
template <>
struct TypeOf<int(DType::f32)> : std::type_identity<float> {};
template <>
struct TypeOf<int(DType::f64)> : std::type_identity<double> {};
template <>
struct TypeOf<int(DType::f16)> : std::type_identity<Half> {};
template <>
struct TypeOf<int(DType::bf16)> : std::type_identity<BFloat16> {};
template <>
struct TypeOf<int(DType::i8)> : std::type_identity<int8_t> {};
template <>
struct TypeOf<int(DType::u8)> : std::type_identity<uint8_t> {};
template <>
struct TypeOf<int(DType::i16)> : std::type_identity<int16_t> {};
template <>
struct TypeOf<int(DType::i32)> : std::type_identity<int32_t> {};
template <>
struct TypeOf<int(DType::i64)> : std::type_identity<int64_t> {};
template <>
struct TypeOf<int(DType::boolean)> : std::type_identity<bool> {};

template <class T>
constexpr bool is_short_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// C++ leaves open what a float beyond an integer's range becomes; here it is the bound, NaN is 0.
template <class To, class From>
To cut_to_integer(From v) {
  constexpr From low = From(std::numeric_limits<To>::min());
  constexpr From above = From(std::numeric_limits<To>::max() / 2 + 1) * 2;  // max + 1, exact
  if (!(v >= low)) return v != v ? To(0) : std::numeric_limits<To>::min();
  return v < above ? To(v) : std::numeric_limits<To>::max();
}

template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (is_short_float<From>)
    return convert<To>(float(v));
  else if constexpr (std::is_same_v<To, bool>)
    return v != From(0);
  else if constexpr (is_short_float<To>)
    return To(float(v));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return cut_to_integer<To>(v);
  else
    return To(v);
}

// f64 to a 16-bit float is rounded once: by way of f32 the last bit of f32 is made odd where it is
// not exact, so that the second rounding sees that something was left.
template <class To>
To round_once(double v) {
  float f = float(v);
  if (v == v && double(f) != v) {
    uint32_t u = std::bit_cast<uint32_t>(f);
    bool too_big = std::abs(double(f)) > std::abs(v);
    if (too_big) --u;  // towards zero (also from infinity to the largest float)
    f = std::bit_cast<float>(u | 1u);
  }
  return To(f);
}

template <class From, class To>
void convert_plain(const void* from, void* to, int64_t n) {
  const From* x = static_cast<const From*>(from);
  To* y = static_cast<To*>(to);
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(y, x, size_t(n) * sizeof(To));
  } else if constexpr (std::is_same_v<From, double> && is_short_float<To>) {
    for (int64_t i = 0; i < n; ++i) y[i] = round_once<To>(x[i]);
  } else {
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
  }
}

#if defined(__F16C__) && defined(__AVX2__)
// The CPU's own conversions, 8 at a time; the rest goes the plain way, which gives the same bits.
void half_to_float(const void* from, void* to, int64_t n) {
  const Half* x = static_cast<const Half*>(from);
  float* y = static_cast<float*>(to);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  convert_plain<Half, float>(x + i, y + i, n - i);
}
void float_to_half(const void* from, void* to, int64_t n) {
  const float* x = static_cast<const float*>(from);
  Half* y = static_cast<Half*>(to);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  convert_plain<float, Half>(x + i, y + i, n - i);
}
void bfloat_to_float(const void* from, void* to, int64_t n) {
  const BFloat16* x = static_cast<const BFloat16*>(from);
  float* y = static_cast<float*>(to);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
    _mm256_storeu_ps(y + i, _mm256_castsi256_ps(wide));
  }
  convert_plain<BFloat16, float>(x + i, y + i, n - i);
}
// Rounds to nearest even by adding half of the last kept bit; NaN is set aside before.
void float_to_bfloat(const void* from, void* to, int64_t n) {
  const float* x = static_cast<const float*>(from);
  BFloat16* y = static_cast<BFloat16*>(to);
  const __m256i one = _mm256_set1_epi32(1), half = _mm256_set1_epi32(0x7fff);
  const __m256i quiet = _mm256_set1_epi32(0x40);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 v = _mm256_loadu_ps(x + i);
    __m256i u = _mm256_castps_si256(v);
    __m256i upper = _mm256_srli_epi32(u, 16);
    __m256i bias = _mm256_add_epi32(half, _mm256_and_si256(upper, one));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, bias), 16);
    __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    __m256i r =
        _mm256_blendv_epi8(rounded, _mm256_or_si256(upper, quiet), _mm256_castps_si256(nan));
    __m256i packed = _mm256_packus_epi32(r, r);  // each half doubled
    __m256i joined = _mm256_permute4x64_epi64(packed, 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm256_castsi256_si128(joined));
  }
  convert_plain<float, BFloat16>(x + i, y + i, n - i);
}
#else
constexpr ConvertRun half_to_float = convert_plain<Half, float>;
constexpr ConvertRun float_to_half = convert_plain<float, Half>;
constexpr ConvertRun bfloat_to_float = convert_plain<BFloat16, float>;
constexpr ConvertRun float_to_bfloat = convert_plain<float, BFloat16>;
#endif

using Row = std::array<ConvertRun, kDTypeCount>;
template <int kFrom, int... kTo>
constexpr Row row(std::integer_sequence<int, kTo...>) {
  return {convert_plain<typename TypeOf<kFrom>::type, typename TypeOf<kTo>::type>...};
}
template <int... kFrom>
constexpr std::array<Row, kDTypeCount> table(std::integer_sequence<int, kFrom...> all) {
  return {row<kFrom>(all)...};
}

template <class T>
void gather_typed(const char* from, int64_t step, T* to, int64_t n) {
  if (step == 0) {
    std::fill_n(to, n, *reinterpret_cast<const T*>(from));
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = *reinterpret_cast<const T*>(from + i * step);
}
template <class T>
void scatter_typed(const T* from, char* to, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * step) = from[i];
}

// An unsigned integer type of the given size, for code that only moves bits.
template <class F>
void with_unsigned(int64_t bytes, F&& fn) {
  if (bytes == 4) return fn.template operator()<uint32_t>();
  if (bytes == 8) return fn.template operator()<uint64_t>();
  if (bytes == 2) return fn.template operator()<uint16_t>();
  fn.template operator()<uint8_t>();
}

}  // namespace

ConvertRun convert_run(DType from, DType to) {
  if (from == DType::f32 && to == DType::bf16) return float_to_bfloat;
  if (from == DType::bf16 && to == DType::f32) return bfloat_to_float;
  if (from == DType::f32 && to == DType::f16) return float_to_half;
  if (from == DType::f16 && to == DType::f32) return half_to_float;
  static constexpr auto all = table(std::make_integer_sequence<int, kDTypeCount>());
  return all[size_t(from)][size_t(to)];
}

void gather_run(const char* from, int64_t step, char* to, int64_t n, int64_t bytes) {
  if (step == bytes) {
    std::memcpy(to, from, size_t(n * bytes));
    return;
  }
  with_unsigned(bytes, [&]<class T>() { gather_typed(from, step, reinterpret_cast<T*>(to), n); });
}

void scatter_run(const char* from, char* to, int64_t step, int64_t n, int64_t bytes) {
  if (step == bytes) {
    std::memcpy(to, from, size_t(n * bytes));
    return;
  }
  with_unsigned(bytes,
                [&]<class T>() { scatter_typed(reinterpret_cast<const T*>(from), to, step, n); });
}

}  // namespace tg::kernels
