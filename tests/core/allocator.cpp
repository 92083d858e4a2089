#include "tapegrad/core/allocator.h"

#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "catch.h"
#include "tapegrad/core/cpu_memory.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/scope.h"
#include "tapegrad/core/tensor.h"

using namespace tg;

namespace {

int64_t sum_of_purposes(const MemoryStats& s) {
  return std::accumulate(s.by_purpose.begin(), s.by_purpose.end(), int64_t(0));
}

struct NoLimit {
  ~NoLimit() { set_memory_limit(0); }
};

std::string message_of_allocate(size_t bytes, Device device = {}) {
  try {
    deallocate(device, allocate(device, bytes, Purpose::saved), bytes, Purpose::saved);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Size classes hold what is asked for with little waste", "[allocator]") {
  using namespace tg::detail;
  int previous = 0;
  for (size_t bytes = 0; bytes < 100000; ++bytes) {
    int c = size_class(bytes);
    size_t size = class_bytes(c);
    bool fits = size >= bytes && size % 64 == 0 && c >= previous && c <= previous + 1;
    bool lean = size <= 64 || size - bytes < 64 || size - bytes <= bytes / 8;
    if (!fits || !lean || size_class(size) != c) FAIL(bytes << " -> class of " << size);
    previous = c;
  }
  for (size_t bytes : {size_t(1) << 20, (size_t(1) << 33) + 1, kLargestBlock})
    CHECK(class_bytes(size_class(bytes)) >= bytes);
}

TEST_CASE("Blocks are aligned, writable and never null", "[allocator]") {
  for (size_t bytes : {0, 1, 16, 63, 64, 65, 1000, 32768, 32769, 100000, 5000000}) {
    void* a = allocate({}, bytes, Purpose::other);
    void* b = allocate({}, bytes, Purpose::other);
    REQUIRE(a != nullptr);
    CHECK(a != b);
    CHECK(reinterpret_cast<uintptr_t>(a) % 64 == 0);
    if (bytes) {
      std::memset(a, 1, bytes);
      std::memset(b, 2, bytes);
      CHECK(static_cast<char*>(a)[bytes - 1] == 1);
    }
    deallocate({}, a, bytes, Purpose::other);
    deallocate({}, b, bytes, Purpose::other);
  }
}

TEST_CASE("Statistics are exact and the purposes sum to live", "[allocator]") {
  reset_peak_memory();
  MemoryStats before = memory_stats();
  void* a = allocate({}, 1000, Purpose::parameter);
  void* b = allocate({}, 5000000, Purpose::gradient);
  MemoryStats now = memory_stats();
  CHECK(now.live - before.live == 5001000);
  CHECK(now[Purpose::parameter] - before[Purpose::parameter] == 1000);
  CHECK(now[Purpose::gradient] - before[Purpose::gradient] == 5000000);
  CHECK(sum_of_purposes(now) == now.live);
  CHECK(now.peak == now.live);
  CHECK(now.reserved >= now.live);

  retag({}, 1000, Purpose::parameter, Purpose::saved);
  now = memory_stats();
  CHECK(now[Purpose::parameter] == before[Purpose::parameter]);
  CHECK(now[Purpose::saved] - before[Purpose::saved] == 1000);
  CHECK(sum_of_purposes(now) == now.live);

  deallocate({}, b, 5000000, Purpose::gradient);
  deallocate({}, a, 1000, Purpose::saved);
  now = memory_stats();
  CHECK(now.live == before.live);
  CHECK(now.by_purpose == before.by_purpose);
  CHECK(now.peak == before.live + 5001000);
  reset_peak_memory();
  CHECK(memory_stats().peak == before.live);
}

TEST_CASE("Freed blocks are used again, and empty_cache gives large ones back", "[allocator]") {
  if (detail::kExactBlocks) return;  // under the address sanitizer nothing is kept
  for (size_t bytes : {100, 3000000}) {
    void* a = allocate({}, bytes, Purpose::other);
    deallocate({}, a, bytes, Purpose::other);
    void* b = allocate({}, bytes, Purpose::other);
    CHECK(a == b);
    deallocate({}, b, bytes, Purpose::other);
  }
  int64_t before = memory_stats().reserved;
  empty_cache();
  CHECK(memory_stats().reserved <= before - 3000000);
  // 1000 rounds of the same pattern take no more than the first.
  auto round = [] {
    for (size_t bytes : {100000, 200000, 40000, 100000}) {
      void* a = allocate({}, bytes, Purpose::other);
      void* b = allocate({}, bytes + 1, Purpose::other);
      deallocate({}, a, bytes, Purpose::other);
      deallocate({}, b, bytes + 1, Purpose::other);
    }
  };
  round();
  int64_t first = memory_stats().reserved;
  for (int i = 0; i < 1000; ++i) round();
  CHECK(memory_stats().reserved == first);
}

TEST_CASE("What is cached is bounded when sizes keep changing", "[allocator]") {
  empty_cache();
  int64_t before = memory_stats().reserved;
  for (size_t i = 0; i < 60; ++i) {
    size_t bytes = (size_t(4) << 20) * (40 + i) / 40;  // 4 to 10 MiB
    void* a = allocate({}, bytes, Purpose::other);
    deallocate({}, a, bytes, Purpose::other);
  }
  // A quarter more than the largest use, and 64 MiB.
  CHECK(memory_stats().reserved - before <= (int64_t(12) << 20) * 5 / 4 + (int64_t(64) << 20));
  empty_cache();
}

TEST_CASE("A limit refuses, says why, and leaves the accounts right", "[allocator]") {
  NoLimit guard;
  MemoryStats before = memory_stats();
  void* held = allocate({}, 3 << 20, Purpose::parameter);
  set_memory_limit(before.live + (4 << 20));
  Scope scope("matmul");
  std::string message = message_of_allocate(2 << 20);
  CHECK(message.find("matmul: out of memory on cpu: asked for 2.00 MiB") == 0);
  CHECK(message.find("parameter 3.0") != std::string::npos);
  CHECK(message.find("limit") != std::string::npos);
  CHECK(message_of_allocate(1 << 20) == "");
  set_memory_limit(0);
  CHECK(message_of_allocate(2 << 20) == "");
  deallocate({}, held, 3 << 20, Purpose::parameter);
  CHECK(memory_stats().live == before.live);
  CHECK_THROWS_AS(set_memory_limit(-1), ValueError);
}

TEST_CASE("More than a machine can have is an OutOfMemoryError", "[allocator]") {
  MemoryStats before = memory_stats();
  CHECK_THROWS_AS(allocate({}, size_t(1) << 62, Purpose::other), OutOfMemoryError);
  CHECK_THROWS_AS(allocate({}, ~size_t(0), Purpose::other), OutOfMemoryError);
  CHECK_THROWS_AS(empty({int64_t(1) << 50}), OutOfMemoryError);
  CHECK(memory_stats().live == before.live);
}

TEST_CASE("A device that this build lacks is named", "[allocator]") {
  CHECK(message_of_allocate(64, {Device::cuda, 63}).find("cuda:63") != std::string::npos);
  CHECK_THROWS_AS(empty({2}, Device{Device::cuda, 63}), DeviceError);
  CHECK_THROWS_AS(memory_stats({Device::cuda, 63}), DeviceError);
}

TEST_CASE("Blocks may be freed by another thread", "[allocator]") {
  MemoryStats before = memory_stats();
  std::mutex mutex;
  std::vector<std::pair<unsigned char*, size_t>> shared;
  std::atomic<int> damaged{0};
  auto check_and_free = [&](std::pair<unsigned char*, size_t> block) {
    for (size_t i = 0; i < block.second; ++i)
      if (block.first[i] != (block.second & 0xff)) {
        ++damaged;
        break;
      }
    deallocate({}, block.first, block.second, Purpose::batch);
  };
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      uint32_t random = t * 77 + 1;
      for (int round = 0; round < 3000; ++round) {
        random = random * 1664525 + 1013904223;
        size_t bytes = (random >> 8) % ((random & 0x80) ? 2000 : 60000);
        auto* data = static_cast<unsigned char*>(allocate({}, bytes, Purpose::other));
        retag({}, bytes, Purpose::other, Purpose::batch);
        std::memset(data, int(bytes & 0xff), bytes);
        std::pair<unsigned char*, size_t> other{};
        {
          std::lock_guard<std::mutex> lock(mutex);
          shared.push_back({data, bytes});
          if (shared.size() > 40) {
            std::swap(shared[(random >> 12) % shared.size()], shared.back());
            other = shared.back();
            shared.pop_back();
          }
        }
        if (other.first) check_and_free(other);
      }
    });
  for (std::thread& t : threads) t.join();
  for (auto& block : shared) check_and_free(block);
  CHECK(damaged == 0);
  CHECK(memory_stats().live == before.live);
  CHECK(memory_stats().by_purpose == before.by_purpose);
}

TEST_CASE("A thread that ends leaves its free blocks to the others", "[allocator]") {
  if (detail::kExactBlocks) return;
  auto work = [] {
    void* blocks[200];
    for (void*& b : blocks) b = allocate({}, 20000, Purpose::other);
    for (void* b : blocks) deallocate({}, b, 20000, Purpose::other);
  };
  std::thread(work).join();
  int64_t first = memory_stats().reserved;
  for (int i = 0; i < 20; ++i) std::thread(work).join();
  CHECK(memory_stats().reserved == first);
}

TEST_CASE("Tensors and storages account for themselves", "[allocator]") {
  MemoryStats before = memory_stats();
  {
    Tensor x = empty({10, 10}, f64, Purpose::parameter);
    CHECK(memory_stats()[Purpose::parameter] - before[Purpose::parameter] == 800);
    Tensor y = alias(x, {100}, {1}, 0);
    CHECK(memory_stats().live - before.live == 800);
    x.impl()->storage->set_purpose(Purpose::gradient);
    CHECK(memory_stats()[Purpose::gradient] - before[Purpose::gradient] == 800);
    float mine[4];
    Tensor z = from_blob(mine, {4}, f32);
    z.impl()->storage->set_purpose(Purpose::batch);
    CHECK(memory_stats().live - before.live == 800);
  }
  CHECK(memory_stats().by_purpose == before.by_purpose);
}

TEST_CASE("Bytes are written for people", "[allocator]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(bytes_text((1 << 20) - 1) == "1.00 MiB");
  CHECK(bytes_text(3 << 20) == "3.00 MiB");
  CHECK(bytes_text((int64_t(5) << 30) + (int64_t(1) << 29)) == "5.50 GiB");
  CHECK(bytes_text(INT64_MAX) == "8.00 EiB");
  CHECK(bytes_text(-2048) == "-2.00 KiB");
  std::string summary = memory_summary();
  for (const char* word : {"parameter", "workspace", "live", "peak", "reserved", "cpu"})
    CHECK(summary.find(word) != std::string::npos);
}
