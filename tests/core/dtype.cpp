#include "tapegrad/core/dtype.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/scalar.h"

using namespace tg;

namespace {

constexpr DType kAll[kDTypeCount] = {f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean};

// torch.result_type of two tensors with dimensions, PyTorch 2.x.
constexpr DType kCommon[kDTypeCount][kDTypeCount] = {
    {f32, f64, f32, f32, f32, f32, f32, f32, f32, f32},
    {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
    {f32, f64, f16, f32, f16, f16, f16, f16, f16, f16},
    {f32, f64, f32, bf16, bf16, bf16, bf16, bf16, bf16, bf16},
    {f32, f64, f16, bf16, i8, i16, i16, i32, i64, i8},
    {f32, f64, f16, bf16, i16, u8, i16, i32, i64, u8},
    {f32, f64, f16, bf16, i16, i16, i16, i32, i64, i16},
    {f32, f64, f16, bf16, i32, i32, i32, i32, i64, i32},
    {f32, f64, f16, bf16, i64, i64, i64, i64, i64, i64},
    {f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean},
};
// torch.result_type of a tensor and True, 2, 2.5.
constexpr DType kWithNumber[kDTypeCount][3] = {
    {f32, f32, f32}, {f64, f64, f64}, {f16, f16, f16}, {bf16, bf16, bf16}, {i8, i8, f32},
    {u8, u8, f32},   {i16, i16, f32}, {i32, i32, f32}, {i64, i64, f32},    {boolean, i64, f32},
};

// The value of a binary16 pattern by its definition.
double half_value(uint16_t bits) {
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

}  // namespace

TEST_CASE("Mixed operands meet in PyTorch's result_type") {
  for (int a = 0; a < kDTypeCount; ++a) {
    for (int b = 0; b < kDTypeCount; ++b) {
      INFO(name_of(kAll[a]) << " with " << name_of(kAll[b]));
      CHECK(promote(kAll[a], kAll[b]) == kCommon[a][b]);
    }
    INFO(name_of(kAll[a]) << " with a number");
    CHECK(result_type(kAll[a], true) == kWithNumber[a][0]);
    CHECK(result_type(kAll[a], 2) == kWithNumber[a][1]);
    CHECK(result_type(kAll[a], 2.5) == kWithNumber[a][2]);
  }
}

TEST_CASE("dtypes have names and sizes") {
  for (DType t : kAll) CHECK(to_dtype(name_of(t)) == t);
  CHECK_THROWS_AS(to_dtype("float128"), DTypeError);
  CHECK(size_of(f64) == 8);
  CHECK(size_of(bf16) == 2);
  CHECK(size_of(boolean) == 1);
  CHECK(dtype_of<long>() == i64);
  CHECK(dtype_of<long long>() == i64);
  CHECK(dtype_of<unsigned char>() == u8);
}

TEST_CASE("f16 holds every one of its 65536 patterns") {
  int wrong = 0;
  for (uint32_t b = 0; b < 65536; ++b) {
    Half h = Half::from_bits(uint16_t(b));
    double right = half_value(uint16_t(b));
    float value = float(h);
    if (std::isnan(right)) {
      wrong += !std::isnan(value) || !std::isnan(float(Half(value)));
    } else {
      wrong += double(value) != right || std::signbit(value) != bool(b & 0x8000);
      wrong += Half(value).bits != b;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("A float becomes the nearest f16, ties to the even one") {
  uint64_t random = 1;
  int wrong = 0;
  for (int i = 0; i < 300000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    // All exponents from far below the subnormals to above the largest.
    double scale = std::ldexp(1.0, int((random >> 40) % 46) - 28);
    float x = float(scale * (1.0 + double(random >> 11) * 0x1p-53));
    if (i % 3 == 0)
      x = float(half_value(uint16_t(random >> 49)) + half_value(uint16_t((random >> 49) + 1))) / 2;
    if (!(x < 65520.0f)) continue;
    uint16_t h = Half(x).bits;
    double error = std::abs(half_value(h) - double(x));
    double above = h == 0x7bff ? 65536.0 : half_value(uint16_t(h + 1));
    double below = h == 0 ? -1.0 : half_value(uint16_t(h - 1));
    double other = std::min(std::abs(above - double(x)), std::abs(double(x) - below));
    wrong += error > other || (error == other && (h & 1));
  }
  CHECK(wrong == 0);
}
