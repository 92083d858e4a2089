// Tensors on device cuda: moving them, their gradients, their memory.
#include "cuda/flavour.h"
#include "error_text.h"
#include "tapegrad/core/allocator.h"
#include "tapegrad/core/cpu_memory.h"

using namespace tg;
using namespace tg::test;
using Catch::Contains;

TEST_CASE("cuda: a tensor goes there and back, in its layout", "[cuda]") {
  in_every_order([] {
    Tensor x = reshape(arange(Scalar(0), Scalar(24), Scalar(1), f32), {2, 3, 4});
    for (const Tensor& t : {x, transpose(x, 0, 2), slice(x, 2, 1, 3), expand(x, {5, 2, 3, 4})}) {
      Tensor there = t.to(kGpu), back = there.to(kCpuDevice);
      CHECK(there.device() == kGpu);
      CHECK(there.shape() == t.shape());
      CHECK(back.to_vector<float>() == t.to_vector<float>());
    }
    Tensor turned = transpose(x, 0, 2).to(kGpu);
    CHECK(turned.strides() == transpose(x, 0, 2).strides());
    CHECK(x.to(kCpuDevice).same(x));
    CHECK(turned.to(kGpu).same(turned));
    CHECK(slice(turned, 0, 2, 3).to_vector<float>() == std::vector<float>{2, 14, 6, 18, 10, 22});
    CHECK(select(select(select(turned, 0, 1), 0, 2), 0, 1).item() == 21);
  });
}

TEST_CASE("cuda: a source may change as soon as it was copied", "[cuda]") {
  in_every_order([] {
    Tensor x = ones({1000});
    Tensor there = x.to(kGpu);
    fill_(x, Scalar(5));
    CHECK(there.to_vector<float>() == std::vector<float>(1000, 1.0f));
  });
}

TEST_CASE("cuda: the gradient comes back to the device it belongs to", "[cuda]") {
  in_every_order([] {
    Tensor x = tensor({1, 2, 3}, f32).requires_grad_();
    Tensor y = x.to(kGpu) * Scalar(2);
    y.backward(tensor({1, 10, 100}, f32).to(kGpu));
    CHECK(x.grad().device().is_cpu());
    CHECK(x.grad().to_vector<float>() == std::vector<float>{2, 20, 200});
  });
}

TEST_CASE("cuda: operands on two devices, a device that is not there, raw data", "[cuda]") {
  Tensor here = ones({2}), there = here.to(kGpu);
  CHECK_THAT(error_text([&] { here + there; }),
             Contains("operands are on different devices: cpu cuda:0"));
  CHECK_THAT(error_text([&] { here.to(Device(Device::cuda, 7)); }),
             Contains("to: there is no device cuda:7; cuda:0 ("));
  CHECK_THAT(error_text([&] { there.data<float>(); }), Contains("the tensor is on cuda:0"));
}

TEST_CASE("cuda: memory is counted by purpose and has a limit", "[cuda]") {
  empty_cache(kGpu);
  const MemoryStats before = memory_stats(kGpu);
  {
    Tensor x = empty({1 << 18}, kGpu, Purpose::parameter);
    const MemoryStats with = memory_stats(kGpu);
    CHECK(with.live - before.live == 1 << 20);
    CHECK(with[Purpose::parameter] - before[Purpose::parameter] == 1 << 20);
    CHECK(with.reserved - before.reserved >= 1 << 20);
    CHECK(with.peak >= with.live);
    x.impl()->storage->set_purpose(Purpose::saved);
    CHECK(memory_stats(kGpu)[Purpose::saved] - before[Purpose::saved] == 1 << 20);
    set_memory_limit(with.live + 1000, kGpu);
    std::string text = error_text([] { empty({1 << 20}, kGpu); });
    set_memory_limit(0, kGpu);
    CHECK_THAT(text, Contains("out of memory on cuda:0: asked for 4.00 MiB, in use ") &&
                         Contains("saved 1.00 MiB") && Contains("set_memory_limit"));
  }
  CHECK(memory_stats(kGpu).live == before.live);
  empty_cache(kGpu);
  CHECK(memory_stats(kGpu).reserved == before.reserved);
}

#ifdef TAPEGRAD_EMULATED
TEST_CASE("cuda: cached blocks are given back before memory is out", "[cuda]") {
  empty_cache(kGpu);
  simt::SettingsGuard guard;
  simt::settings().memory = size_t(memory_stats(kGpu).reserved) + (4 << 20);
  { Tensor x = empty({3 << 18}, kGpu); }  // 3 MiB stay cached
  Tensor y = empty({7 << 17}, kGpu);      // 3.5 MiB fit only without them
  CHECK_THAT(error_text([] { empty({1 << 19}, kGpu); }),
             Contains("out of memory on cuda:0: asked for 2.00 MiB") &&
                 Contains("the device has no more"));
}
#endif

TEST_CASE("cuda: a block that is freed serves the next request", "[cuda]") {
  empty_cache(kGpu);
  const int64_t before = memory_stats(kGpu).reserved;
  const void* first = nullptr;
  {
    Tensor x = empty({1000}, kGpu);
    first = x.read().data;
  }
  if (detail::kExactBlocks)  // the address sanitizer watches it from now on
    CHECK(memory_stats(kGpu).reserved == before);
  else
    CHECK(empty({1000}, kGpu).read().data == first);
}
