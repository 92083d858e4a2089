#include "catch.h"
#include "foreign_locale.h"
#include "tapegrad/autograd/print.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/io/npy.h"
#include "tapegrad/core/io/safetensors.h"
#include "tapegrad/core/memory.h"
#include "tapegrad/nn/nn.h"
#include "tapegrad/nn/summary.h"
#include "tapegrad/optim/optim.h"
#include "temporary_folder.h"

using namespace tg;
using test::ForeignLocale;

TEST_CASE("No locale changes what is written or read", "[IOF-06]") {
  TemporaryFolder folder;
  Tensor x = empty({2621, 401});
  for (int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] = 0.1f;
  save_npy(folder / "classic.npy", x);
  save_safetensors(folder / "classic.safetensors", {{"x", x}});
  ForeignLocale foreign;
  save_npy(folder / "x.npy", x);
  save_safetensors(folder / "x.safetensors", {{"x", x}});
  std::string npy = TemporaryFolder::read(folder / "x.npy");
  CHECK(npy.find("(2621, 401)") != std::string::npos);
  CHECK(npy == TemporaryFolder::read(folder / "classic.npy"));
  CHECK(TemporaryFolder::read(folder / "x.safetensors") ==
        TemporaryFolder::read(folder / "classic.safetensors"));
  CHECK(load_npy(folder / "x.npy").shape() == Shape{2621, 401});
  NamedTensors loaded = load_safetensors(folder / "x.safetensors");
  CHECK(loaded.at(0).second.data<float>()[2621 * 401 - 1] == 0.1f);
  CHECK(to_text(Shape{2621, 401}) == "[2621,401]");
  CHECK(to_text(1234.5) == "1234.5");
  CHECK(to_text(1e-7) == "1e-07");
  CHECK(bytes_text(1536) == "1.50 KiB");
}

TEST_CASE("A training's texts are the same in any locale, and are read back", "[IOF-06]") {
  TemporaryFolder folder;
  auto write = [&](const std::string& name) {
    manual_seed(1);
    nn::Sequential model{nn::Linear(1500, 20), nn::ReLU(), nn::Linear(20, 2)};
    optim::AdamW optimizer(model, {.lr = 0.1, .weight_decay = 1e-7});
    optim::CosineLR schedule(optimizer, {.total_steps = 1234567});
    model(ones({1, 1500})).backward(ones({1, 2}));
    optimizer.step();
    schedule.step();
    optim::CheckpointParts parts{&model, &optimizer, &schedule, {{"all", &default_generator()}}};
    optim::save_checkpoint(folder / name, parts, {.step = 1234567});
    optimizer.group(0).lr = 7;
    optim::load_checkpoint(folder / name, parts);
    CHECK(optimizer.group(0).weight_decay == 1e-7);
    CHECK(optimizer.group(0).lr == Approx(0.1).epsilon(1e-9));
    return to_string(tensor({0.5, 1234.25})) + nn::summary(model, {64, 1500}).text() +
           TemporaryFolder::read(folder / name);
  };
  std::string classic = write("classic");
  CHECK(classic.find("MFLOP") != std::string::npos);
  ForeignLocale foreign;
  CHECK((write("foreign") == classic));
}
