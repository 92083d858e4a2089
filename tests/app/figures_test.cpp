// The figures of a run: how they are averaged, and how they stand in files.
#include "catch.h"
#include "foreign_locale.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/tools/app/run_folder.h"
#include "tapegrad/tools/app/trainer.h"
#include "temporary_folder.h"

using namespace tg;
using namespace tg::app;

TEST_CASE("an epoch's mean weights each batch by its size", "[DAT-05]") {
  Score score;
  CHECK(score.loss() == 0);  // of no batch at all
  CHECK(score.accuracy() == 0);
  const Tensor sure = tensor({{0, 9}, {9, 0}, {0, 9}, {0, 9}});
  score.add(scalar_tensor(1.0), sure, tensor(std::vector<int64_t>{1, 0, 1, 0}, {4}));
  score.add(scalar_tensor(4.0), slice(sure, 0, 0, 2), tensor(std::vector<int64_t>{1, 1}, {2}));
  CHECK(score.loss() == 2);  // (4 * 1 + 2 * 4) / 6; the mean of the means is 2.5
  CHECK(score.accuracy() == Approx(4.0 / 6));
}

TEST_CASE("no locale changes a run's files or how they are read", "[IOF-06]") {
  TemporaryFolder folder;
  TrainConfig config;
  config.outputs = folder / "outputs";
  config.max_steps = 1234567;
  config.optimizer.lr = 0.1;
  config.optimizer.weight_decay = 1e-7;
  auto files = [&](const std::string& run) {
    config.run = run;
    RunFolder made(config);
    made.start(config, "checksum", {"tapegrad", "train"});
    made.write_log({{1, 0.5, 1e-7, 1234.5, 0.25, 0.1, 12345.678, 0.5}});
    TrainConfig read = parse_config(TemporaryFolder::read(made.file("config.yaml")), "config.yaml");
    CHECK(read.optimizer.lr == 0.1);
    CHECK(read.optimizer.weight_decay == 1e-7);
    CHECK(read.max_steps == 1234567);
    return TemporaryFolder::read(made.file("log.csv"));
  };
  const std::string classic = files("classic");
  CHECK(classic.find("\n1,0.5,1e-07,1234.5,0.25,0.1,12345.678,0.500\n") != std::string::npos);
  test::ForeignLocale foreign;
  CHECK(files("foreign") == classic);
}
