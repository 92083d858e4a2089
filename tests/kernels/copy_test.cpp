// Copies between layouts and dtypes, and fills, against loops that address every element.
#include "tapegrad/kernels/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "catch.h"

using namespace tg;

namespace {

// Memory of a view, with guard bytes behind it.
struct Block {
  Shape shape, strides;
  DType dtype;
  std::vector<unsigned char> bytes;
  Block(Shape s, Shape st, DType t) : shape(s), strides(st), dtype(t) {
    int64_t span = 1;
    for (int i = 0; i < s.rank(); ++i) span += (s[i] - 1) * st[i];
    bytes.assign(size_t(std::max<int64_t>(span, 0)) * size_of(t) + 64, 0xa5);
  }
  MutView view() { return {{bytes.data(), dtype, &shape, &strides, shape.numel()}}; }
  template <class T>
  T& at(std::initializer_list<int64_t> index) {
    int64_t o = 0;
    int i = 0;
    for (int64_t v : index) o += v * strides[i++];
    return reinterpret_cast<T*>(bytes.data())[o];
  }
};

template <class From, class To>
To converted(From v) {
  Block x({}, {}, dtype_of<From>()), y({}, {}, dtype_of<To>());
  std::memcpy(x.bytes.data(), &v, sizeof v);
  kernels::copy(Cpu{}, x.view(), y.view());
  To result;
  std::memcpy(&result, y.bytes.data(), sizeof result);
  return result;
}

template <class T>
void check_layouts(int64_t a, int64_t b, int64_t c) {
  const Shape shape{a, b, c};
  const Shape layouts[] = {{b * c, c, 1}, {1, a, a * b},         {b, 1, a * b},
                           {1, a * c, a}, {2 * b * c, 2 * c, 2}, {b * c + 7, c, 1}};
  for (const Shape& from : layouts) {
    for (const Shape& to : layouts) {
      Block x(shape, from, dtype_of<T>()), y(shape, to, dtype_of<T>());
      for (size_t i = 0; i + 64 < x.bytes.size(); ++i)
        x.bytes[i] = (unsigned char)(i * 31 + i / 251);
      auto before = y.bytes;
      kernels::copy(Cpu{}, x.view(), y.view());
      for (int64_t i = 0; i < a; ++i)
        for (int64_t j = 0; j < b; ++j)
          for (int64_t k = 0; k < c; ++k) {
            REQUIRE(std::memcmp(&x.at<T>({i, j, k}), &y.at<T>({i, j, k}), sizeof(T)) == 0);
            std::memset(static_cast<void*>(&y.at<T>({i, j, k})), 0xa5, sizeof(T));
          }
      REQUIRE(y.bytes == before);  // nothing else was written
    }
  }
}

}  // namespace

TEST_CASE("copy moves every element between any two layouts", "[kernels][copy]") {
  check_layouts<float>(3, 5, 7);
  check_layouts<float>(2, 70, 133);
  check_layouts<double>(70, 9, 66);
  check_layouts<BFloat16>(5, 65, 64);
  check_layouts<uint8_t>(1, 130, 67);
  check_layouts<int64_t>(33, 40, 50);
}

TEST_CASE("copy broadcasts and converts in strided memory", "[kernels][copy]") {
  Block x({1, 3}, {9, 2}, DType::i32), y({4, 3}, {1, 5}, DType::f16);
  for (int j = 0; j < 3; ++j) x.at<int32_t>({0, j}) = 10 * j - 3;
  kernels::copy(Cpu{}, x.view(), y.view());
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j) CHECK(float(y.at<Half>({i, j})) == float(10 * j - 3));
}

TEST_CASE("conversions cut fractions, stop at bounds and keep NaN among floats",
          "[kernels][copy]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  CHECK(converted<float, int32_t>(-2.9f) == -2);
  CHECK(converted<float, int32_t>(3e9f) == std::numeric_limits<int32_t>::max());
  CHECK(converted<float, int64_t>(-inf) == std::numeric_limits<int64_t>::min());
  CHECK(converted<float, int8_t>(nan) == 0);
  CHECK(converted<double, uint8_t>(255.9) == 255);
  CHECK(converted<double, uint8_t>(-1.0) == 0);
  CHECK(converted<int32_t, uint8_t>(257) == 1);
  CHECK(converted<float, bool>(0.5f));
  CHECK(converted<float, bool>(nan));
  CHECK_FALSE(converted<float, bool>(-0.0f));
  CHECK_FALSE(converted<Half, bool>(Half(0.0f)));
  CHECK(converted<bool, float>(true) == 1.0f);
  CHECK(std::isnan(float(converted<double, Half>(double(nan)))));
  // One rounding from f64: 1 + 2^-11 + 2^-30 lies above the middle of two f16 numbers.
  CHECK(float(converted<double, Half>(1 + 0x1p-11 + 0x1p-30)) == 1 + 0x1p-10f);
  CHECK(float(converted<double, Half>(1 + 0x1p-11)) == 1.0f);
  CHECK(converted<double, BFloat16>(1e300).bits == 0x7f80);
}

TEST_CASE("long runs convert as single elements do", "[kernels][copy]") {
  const int64_t n = 65536 + 5;
  Block half({n}, {1}, DType::f16), wide({n}, {1}, DType::f32), back({n}, {1}, DType::f16);
  for (int64_t i = 0; i < n; ++i) half.at<Half>({i}) = Half::from_bits(uint16_t(i));
  kernels::copy(Cpu{}, half.view(), wide.view());
  kernels::copy(Cpu{}, wide.view(), back.view());
  for (int64_t i = 0; i < n; ++i) {
    float one = float(half.at<Half>({i}));
    if (std::isnan(one)) {
      REQUIRE(std::isnan(wide.at<float>({i})));
      REQUIRE(std::isnan(float(back.at<Half>({i}))));
    } else {
      REQUIRE(wide.at<float>({i}) == one);
      REQUIRE(back.at<Half>({i}).bits == half.at<Half>({i}).bits);
    }
  }
}

TEST_CASE("[NUM-09] f32 to bf16 rounds to nearest even, in long runs too", "[kernels][copy]") {
  const uint32_t in[] = {0x3E89CCD5, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF,
                         0x7F7F7FFF, 0x7F800001, 0x7FFF8C22, 0xFF800000, 0x80000000};
  const uint16_t right[] = {0x3E8A, 0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7F7F, 0, 0, 0xFF80, 0x8000};
  for (int64_t shift : {0, 3}) {
    Block x({40}, {1}, DType::f32), y({40}, {1}, DType::bf16);
    for (int64_t i = 0; i < 40; ++i) x.at<uint32_t>({i}) = in[(i + shift) % 10];
    kernels::copy(Cpu{}, x.view(), y.view());
    for (int64_t i = 0; i < 40; ++i) {
      uint16_t bits = y.at<uint16_t>({i}), want = right[(i + shift) % 10];
      if (want)
        CHECK(bits == want);
      else
        CHECK((bits & 0x7fff) > 0x7f80);  // NaN
    }
  }
}

TEST_CASE("fill writes the converted value and nothing beside it", "[kernels][copy]") {
  Block y({3, 1000}, {2000, 2}, DType::i16);
  kernels::fill(Cpu{}, y.view(), -7.9);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 1000; ++j) {
      REQUIRE(y.at<int16_t>({i, j}) == -7);
      if (j + 1 < 1000) REQUIRE(*(&y.at<int16_t>({i, j}) + 1) == int16_t(0xa5a5));
    }
  Block big({100000}, {1}, DType::i64);
  kernels::fill(Cpu{}, big.view(), std::numeric_limits<int64_t>::max());
  CHECK(big.at<int64_t>({99999}) == std::numeric_limits<int64_t>::max());
}
