#include "tapegrad/core/cpu_features.h"

#include <string_view>

#include "catch.h"

TEST_CASE("cpu features: this machine runs what the library was compiled for", "[core]") {
  CHECK(tg::missing_cpu_feature() == nullptr);
}

TEST_CASE("cpu features: the first missing one is named", "[core]") {
  tg::CpuFeatures needed{.avx2 = true, .avx512f = true};
  CHECK(tg::missing_cpu_feature(needed, needed) == nullptr);
  CHECK(std::string_view(tg::missing_cpu_feature(needed, {.avx2 = true})) == "AVX-512 F");
  CHECK(std::string_view(tg::missing_cpu_feature(needed, {})) == "AVX2");
  CHECK(tg::missing_cpu_feature({}, {}) == nullptr);
}

// The kernel lists the same flags under names of its own, so it can be held against our reading of
// CPUID.
#if defined(__x86_64__) && defined(__linux__)
#include <fstream>
#include <set>
#include <sstream>
#include <string>

TEST_CASE("cpu features: agree with /proc/cpuinfo", "[core]") {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line) && line.rfind("flags", 0) != 0) {}
  if (line.rfind("flags", 0) != 0) return;  // no such line in some containers
  std::istringstream words(line);
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  tg::CpuFeatures f = tg::cpu_features();
  CHECK(f.sse42 == flags.count("sse4_2"));
  CHECK(f.movbe == flags.count("movbe"));
  CHECK(f.lzcnt == flags.count("abm"));
  CHECK(f.bmi1 == flags.count("bmi1"));
  CHECK(f.bmi2 == flags.count("bmi2"));
  CHECK(f.avx == flags.count("avx"));
  CHECK(f.fma == flags.count("fma"));
  CHECK(f.f16c == flags.count("f16c"));
  CHECK(f.avx2 == flags.count("avx2"));
  CHECK(f.avx512f == flags.count("avx512f"));
  CHECK(f.avx512bw == flags.count("avx512bw"));
  CHECK(f.avx512vnni == flags.count("avx512_vnni"));
  CHECK(f.avx512bf16 == flags.count("avx512_bf16"));
}
#endif
