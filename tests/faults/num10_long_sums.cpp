#include "catch.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

TEST_CASE("long sums of ones are exact, along either axis", "[NUM-10]") {
  Tensor one = ones({1});
  CHECK(sum(ones({16777218})).item() == 16777218);
  {
    // The memory of one column, seen as two: 20 million rows.
    Tensor x = ones({20000000, 2});
    Tensor m = mean(x, 0);
    CHECK(m[0].item() == 1);
    CHECK(m[1].item() == 1);
    CHECK(mean(transpose(x, 0, 1), 1)[1].item() == 1);
  }
  CHECK(sum(ones({6000}, f16)).item() == 6000);
  CHECK(sum(ones({6000, 3}, f16), 0)[2].item() == 6000);
  CHECK(sum(ones({3, 6000}, f16), 1)[2].item() == 6000);
  CHECK(mean(full({100000}, 1000, f16)).item() == 1000);  // the sum alone would be infinite
  CHECK(sum(ones({300}, bf16)).item() == 300);
  // 1e8 ones whose memory is one number.
  CHECK(norm(expand(one, {100000000})).item() == 10000);
}
