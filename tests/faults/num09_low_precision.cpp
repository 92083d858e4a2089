#include <bit>
#include <cmath>

#include "catch.h"
#include "tapegrad/core/dtype.h"

using namespace tg;

TEST_CASE("bf16 rounds to nearest even and keeps NaN", "[NUM-09]") {
  struct Case {
    uint32_t from;
    uint16_t to;
  };
  const Case cases[] = {{0x3E89CCD5, 0x3E8A}, {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82},
                        {0x3F808001, 0x3F81}, {0x7F7FFFFF, 0x7F80}, {0x7F7F7FFF, 0x7F7F},
                        {0xFF800000, 0xFF80}, {0x80000000, 0x8000}};
  for (const Case& c : cases) {
    INFO(std::hex << c.from);
    CHECK(BFloat16(std::bit_cast<float>(c.from)).bits == c.to);
  }
  for (uint32_t nan : {0x7F800001u, 0x7FFF8C22u, 0xFFFFFFFFu, 0xFF800001u, 0x7FC00000u})
    CHECK(std::isnan(float(BFloat16(std::bit_cast<float>(nan)))));
}

TEST_CASE("f16 rounds to nearest even and keeps NaN", "[NUM-09]") {
  CHECK(Half(65519.0f).bits == 0x7BFF);  // 65504
  CHECK(Half(65520.0f).bits == 0x7C00);  // infinity
  CHECK(Half(-65520.0f).bits == 0xFC00);
  CHECK(Half(2049.0f).bits == Half(2048.0f).bits);  // ties to even
  CHECK(Half(2051.0f).bits == Half(2052.0f).bits);
  CHECK(Half(0x1p-25f).bits == 0);  // half of the smallest: ties to zero
  CHECK(Half(std::nextafter(0x1p-25f, 1.0f)).bits == 1);
  CHECK(Half(-0.0f).bits == 0x8000);
  for (uint32_t nan : {0x7F800001u, 0x7FFF8C22u, 0xFFFFFFFFu})
    CHECK(std::isnan(float(Half(std::bit_cast<float>(nan)))));
}
