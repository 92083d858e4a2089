// The loader: the same batches for any number of workers, errors that name the sample, clean ends.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "catch.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/random.h"
#include "tapegrad/data/collate.h"
#include "tapegrad/data/loader.h"
#include "tapegrad/data/mnist.h"
#include "tapegrad/data/spirals.h"

using namespace tg;
using namespace tg::data;

namespace {

struct Numbered {
  Tensor number, draw, image;
};

// Each sample knows its index, draws one number, and makes an image from its generator.
class Numbers : public Dataset<Numbered> {
 public:
  explicit Numbers(int64_t n) : n_(n) {}
  int64_t size() const override { return n_; }
  Numbered get(int64_t i, Generator& random) const override {
    if (i == broken) throw std::runtime_error("file is damaged");
    if (i == strange) throw 42;
    return {scalar_tensor(i, i64), scalar_tensor(random.integer(int64_t(1) << 32), i64),
            rand({3, 2}, {}, &random)};
  }
  std::string name(int64_t i) const override {
    return i == broken ? "cat/7.png" : Dataset::name(i);
  }
  int64_t broken = -1, strange = -1;

 private:
  int64_t n_;
};

LoaderOptions options(int64_t batch, int workers, bool shuffle = true) {
  LoaderOptions o;
  o.batch_size = batch;
  o.workers = workers;
  o.shuffle = shuffle;
  o.seed = 3;
  return o;
}

std::vector<int64_t> indices(const Tensor& t) { return t.to_vector<int64_t>(); }

// All bytes of two epochs.
std::string bytes_of_two_epochs(DataLoader<ImageAndLabel>& loader) {
  std::string all;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto [x, y] : loader) {
      all.append(static_cast<const char*>(x.read().data), size_t(x.numel()) * 4);
      all.append(static_cast<const char*>(y.read().data), size_t(y.numel()) * 8);
    }
  return all;
}

}  // namespace

TEST_CASE("samples of structs and tuples become batches", "[data][loader]") {
  DataLoader loader(std::make_shared<Numbers>(10), options(4, 0, false));
  std::vector<Shape> shapes;
  for (auto [number, draw, image] : loader) {
    CHECK(number.dtype() == i64);
    shapes.push_back(image.shape());
  }
  CHECK(shapes == std::vector<Shape>{{4, 3, 2}, {4, 3, 2}, {2, 3, 2}});
  DataLoader pairs(std::make_shared<TensorDataset>(spirals(5)), options(1, 0));
  for (auto [x, y] : pairs) CHECK(x.shape() == Shape{1, 2});  // a batch of one keeps its dimension
}

TEST_CASE("how many batches there are", "[data][loader][DAT-05]") {
  struct Case {
    int64_t n, batch;
    bool drop;
    std::vector<int64_t> sizes;
  };
  for (const Case& c :
       {Case{10, 4, false, {4, 4, 2}}, Case{10, 4, true, {4, 4}}, Case{3, 4, true, {}},
        Case{0, 4, false, {}}, Case{0, 4, true, {}}, Case{8, 4, false, {4, 4}}})
    for (int workers : {0, 2}) {
      LoaderOptions o = options(c.batch, workers);
      o.drop_last = c.drop;
      DataLoader loader(std::make_shared<Numbers>(c.n), o);
      std::vector<int64_t> sizes;
      for (auto [number, draw, image] : loader) sizes.push_back(number.size(0));
      CHECK(sizes == c.sizes);
      CHECK(loader.size() == int64_t(c.sizes.size()));
      CHECK(loader.epoch() == 1);
    }
  CHECK_THROWS_AS(DataLoader(std::make_shared<Numbers>(3), options(0, 0)), ValueError);
  CHECK_THROWS_AS(DataLoader(std::make_shared<Numbers>(3), options(1, -1)), ValueError);
}

TEST_CASE("randomness belongs to seed, epoch and index alone", "[data][loader][DAT-01]") {
  std::vector<std::vector<int64_t>> runs;
  for (int workers : {0, 1, 4}) {
    DataLoader loader(std::make_shared<Numbers>(64), options(1, workers, false));
    std::vector<int64_t> draws;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto [number, draw, image] : loader) draws.push_back(indices(draw)[0]);
    CHECK(std::set<int64_t>(draws.begin(), draws.end()).size() == 128);  // none twice
    runs.push_back(draws);
  }
  CHECK(runs[0] == runs[1]);
  CHECK(runs[0] == runs[2]);
}

TEST_CASE("two epochs with random crops are the same for any number of workers", "[data][loader]") {
  ImagesAndLabels made{(rand({200, 28, 28}) * 255).to(u8), randint(0, 10, {200})};
  MnistOptions augmented;
  augmented.augment = true;
  auto images = std::make_shared<Mnist>(made, augmented);
  DataLoader plain(images, options(16, 0));
  std::string expected = bytes_of_two_epochs(plain);
  CHECK(expected.substr(0, 4000) != expected.substr(expected.size() / 2, 4000));
  for (int workers : {1, 2, 5}) {
    DataLoader loader(images, options(16, workers));
    CHECK((bytes_of_two_epochs(loader) == expected));
  }
}

TEST_CASE("an exception surfaces at its batch with the sample's name", "[data][loader][DAT-03]") {
  for (int workers : {0, 4}) {
    auto numbers = std::make_shared<Numbers>(100);
    numbers->broken = 37;
    DataLoader loader(numbers, options(10, workers, false));
    int delivered = 0;
    try {
      for (auto [number, draw, image] : loader) CHECK(indices(number)[0] == 10 * delivered++);
      FAIL("nothing was raised");
    } catch (const DataError& e) {
      CHECK(e.index == 37);
      CHECK(std::string(e.what()) == "loading sample 37 (cat/7.png): file is damaged");
    }
    CHECK(delivered == 3);
    numbers->broken = -1;
    delivered = 0;
    for (auto [number, draw, image] : loader) ++delivered;  // a new epoch works
    CHECK(delivered == 10);
    numbers->strange = 5;
    CHECK_THROWS_WITH(
        [&] {
          for (auto [a, b, c] : loader) {}
        }(),
        Catch::Contains("unknown type"));
  }
  class AllBroken : public Dataset<ImageAndLabel> {
    int64_t size() const override { return 64; }
    ImageAndLabel get(int64_t, Generator&) const override { throw std::runtime_error("no disk"); }
  };
  DataLoader broken(std::make_shared<AllBroken>(), options(1, 4));
  CHECK_THROWS_AS(
      [&] {
        for (auto [a, b] : broken) {}
      }(),
      DataError);
  DataLoader<Numbered> bad_collate(
      std::make_shared<Numbers>(8), options(4, 2),
      [](const std::vector<Numbered>&) -> Numbered { throw std::runtime_error("uneven"); });
  CHECK_THROWS_WITH(
      [&] {
        for (auto [a, b, c] : bad_collate) {}
      }(),
      Catch::Contains("collating batch 0: uneven"));
}

TEST_CASE("samples that do not fit together are named", "[data][loader][DAT-06]") {
  class Uneven : public Dataset<ImageAndLabel> {
   public:
    bool types = false;
    int64_t size() const override { return 12; }
    ImageAndLabel get(int64_t i, Generator&) const override {
      if (types) return {zeros({3}, i == 9 ? f64 : f32), scalar_tensor(i, i64)};
      return {zeros({i == 9 ? 1 : 3, 4, 4}), scalar_tensor(i, i64)};
    }
  };
  auto uneven = std::make_shared<Uneven>();
  DataLoader loader(uneven, options(12, 0, false));
  CHECK_THROWS_WITH(
      [&] {
        for (auto [x, y] : loader) {}
      }(),
      Catch::Contains("[3,4,4] in sample 0 but [1,4,4] in sample 9"));
  uneven->types = true;
  CHECK_THROWS_WITH(
      [&] {
        for (auto [x, y] : loader) {}
      }(),
      Catch::Contains("f32 in sample 0 but f64 in sample 9"));
}

TEST_CASE("leaving an epoch early joins cleanly and the next one is whole", "[data][loader]") {
  for (int workers : {0, 3}) {
    DataLoader loader(std::make_shared<Numbers>(40), options(4, workers));
    for (auto [number, draw, image] : loader) break;
    CHECK(loader.epoch() == 0);
    int64_t seen = 0;
    for (auto [number, draw, image] : loader) seen += number.size(0);
    CHECK(seen == 40);
    CHECK(loader.epoch() == 2);
  }
}

TEST_CASE("once a loop is left nobody reads the data set", "[data][loader]") {
  class Counting : public Dataset<ImageAndLabel> {
   public:
    mutable std::atomic<int> reading = 0, reads = 0;
    int64_t size() const override { return 400; }
    ImageAndLabel get(int64_t i, Generator&) const override {
      ++reading;
      ++reads;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --reading;
      return {scalar_tensor(0), scalar_tensor(i, i64)};
    }
  };
  auto counting = std::make_shared<Counting>();
  DataLoader loader(counting, options(2, 4));
  auto none_follow = [&] {
    CHECK(counting->reading == 0);
    int before = counting->reads;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(counting->reads == before);
  };
  for (auto [x, y] : loader) break;
  none_follow();
  CHECK(loader.state().batch == 1);  // where it was left
  CHECK_THROWS_AS(
      [&] {
        for (auto [x, y] : loader) throw std::runtime_error("a step failed");
      }(),
      std::runtime_error);
  none_follow();
  CHECK(loader.state().epoch == 1);
}

TEST_CASE("a system that gives no thread is an error, not an end", "[data][loader]") {
  pthread_attr_t usual, impossible;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  REQUIRE(pthread_attr_init(&impossible) == 0);
  REQUIRE(pthread_attr_setstacksize(&impossible, size_t(1) << 46) == 0);  // of stack, for each
  DataLoader loader(std::make_shared<Numbers>(12), options(4, 2));
  REQUIRE(pthread_setattr_default_np(&impossible) == 0);
  CHECK_THROWS_WITH(loader.begin(), Catch::Contains("the system gives no worker thread"));
  REQUIRE(pthread_setattr_default_np(&usual) == 0);
  int64_t seen = 0;
  for (auto [number, draw, image] : loader) seen += number.size(0);
  CHECK(seen == 12);
  CHECK(loader.epoch() == 1);
}

TEST_CASE("of two loops over one loader the older one is over", "[data][loader]") {
  for (int workers : {0, 2}) {
    DataLoader loader(std::make_shared<Numbers>(12), options(4, workers, false));
    auto older = loader.begin();
    auto newer = loader.begin();
    CHECK_THROWS_WITH(++older, Catch::Contains("this loop is over"));
    ++newer;
    CHECK(indices((*newer).number)[0] == 4);
    loader.set_epoch(5);
    CHECK_THROWS_WITH(++newer, Catch::Contains("set_epoch"));
    int64_t seen = 0;
    for (auto [number, draw, image] : loader) seen += number.size(0);
    CHECK(seen == 12);
    CHECK(loader.epoch() == 6);
  }
}

TEST_CASE("a run resumed in the middle of an epoch sees the same samples",
          "[data][loader][DAT-07]") {
  auto numbers = std::make_shared<Numbers>(10);
  auto walk = [&](DataLoader<Numbered>& loader, std::vector<int64_t>& seen, int64_t most) {
    while (most > 0 && loader.epoch() < 3)
      for (auto [number, draw, image] : loader) {
        for (int64_t i : indices(number)) seen.push_back(i);
        for (int64_t i : indices(draw)) seen.push_back(i);
        if (--most == 0) break;
      }
  };
  DataLoader whole(numbers, options(2, 0));
  std::vector<int64_t> expected;
  walk(whole, expected, 1000);
  for (int workers : {0, 2}) {
    std::vector<int64_t> seen;
    DataLoader first(numbers, options(2, workers));
    walk(first, seen, 8);  // three batches into the second epoch
    LoaderState state = first.state();
    CHECK(state.epoch == 1);
    CHECK(state.batch == 3);
    DataLoader second(numbers, options(2, workers));
    second.load_state(state);
    walk(second, seen, 1000);
    CHECK(seen == expected);
    CHECK_THROWS_AS(second.load_state({0, 99}), ValueError);
  }
}

TEST_CASE("custom collation and padding", "[data][loader]") {
  Tensor a = tensor({1, 2, 3}), b = tensor({4});
  CHECK(pad_stack({a, b}, -1).to_vector<double>() == std::vector<double>{1, 2, 3, 4, -1, -1});
  CHECK_THROWS_AS(pad_stack({zeros({2, 3}), zeros({2, 4})}), ShapeError);
  DataLoader<Numbered> loader(
      std::make_shared<Numbers>(6), options(3, 1, false), [](const std::vector<Numbered>& s) {
        return Numbered{s.front().number, s.back().number, stack({s[0].image, s[1].image})};
      });
  for (auto [first, last, two] : loader) {
    CHECK(last.item() - first.item() == 2);
    CHECK(two.shape() == Shape{2, 3, 2});
  }
}
