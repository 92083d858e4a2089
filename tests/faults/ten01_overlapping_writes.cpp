#include "catch.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;
using Values = std::vector<double>;

TEST_CASE("Writing where several elements share one place raises and changes nothing", "[TEN-01]") {
  Tensor base = ones({1, 1});
  Tensor x = expand(base, {4, 5});
  const char* says = "several elements of the tensor share one place";
  CHECK_THROWS_WITH(add_(x, 1), Catch::Contains(says));
  CHECK_THROWS_WITH(add_(x, ones({4, 5})), Catch::Contains(says));
  CHECK_THROWS_WITH(copy_(x, zeros({4, 5})), Catch::Contains(says));
  CHECK_THROWS_WITH(fill_(x, 3), Catch::Contains(says));
  CHECK_THROWS_WITH(x.index_put_({tensor(std::vector<int64_t>{0, 1}, {2})}, 3),
                    Catch::Contains(says));
  CHECK_THROWS_WITH(x.index_put_({0}, 3), Catch::Contains(says));
  CHECK_THROWS_WITH(masked_fill_(x, ones({5}, boolean), 3), Catch::Contains(says));
  CHECK_THROWS_WITH(scatter_add_(x, 0, zeros({4, 5}, i64), ones({4, 5})), Catch::Contains(says));
  CHECK_THROWS_WITH(uniform_(x), Catch::Contains(says));
  CHECK_THROWS_WITH(relu_(x), Catch::Contains(says));
  CHECK(base.item() == 1);
  // Windows overlap too.
  Tensor row = arange(5, f32);
  CHECK_THROWS_WITH(fill_(unfold(row, 0, 3, 1), 9), Catch::Contains(says));
  CHECK(row.to_vector<double>() == Values{0, 1, 2, 3, 4});
  // Repeated once only, nothing is shared.
  add_(expand(base, {1, 1}), 1);
  CHECK(base.item() == 2);
}

TEST_CASE("A shifted tensor onto itself: an error, or the values of before", "[TEN-01]") {
  Tensor t = tensor({1, 2, 3, 4, 5});
  Tensor head = slice(t, 0, 0, 4), tail = slice(t, 0, 1, 5);
  try {
    sub_(tail, head);
    CHECK(t.to_vector<double>() == Values{1, 1, 1, 1, 1});
  } catch (const ValueError& e) {
    CHECK_THAT(e.what(), Catch::Contains("shares part of its memory"));
    CHECK(t.to_vector<double>() == Values{1, 2, 3, 4, 5});
  }
  t = tensor({1, 2, 3, 4, 5});
  copy_(slice(t, 0, 1, 5), slice(t, 0, 0, 4));
  CHECK(t.to_vector<double>() == Values{1, 1, 2, 3, 4});
  copy_(slice(t, 0, 0, 4), slice(t, 0, 1, 5));
  CHECK(t.to_vector<double>() == Values{1, 2, 3, 4, 4});
  // Long enough for several threads.
  int64_t n = 300000;
  Tensor line = arange(n, f64);
  copy_(slice(line, 0, 1, n), slice(line, 0, 0, n - 1));
  CHECK(equal(slice(line, 0, 1, n), arange(n - 1, f64)));
  Tensor m = reshape(arange(90000, f64), {300, 300}), turned = transpose(m, 0, 1).clone();
  copy_(m, transpose(m, 0, 1));
  CHECK(equal(m, turned));
  // Interleaved elements do not meet.
  Tensor pairs = tensor({1, 2, 3, 4, 5, 6});
  add_(slice(pairs, 0, 0, 6, 2), slice(pairs, 0, 1, 6, 2));
  CHECK(pairs.to_vector<double>() == Values{3, 2, 7, 4, 11, 6});
}
