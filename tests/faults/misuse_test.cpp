// What is wrong in a way that could pass unseen: it raises instead.
#include <cstdint>

#include "catch.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/data/image.h"
#include "tapegrad/data/loader.h"

using namespace tg;

TEST_CASE("a view of more elements than can be counted raises", "[faults]") {
  int64_t half = int64_t(1) << 32;
  Tensor w = ones({1});
  CHECK_THROWS_AS(expand(w, {half, half}), ShapeError);
  CHECK_THROWS_AS(expand(scalar_tensor(1), {(int64_t(1) << 62) + 1, 4}), ShapeError);
  CHECK_THROWS_AS(as_strided(w, {half, half}, {0, 0}, 0), ShapeError);
  CHECK_THROWS_AS(expand(ones({2}), {INT64_MAX, 2}), ShapeError);
  Tensor a = expand(ones({1}, i8), {int64_t(1) << 62});
  CHECK_THROWS_AS(cat({a, a, a, a}), ShapeError);
  CHECK(expand(ones({1, 0}), {half, 0}).numel() == 0);  // without elements anything goes
}

TEST_CASE("item as a type that cannot hold the value raises", "[faults]") {
  CHECK_THROWS_AS(scalar_tensor(1e10, f64).item<int>(), ValueError);
  CHECK_THROWS_AS(scalar_tensor(300, i64).item<uint8_t>(), ValueError);
  CHECK_THROWS_AS(scalar_tensor(-1, i64).item<uint8_t>(), ValueError);
  CHECK(scalar_tensor(255, i64).item<uint8_t>() == 255);
  CHECK(scalar_tensor(0.5).item<bool>());
  CHECK_FALSE(scalar_tensor(0).item<bool>());
}

TEST_CASE("an undefined tensor raises wherever it is looked at", "[faults]") {
  Tensor u, x = ones({2, 2});
  CHECK_THROWS_AS(u.shape(), Error);
  CHECK_THROWS_AS(u.numel(), Error);
  CHECK_THROWS_AS(u.dtype(), Error);
  CHECK_THROWS_AS(u.grad(), Error);
  CHECK_THROWS_AS(x.grad().shape(), Error);
  CHECK_THROWS_AS(x.shares_storage(u), Error);
  CHECK_THROWS_AS(u += 1.0, Error);
  CHECK_THROWS_AS(where(u, x, x), Error);
  CHECK_THROWS_AS(cross_entropy(x, u), Error);
  CHECK_THROWS_AS(x.index_put_({0}, u), Error);
}

TEST_CASE("memory that is not there can be lent for no elements only", "[faults]") {
  CHECK_THROWS_WITH(from_blob(nullptr, {2, 3}, f32), "from_blob: a null pointer for shape [2,3]");
  CHECK_THROWS_AS(from_blob(nullptr, {}, f32), ValueError);
  CHECK_THROWS_AS(from_blob(nullptr, {-1}, f32), ShapeError);
  CHECK_THROWS_AS(from_blob(nullptr, {int64_t(1) << 62, 4}, f32), ShapeError);
  bool released = false;
  {
    Tensor x = from_blob(nullptr, {3, 0}, f32, [&] { released = true; });
    CHECK(x.numel() == 0);
    CHECK(sum(x).item() == 0);
    CHECK(x.clone().shape() == Shape{3, 0});
    CHECK((x + 1).numel() == 0);
    CHECK(x.to(f64).numel() == 0);
    CHECK(cat({x, ones({3, 2})}, 1).numel() == 6);
    CHECK(reshape(x, {0, 9}).numel() == 0);
    CHECK(matmul(x, ones({0, 2})).to_vector<float>() == std::vector<float>(6, 0.0f));
    CHECK_FALSE(released);
  }
  CHECK(released);
}

TEST_CASE("what can be read without end is no picture", "[faults]") {
  CHECK_THROWS_AS(data::read_image("/dev/zero"), FileError);
}

TEST_CASE("a batch may be larger than any data set", "[faults]") {
  auto pairs = std::make_shared<data::TensorDataset>(ones({3, 1}), ones({3}));
  for (int64_t size : {INT64_MAX, INT64_MAX - 98, int64_t(4)}) {
    data::DataLoader loader(pairs, {.batch_size = size});
    CHECK(loader.size() == 1);
    int64_t samples = 0;
    for (auto [x, y] : loader) samples += x.size(0);
    CHECK(samples == 3);
  }
  CHECK_THROWS_AS(data::DataLoader(std::shared_ptr<data::TensorDataset>()), ValueError);
}

TEST_CASE("an operator that records what it cannot says why", "[faults]") {
  Tensor x = ones({2}).requires_grad_();
  auto backward = [](const Tensor& dy, Needs) -> Grads { return {dy}; };
  Op op("mine");
  CHECK_THROWS_WITH(op.record(Tensor(), {x}, backward),
                    Catch::Contains("mine: ") && Catch::Contains("undefined"));
  CHECK_THROWS_WITH(op.record(x * x, {x}, backward), Catch::Contains("under NoGradGuard"));
  CHECK_THROWS_WITH(op.record(x.to(i64), {x}, backward), Catch::Contains("i64 has no gradient"));
}

TEST_CASE("braces are lists of dimensions and sizes", "[faults]") {
  Tensor x = tensor({{1, 2}, {3, 4}});
  CHECK(sum(x, {}).item() == 10);
  CHECK(mean(x, {}).item() == 2.5);
  CHECK(sum(x, {1}).to_vector<double>() == std::vector<double>{3, 7});
  CHECK(split(x, {2}).size() == 1);
  CHECK_THROWS_AS(split(x, {1}), ShapeError);  // not two pieces of one
}
