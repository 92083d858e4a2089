#include "tapegrad/core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "catch.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/philox.h"

using namespace tg;

namespace {

struct Reference {
  RandomState state;
  uint32_t word[4];
  uint32_t normal_f32[4];  // bits
  double true_f32[4];
  uint64_t normal_f64[2];
  double true_f64[2];
};

// clang-format off
const Reference kReferences[] = {
// Made by tests/core/random_reference.py.
{{0u, 0u, 0u},
{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u},
{0x3f7dbb31u, 0xbf6cb6b0u, 0xbf1e1b9fu, 0xbef6d1b2u},
{0.99113766587740807, -0.92466257591104997, -0.61760898417072652, -0.48206860604854089},
{0xbfd973628c131c03u, 0xbfd3dd84ff91e70cu},
{-0.39766753844418200804, -0.31039547880173823303}},
{{0u, 1u, 0u},
{0xf8e4cca4u, 0x5cb200dbu, 0xb1a574ebu, 0x097eff67u},
{0xbe1d5353u, 0x3e392a67u, 0x3f54ec97u, 0x3e4a2da2u},
{-0.153638170371661, 0.1808258275167879, 0.83173509684654818, 0.19743971735894379},
{0x3ff63083c830bea5u, 0x3fd511d43e0f270du},
{1.3868444271028377526, 0.32921320019214381666}},
{{1u, 0u, 0u},
{0xe3e80670u, 0xe50a0ebcu, 0x95f222c0u, 0xb615aa27u},
{0x3ec2c3e4u, 0xbe97b1beu, 0xbe7f370du, 0xbf807dbdu},
{0.38040078211075015, -0.29627792718204008, -0.24923341825043462, -1.0038372279713495},
{0xbfbd1a253882cf80u, 0xbfdd4dbc714217a6u},
{-0.11368019704496925602, -0.45786963520401476355}},
{{42u, 4294967295u, 0u},
{0x6e2412deu, 0x41d4ec95u, 0x29dd3e0cu, 0xaed56cfau},
{0xbd6f15c1u, 0x3fa6137au, 0xbf473d37u, 0xbfde48deu},
{-0.058370358934624944, 1.2974693094048963, -0.77827784813885657, -1.7365987110486499},
{0xbfe591826cf69e7au, 0xbff8102b47a84ff3u},
{-0.67401238710313218053, -1.5039475249404828808}},
{{42u, 4294967296u, 0u},
{0x42e0b8b3u, 0x7dbf5de8u, 0x2fe739d4u, 0x6aaf03ebu},
{0xbfd167b9u, 0x3db96ac5u, 0xbfcb000bu, 0x3f6a2dc5u},
{-1.6359778657535182, 0.090535676797400536, -1.585938811460941, 0.91476079808939758},
{0xbff086b9697a55dau, 0x3fe310845d4503a0u},
{-1.0328916664342302785, 0.59576624123302581325}},
{{9223372036854788153u, 7u, 0u},
{0xef70e433u, 0x6c3362a6u, 0x865f2fe5u, 0x4491933du},
{0xbea590acu, 0x3e2ee6a3u, 0xbe0218c5u, 0x3f906b23u},
{-0.32336940236743376, 0.17080168047443259, -0.12704761200255634, 1.1282695752388638},
{0xbfc2cc11b2a80403u, 0x3ff4ddcebc86d750u},
{-0.14685269568875021248, 1.3041522373509516719}},
{{42u, 5u, 1u},
{0x4e9b5cdfu, 0xf7595067u, 0xa61b8f94u, 0xc72bf837u},
{0x3fc047a3u, 0xbea5ce81u, 0x3e26c831u, 0xbf6a6d0du},
{1.5021861311320438, -0.32384110713945901, 0.16287304440247989, -0.91572644563195529},
{0x3fa7826e52676a0au, 0xbfd085b3df34d3b0u},
{0.045916984137608879901, -0.25816056058402644548}},
{{42u, 5u, 1099511627779u},
{0xa6ddd557u, 0x9996ef4bu, 0xd1c9682eu, 0xf2ba5c21u},
{0xbf3fa626u, 0xbf0b2a95u, 0x3f190b19u, 0xbe4ec738u},
{-0.7486289053022356, -0.54361851700974972, 0.59782556977122741, -0.20193183278948374},
{0x3feea54b8dc8f2a4u, 0xbfd4b3ec5a29170fu},
{0.95767762844441916603, -0.32348164372193454916}},
{{20240607u, 123456789u, 99u},
{0x4dec9271u, 0xa567e26au, 0x279654cbu, 0x06057d6bu},
{0xbf6fcf13u, 0xbf9cd6dcu, 0x3ff49fb0u, 0x3e91ac25u},
{-0.93675338769312632, -1.2253069657499016, 1.9111232435701906, 0.28451646588006293},
{0x3fed951ac54b8d99u, 0x3fc19dc080f97640u},
{0.92445124181942899908, 0.1376267080076321067}},
};
// clang-format on

void check_words(const RandomBlock& b, const uint32_t (&right)[4]) {
  for (int i = 0; i < 4; ++i) CHECK(b.word[i] == right[i]);
}

// Distance in units of the last place of `right`.
double ulps(double got, double right, int digits) {
  return std::abs(got - right) / std::ldexp(1.0, std::ilogb(right) - digits + 1);
}

}  // namespace

TEST_CASE("Philox 4x32-10 gives the vectors of its paper") {
  // From the known-answer tests that the authors publish with Random123.
  check_words(philox_4x32_10({0, 0, 0, 0}, {0, 0}),
              {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  check_words(philox_4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
              {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  check_words(philox_4x32_10({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                             {0xa4093822u, 0x299f31d0u}),
              {0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("Normals have the stored bits and are right to a few units in the last place") {
  for (const Reference& r : kReferences) {
    INFO(r.state.seed << " " << r.state.offset << " " << r.state.stream);
    RandomBlock b = random_block(r.state, 0);
    check_words(b, r.word);
    float x[4];
    double y[2];
    normal_block(b, x);
    normal_block(b, y);
    for (int i = 0; i < 4; ++i) {
      CHECK(std::bit_cast<uint32_t>(x[i]) == r.normal_f32[i]);
      CHECK(ulps(x[i], r.true_f32[i], 24) < 4);
    }
    for (int i = 0; i < 2; ++i) {
      CHECK(std::bit_cast<uint64_t>(y[i]) == r.normal_f64[i]);
      CHECK(ulps(y[i], r.true_f64[i], 53) < 4);
    }
  }
}

TEST_CASE("Block b of a draw is block 0 of a draw b further on") {
  RandomState s{7, (uint64_t(1) << 32) - 2, 3};
  for (uint64_t b = 0; b < 5; ++b)
    check_words(random_block({s.seed, s.offset + b, s.stream}, 0), random_block(s, b).word);
}

TEST_CASE("Uniform numbers stay below 1 and normal ones finite at every extreme") {
  CHECK(uniform_f32(0) == 0.0f);
  CHECK(uniform_f32(~0u) == 1.0f - 0x1p-24f);
  CHECK(uniform_f64(0) == 0.0);
  CHECK(uniform_f64(~uint64_t(0)) == 1.0 - 0x1p-53);
  const uint32_t words[] = {0,          1,          0xff,       0x1fffffff, 0x20000000,
                            0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000, 0xdfffffff,
                            0xe0000000, 0xfffffffe, ~0u};
  for (uint32_t a : words)
    for (uint32_t b : words) {
      auto [x, y] = normal_pair(a, b);
      CHECK((std::abs(x) < 6.8f && std::abs(y) < 6.8f));
      auto [u, v] = normal_pair(uint64_t(a) << 32 | b, uint64_t(b) << 32 | a);
      CHECK((std::abs(u) < 8.7 && std::abs(v) < 8.7));
    }
}

TEST_CASE("Whole numbers in a range are floor(word n / 2^64)") {
  CHECK(uniform_below(~uint64_t(0), 10) == 9);
  CHECK(uniform_below(0, 10) == 0);
  CHECK(uniform_below(uint64_t(1) << 63, 10) == 5);
  CHECK(uniform_below(~uint64_t(0), 1) == 0);
  CHECK(uniform_below(~uint64_t(0), ~uint64_t(0)) == ~uint64_t(0) - 1);
  CHECK(uniform_below(0x123456789abcdef0u, 0xfedcba9876543210u) == 0x121fa00ad77d7422u);
}

TEST_CASE("Moments of a long draw are those of its distribution") {
  constexpr int64_t n = 1 << 20;
  RandomState s{11, 0, 0};
  double sum = 0, squares = 0, cubes = 0, fourth = 0, uniforms = 0;
  for (int64_t b = 0; b < n / 4; ++b) {
    float x[4], u[4];
    normal_block(random_block(s, uint64_t(b)), x);
    uniform_block(random_block(s, uint64_t(b)), u);
    for (double v : x) {
      sum += v;
      squares += v * v;
      cubes += v * v * v;
      fourth += v * v * v * v;
    }
    for (double v : u) uniforms += v;
  }
  // Five standard errors of each mean.
  double error = 5 / std::sqrt(double(n));
  CHECK(std::abs(sum / n) < error);
  CHECK(std::abs(squares / n - 1) < error * std::sqrt(2.0));
  CHECK(std::abs(cubes / n) < error * std::sqrt(15.0));
  CHECK(std::abs(fourth / n - 3) < error * std::sqrt(96.0));
  CHECK(std::abs(uniforms / n - 0.5) < error * std::sqrt(1.0 / 12));
}

TEST_CASE("A generator goes on where it stands, and from a saved state") {
  Generator g(5);
  CHECK(g.reserve(10) == RandomState{5, 0, 0});
  CHECK(g.reserve(blocks_for(9, 4)) == RandomState{5, 10, 0});
  RandomState saved = g.state();
  CHECK(saved.offset == 13);
  double a = g.uniform(), b = g.normal();
  g.set_state(saved);
  CHECK(g.uniform() == a);
  CHECK(g.normal() == b);
  Generator copy = g;
  CHECK(copy.integer(1000000) == g.integer(1000000));
  g.manual_seed(5);
  CHECK(g.state() == RandomState{5, 0, 0});
  CHECK(Generator(5).uniform() != Generator(6).uniform());
  CHECK(Generator(5, 1).uniform() != Generator(5, 2).uniform());
  CHECK_THROWS_AS(g.integer(0), ValueError);
  for (int i = 0; i < 100; ++i) {
    int64_t k = g.integer(3);
    CHECK((k >= 0 && k < 3));
  }
}

TEST_CASE("Every device has a generator, and one seed for all gives equal sequences") {
  RandomState before = default_generator().state();
  manual_seed(123);
  CHECK(&default_generator() != &default_generator({Device::cuda, 1}));
  CHECK(default_generator().reserve(1) == default_generator({Device::cuda, 1}).reserve(1));
  CHECK(default_generator().seed() == 123);
  CHECK_THROWS_AS(default_generator({Device::cuda, 100}), DeviceError);
  manual_seed(before.seed);
  default_generator().set_state(before);
}

TEST_CASE("Threads that share a generator get pieces that do not overlap", "[pool]") {
  Generator g(1);
  std::vector<uint64_t> offsets(400);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 100; ++i) offsets[t * 100 + i] = g.reserve(3).offset;
    });
  for (std::thread& t : threads) t.join();
  std::sort(offsets.begin(), offsets.end());
  int wrong = 0;
  for (size_t i = 0; i < offsets.size(); ++i) wrong += offsets[i] != 3 * i;
  CHECK(wrong == 0);
}
