// Data sets and transforms given numbers and things that they cannot use.
#include <filesystem>
#include <limits>

#include "catch.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/memory.h"
#include "tapegrad/core/random.h"
#include "tapegrad/data/image_folder.h"
#include "tapegrad/data/spirals.h"
#include "tapegrad/data/transforms.h"
#include "temporary_folder.h"
#include "test_folder.h"

using namespace tg;

namespace {
constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = -kMost - 1;
}

TEST_CASE("samples that a data set does not have", "[data]") {
  TemporaryFolder folder;
  for (const char* name : {"cat", "dog"}) {
    std::filesystem::create_directory(folder / name);
    std::filesystem::copy(test::test_folder() + "/data/files/rgb.png", folder / name);
  }
  auto pictures = std::make_shared<data::ImageFolder>(folder / "");
  data::Subset<data::ImageAndLabel> half(pictures, {1});
  data::TensorDataset rows(ones({2, 3}), ones({2}));
  Generator random(1);
  CHECK(half.name(0).ends_with("dog/rgb.png"));
  for (int64_t i : {kLeast, int64_t(-1), int64_t(2), kMost}) {
    INFO(i);
    CHECK_THROWS_AS(pictures->get(i, random), IndexError);
    CHECK_THROWS_AS(pictures->name(i), IndexError);
    CHECK_THROWS_AS(half.get(i, random), IndexError);
    CHECK_THROWS_AS(half.name(i), IndexError);
    if (i != -1) CHECK_THROWS_AS(rows.get(i, random), IndexError);  // -1 is the last row
    CHECK_THROWS_AS(data::Subset<data::ImageAndLabel>(pictures, {0, i}), IndexError);
  }
  CHECK_THROWS_WITH(data::Subset<data::ImageAndLabel>(nullptr, {}), "Subset: there is no data set");
  CHECK_THROWS_AS(data::TensorDataset(Tensor(), ones({2})), Error);
  CHECK_THROWS_AS(data::TensorDataset(ones({3}), ones({2})), ShapeError);
}

TEST_CASE("transforms with numbers that make no sense", "[data]") {
  const Tensor image = ones({1, 4, 4});
  Generator random(1);
  for (int64_t n : {kLeast, int64_t(-1), (int64_t(1) << 30) + 1, int64_t(1) << 62, kMost})
    CHECK_THROWS_WITH(data::random_crop(image, n, random),
                      Catch::StartsWith("random_crop: padding must be in [0, 1073741824], got "));
  CHECK(data::random_crop(image, int64_t(1) << 30, random).shape() == image.shape());
  set_memory_limit(memory_stats().live + (int64_t(1) << 20));
  for (int64_t n : {kLeast, int64_t(-1), int64_t(0), int64_t(1) << 32, int64_t(1) << 62, kMost}) {
    INFO(n);
    CHECK_THROWS_AS(data::resize(image, n, 1), Error);
    CHECK_THROWS_AS(data::resize(image, 1, n), Error);
    CHECK_THROWS_AS(data::resize(image, n, n), Error);
    if (n != 0) CHECK_THROWS_AS(data::spirals(n, 0.1, 1), Error);
  }
  set_memory_limit(0);
  CHECK(data::spirals(0, 0.1, 1).size() == 0);
  for (const auto& call : std::vector<Function<void()>>{
           [] { data::to_float(Tensor()); }, [] { data::horizontal_flip(Tensor()); },
           [] { data::resize(Tensor(), 2, 2); }, [] { data::normalize(Tensor(), {0}, {1}); },
           [&] { data::random_crop(Tensor(), 1, random); }})
    CHECK_THROWS_AS(call(), Error);
}
