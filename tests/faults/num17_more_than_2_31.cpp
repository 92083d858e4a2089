#include <fstream>
#include <string>

#include "catch.h"
#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {

constexpr int64_t kRows = 262144, kColumns = 8960;  // 2.3e9 elements
constexpr int64_t kRow = 239674;                    // its elements lie on both sides of 2^31

bool memory_available(double gigabytes) {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  double kilobytes = 0;
  while (info >> key >> kilobytes && std::getline(info, unit))
    if (key == "MemAvailable:" && kilobytes / 1e6 > gigabytes) return true;
  WARN("not run: it needs " << gigabytes << " GB of free memory");
  return false;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

}  // namespace

TEST_CASE("Offsets, views and indices past 2^31 elements", "[NUM-17]") {
  int64_t n = int64_t(5) << 32;
  Shape strides;
  CHECK(view_strides({n}, {1}, {5, int64_t(1) << 32}, &strides));
  CHECK(strides == Shape{int64_t(1) << 32, 1});
  CHECK(extent({3, n}, {n, 1}) == 3 * n);
  CHECK(expanded_strides({n, 1}, {1, 1}, {n, n}) == Shape{1, 0});
  // One byte seen from many places: no memory is needed.
  Tensor x = expand(ones({1}, i8), {n});
  CHECK(x.numel() == n);
  CHECK(slice(x, 0, -3, n).numel() == 3);
  CHECK(select(x, 0, -1).item() == 1);
  CHECK_THROWS_AS(select(x, 0, n), IndexError);
  CHECK(x.index({tensor(std::vector<int64_t>{n - 1, -n, int64_t(1) << 31}, {3})}).numel() == 3);
  CHECK(gather(x, 0, tensor(std::vector<int64_t>{n - 1}, {1})).item() == 1);
  CHECK_THROWS_AS(index_select(x, 0, tensor(std::vector<int64_t>{n}, {1})), IndexError);
  CHECK(arange(n - 2, n, 1, i64).to_vector<int64_t>() == std::vector<int64_t>{n - 2, n - 1});
}

TEST_CASE("A row that crosses 2^31 is read and written whole", "[NUM-17]") {
  if (!memory_available(3)) return;
  Tensor x = empty({kRows, kColumns}, i8);  // pages that nobody touches cost nothing
  Tensor row = cast(arange(kColumns) * 31, i8);
  CHECK(kRow * kColumns == 2147479040);
  Tensor at = tensor(std::vector<int64_t>{kRow}, {1});
  copy_(x[kRow], row);
  CHECK(equal(x[kRow], row));
  CHECK(equal(index_select(x, 0, at)[0], row));
  CHECK(equal(x.index({at})[0], row));
  CHECK(equal(gather(x, 0, full({1, kColumns}, kRow, i64))[0], row));
  CHECK(equal(slice(x, 0, kRow, kRow + 1)[0], row));
  x.index_put_({at, slice()}, 7);
  CHECK(equal(x[kRow], full({kColumns}, 7, i8)));
  index_put_(x, {at}, row, true);
  CHECK(equal(x[kRow], row + 7));
  scatter_add_(x, 0, full({1, kColumns}, kRow, i64), full({1, kColumns}, -7, i8));
  CHECK(equal(x[kRow], row));
}

TEST_CASE("A broadcast sum of more than 2^31 elements is whole", "[NUM-17]") {
  if (kSlow || !memory_available(5)) return;
  Tensor a = reshape(cast(arange(65536) - (arange(65536) / 7).to(i64) * 7, i8), {65536, 1});
  Tensor b = reshape(cast(arange(32769) - (arange(32769) / 5).to(i64) * 5, i8), {1, 32769});
  CHECK(a.index({slice(0, 9), 0}).to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 0, 1});
  Tensor sum = a + b;
  CHECK(sum.numel() == 2147549184);
  CHECK(sum.index({65535, 32768}).item() == 4);  // 65535 mod 7 + 32768 mod 5 = 1 + 3
  CHECK(as_strided(sum, {}, {}, int64_t(1) << 31).item() == 2);  // (65534, 2): 0 + 2
  CHECK(equal(sum[65534], reshape(b, {32769})));
  CHECK(equal(sum[65535], reshape(b, {32769}) + 1));
}
