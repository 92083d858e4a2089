// The guard bytes themselves: a write beside a block is noticed, whoever owns the block.
#include "tapegrad/core/memory_guard.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "catch.h"
#include "tapegrad/core/allocator.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/scope.h"
#include "tapegrad/core/tensor.h"

using namespace tg;

namespace {

// What check() says; "" if nothing.
std::string damage(const MemoryGuard& guard) {
  try {
    guard.check();
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A write beside a block is found while it lives", "[memory_guard]") {
  if (!MemoryGuard::kWorks) return;
  MemoryGuard guard;
  for (size_t bytes : {0, 1, 12, 64, 1000, 40000, 5000000}) {
    auto* data = static_cast<unsigned char*>(allocate({}, bytes, Purpose::other));
    CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    std::memset(data, 0, bytes);  // all of the block may be written
    CHECK(damage(guard) == "");
    const std::string size = "a block of " + std::to_string(bytes) + " bytes";

    unsigned char old = data[bytes];
    data[bytes] = 7;
    CHECK_THAT(damage(guard), Catch::Contains("byte 1 past the end of " + size));
    data[bytes] = old;
    CHECK(damage(guard) == "");

    old = data[-3];
    data[-3] = 7;
    CHECK_THAT(damage(guard), Catch::Contains("byte 3 before the start of " + size));
    data[-3] = old;
    CHECK(damage(guard) == "");
    deallocate({}, data, bytes, Purpose::other);
    CHECK(damage(guard) == "");
  }
}

TEST_CASE("A write beside a block that was freed since is found too, and told once",
          "[memory_guard]") {
  if (!MemoryGuard::kWorks) return;
  MemoryGuard guard;
  {
    Scope scope("softmax");
    Tensor x = empty({5, 3});
    x.mutable_data<float>()[15] = 1;  // one element too far
  }
  CHECK_THAT(damage(guard), Catch::Contains("past the end of a block of 60 bytes") &&
                                Catch::Contains("softmax had asked for it"));
  CHECK(damage(guard) == "");
  {
    Workspace scratch(100);
    scratch.as<char>()[-64] = 1;
  }
  CHECK_THAT(damage(guard), Catch::Contains("byte 64 before the start of a block of 100 bytes"));
}

TEST_CASE("Fresh memory under a guard holds NaN", "[memory_guard]") {
  if (!MemoryGuard::kWorks) return;
  MemoryGuard guard;
  Tensor x = empty({7}), y = empty({7}, f64), z = empty({7}, bf16);
  CHECK(std::isnan(x.data<float>()[6]));
  CHECK(std::isnan(y.data<double>()[6]));
  CHECK(std::isnan(float(z.data<BFloat16>()[6])));
}

TEST_CASE("Blocks from before a guard, and those that outlive it, are freed rightly",
          "[memory_guard]") {
  MemoryStats before = memory_stats();
  auto guard = std::make_unique<MemoryGuard>();
  Tensor outlives = empty({100});
  Tensor elsewhere;
  std::thread([&] { elsewhere = empty({20000}); }).join();
  Tensor older;
  {
    auto inner = std::make_unique<MemoryGuard>();
    older = empty({3});
    inner.reset();
    CHECK(damage(*guard) == "");
  }
  guard.reset();
  Tensor plain = empty({100});
  {
    MemoryGuard again;
    plain = {};
    outlives = {};
    CHECK(damage(again) == "");
  }
  older = {};
  std::thread([moved = std::move(elsewhere)]() mutable { moved = {}; }).join();
  CHECK(memory_stats().live == before.live);
  CHECK(memory_stats().by_purpose == before.by_purpose);
}

TEST_CASE("A limit holds under a guard, and no size is too absurd", "[memory_guard]") {
  if (!MemoryGuard::kWorks) return;
  MemoryGuard guard;
  MemoryStats before = memory_stats();
  set_memory_limit(before.live + 1000);
  CHECK_THROWS_AS(empty({1000}), OutOfMemoryError);
  set_memory_limit(0);
  CHECK_THROWS_AS(allocate({}, size_t(1) << 46, Purpose::other), OutOfMemoryError);
  CHECK(memory_stats().live == before.live);
}
