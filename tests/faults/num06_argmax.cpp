#include "catch.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/parallel.h"

using namespace tg;

TEST_CASE("among equals the first place wins, for any number of threads", "[NUM-06]") {
  int before = num_threads();
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    std::vector<float> v(2000);
    for (size_t i = 0; i < v.size(); ++i) v[i] = float(i % 3);
    CHECK(argmax(tensor(v, {2000})).item_int64() == 2);
    CHECK(argmin(tensor({1, 0, 0})).item_int64() == 1);
    CHECK(argmax(tensor({{4, 5, 5}}), -1)[0].item_int64() == 1);
    CHECK(argmax(ones({100000})).item_int64() == 0);
    CHECK(argmin(ones({100000})).item_int64() == 0);
    CHECK(argmax(ones({100000}, i32)).item_int64() == 0);
    auto [value, place] = max(ones({300, 400}), 0);
    CHECK(sum(place).item_int64() == 0);
  }
  set_num_threads(before);
}
