#include "tapegrad/core/shape.h"

#include "catch.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/tensor.h"

using namespace tg;

TEST_CASE("A shape is a short list of sizes") {
  Shape s{2, 3, 4};
  CHECK(s.rank() == 3);
  CHECK(s.numel() == 24);
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{3, 0, 2}.numel() == 0);
  CHECK(to_text(s) == "[2,3,4]");
  CHECK(to_text(Shape{}) == "[]");
  s.insert(0, 7);
  s.push_back(9);
  CHECK(s == Shape{7, 2, 3, 4, 9});
  s.erase(1);
  CHECK(s == Shape{7, 3, 4, 9});
  CHECK_FALSE(s == Shape{7, 3, 4});
  CHECK(Shape::filled(3, 5) == Shape{5, 5, 5});
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), ShapeError);
  Shape full = Shape::filled(8, 1);
  CHECK_THROWS_AS(full.push_back(1), ShapeError);
}

TEST_CASE("Entries of a shape count from either end, and none lies outside") {
  Shape s{2, 3, 4};
  CHECK(s[0] == 2);
  CHECK(s[-1] == 4);
  CHECK(s[-3] == 2);
  CHECK(s.back() == 4);
  s[-2] = 7;
  CHECK(s == Shape{2, 7, 4});
  for (int64_t i : {int64_t(3), int64_t(-4), int64_t(8), INT64_MAX, INT64_MIN})
    CHECK_THROWS_AS(s[i], IndexError);
  CHECK_THROWS_AS(Shape{}[0], IndexError);
  CHECK_THROWS_AS(Shape{}[-1], IndexError);
  CHECK_THROWS_AS(Shape{}.back(), IndexError);
  try {
    (void)s[-5];
  } catch (const IndexError& e) {
    CHECK(std::string(e.what()) == "index -5 is out of range for the 3 entries of [2,7,4]");
  }
}

TEST_CASE("Shapes broadcast from the end") {
  CHECK(broadcast_shapes({2, 3}, {3}) == Shape{2, 3});
  CHECK(broadcast_shapes({3}, {2, 1}) == Shape{2, 3});
  CHECK(broadcast_shapes({}, {4, 5}) == Shape{4, 5});
  CHECK(broadcast_shapes({8, 1, 6, 1}, {7, 1, 5}) == Shape{8, 7, 6, 5});
  CHECK(broadcast_shapes({0, 3}, {1}) == Shape{0, 3});
  CHECK(broadcast_shapes({1}, {0}) == Shape{0});
  CHECK_THROWS_AS(broadcast_shapes({2, 3}, {2}), ShapeError);
  CHECK_THROWS_AS(broadcast_shapes({0}, {2}), ShapeError);
  try {
    broadcast_shapes({2, 3}, {4, 3});
  } catch (const ShapeError& e) {
    CHECK(std::string(e.what()) == "shapes do not broadcast: [2,3] [4,3]");
  }
}

TEST_CASE("A negative dimension counts from the end") {
  CHECK(wrap_dim(-1, 3) == 2);
  CHECK(wrap_dim(0, 3) == 0);
  CHECK(wrap_dim(-1, 0) == 0);
  CHECK_THROWS_AS(wrap_dim(3, 3), IndexError);
  CHECK_THROWS_AS(wrap_dim(-4, 3), IndexError);
}

TEST_CASE("Strides say how a shape lies in memory") {
  CHECK(contiguous_strides({2, 3, 4}) == Shape{12, 4, 1});
  CHECK(channels_last_strides({2, 3, 4, 5}) == Shape{60, 1, 15, 3});
  CHECK_THROWS_AS(channels_last_strides({2, 3, 4}), ShapeError);
  CHECK(is_contiguous({2, 3}, {3, 1}));
  CHECK_FALSE(is_contiguous({2, 3}, {1, 2}));
  CHECK(is_contiguous({1, 3}, {77, 1}));  // a size of 1 is never stepped over
  CHECK(is_contiguous({0, 3}, {77, 77}));
  CHECK(is_channels_last({2, 3, 4, 5}, {60, 1, 15, 3}));
  CHECK_FALSE(is_channels_last({2, 3, 4, 5}, {60, 20, 5, 1}));
  CHECK(is_dense({2, 3}, {1, 2}));
  CHECK_FALSE(is_dense({2, 3}, {0, 1}));
  CHECK_FALSE(is_dense({2, 3}, {6, 2}));
}

TEST_CASE("Tensors know their layout, share memory and count writes") {
  Tensor x = empty({2, 3});
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.numel() == 6);
  CHECK(x.dtype() == f32);
  CHECK(to_text(x) == "f32[2,3]");
  CHECK(to_text(Tensor()) == "undefined");
  x.mutable_data<float>()[1] = 5;
  Tensor t = alias(x, {3, 2}, {1, 3}, 0);
  CHECK(t.shares_storage(x));
  CHECK_FALSE(t.same(x));
  CHECK_FALSE(t.is_contiguous());
  CHECK(empty_like(t).strides() == t.strides());
  CHECK(empty_like(alias(x, {4, 3}, {0, 1}, 0)).is_contiguous());
  uint32_t version = x.version();
  t.write();
  CHECK(x.version() == version + 1);
  CHECK(x.data<float>()[1] == 5);
  CHECK_THROWS_AS(x.data<double>(), DTypeError);
  CHECK_THROWS_AS(t.data<float>(), ShapeError);
  CHECK_THROWS_AS(Tensor().data<float>(), Error);
  CHECK_THROWS_AS(empty({2, -1}), ShapeError);
  CHECK_THROWS_AS(empty({int64_t(1) << 40, int64_t(1) << 40}), ShapeError);
  CHECK(empty({int64_t(1) << 40, int64_t(1) << 40, 0}).numel() == 0);
}

TEST_CASE("Memory of somebody else is given back once") {
  int released = 0;
  float mine[6] = {1, 2, 3, 4, 5, 6};
  {
    Tensor x = from_blob(mine, {2, 3}, f32, [&] { ++released; });
    Tensor y = alias(x, {3}, {1}, 3);
    x = Tensor();
    CHECK(y.data<float>()[0] == 4);
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("Devices are read from text") {
  CHECK(Device("cpu") == kCpuDevice);
  CHECK(Device("cuda:3") == Device{Device::cuda, 3});
  CHECK(to_text(Device("cuda")) == "cuda:0");
  for (const char* wrong : {"gpu", "cuda:", "cuda:x", "cuda3", "cpu:0", ""})
    CHECK_THROWS_AS(Device(std::string(wrong)), DeviceError);
}
