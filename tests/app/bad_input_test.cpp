// What the program says to input that it cannot use: one line that names the culprit, a status that
// is not 0, and nothing left behind.
#include <sys/stat.h>

#include <algorithm>

#include "app/program.h"
#include "catch.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/io/safetensors.h"
#include "tapegrad/nn/models/mlp.h"
#include "tapegrad/optim/checkpoint.h"
#include "test_folder.h"

using namespace tg;
using namespace tg::test;
namespace fs = std::filesystem;

namespace {

// A folder with data and a finished short run.
struct TrainedRun {
  TemporaryFolder folder;
  std::string best = folder / "outputs/run/best.safetensors";
  TrainedRun() {
    write_idx(folder);
    Finished trained = run(short_run(folder));
    INFO(trained.err);
    REQUIRE(trained.status == 0);
  }
};

void flip_bit(const std::string& path, size_t at) {
  std::string bytes = TemporaryFolder::read(path);
  bytes.at(at) = char(bytes.at(at) ^ 16);
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("program: image files that are missing, cut or something else", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  const Words words = short_run(folder);
  auto refused = [&](const std::vector<std::string>& parts) {
    check_refused(run(words), parts);
    CHECK_FALSE(fs::exists(folder / "outputs"));  // nothing was begun
    write_idx(folder);
  };
  fs::remove(folder / "train-images-idx3-ubyte");
  refused({folder / "", "train-images-idx3-ubyte.gz is missing"});
  fs::remove(folder / "t10k-labels-idx1-ubyte");
  refused({"t10k-labels-idx1-ubyte.gz is missing"});
  folder.write("train-images-idx3-ubyte", idx_images(60, 6).substr(0, 1000));
  refused({folder / "train-images-idx3-ubyte", "cut", "expected 2160 bytes", "984"});
  folder.write("train-images-idx3-ubyte", "PK\3\4 an archive");
  refused({folder / "train-images-idx3-ubyte", "not an IDX file"});
  folder.write("train-images-idx3-ubyte", "");
  refused({folder / "train-images-idx3-ubyte", "cut"});
  folder.write("train-images-idx3-ubyte", idx_labels(60));
  refused({folder / "train-images-idx3-ubyte", "expected u8 images [n,rows,columns]"});
  folder.write("t10k-images-idx3-ubyte", idx_images(60, 7));
  refused({"the test images have 7 x 7 pixels, but the training images 6 x 6"});
  folder.write("train-images-idx3-ubyte", idx_images(0, 6));
  folder.write("train-labels-idx1-ubyte", idx_labels(0));
  refused({"the training images hold no pixels"});
  check_refused(run(with(words, {"data.folder=/no/such/folder"})),
                {"/no/such/folder", "dataset-fashion-mnist"});
}

TEST_CASE("program: labels that do not fit", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  folder.write("train-labels-idx1-ubyte", idx_labels(59));
  check_refused(run(short_run(folder)),
                {"train-labels-idx1-ubyte: holds 59 labels, but", "holds 60 images"});
  std::string labels = idx_labels(60);
  labels[8 + 33] = 12;
  folder.write("train-labels-idx1-ubyte", labels);
  check_refused(run(short_run(folder)), {"label 12 for image 33", "0 to 9"});
  CHECK_FALSE(fs::exists(folder / "outputs"));
}

TEST_CASE("program: a config that is wrong or missing", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  Words words = short_run(folder);
  auto refused = [&](const std::string& yaml, const std::vector<std::string>& parts) {
    words[1] = folder.write("c.yaml", yaml);
    check_refused(run(words), with({folder / "c.yaml"}, parts));
  };
  refused("epoch: 1\n", {"line 1", "unknown key 'epoch'", "did you mean 'epochs'?"});
  refused("epochs: many\n", {"epochs must be a whole number, not 'many'"});
  refused("epochs: [1\n", {"line"});
  words[1] = folder / "none.yaml";
  check_refused(run(words), {folder / "none.yaml", "No such file"});
  words[1] = folder / "";
  check_refused(run(words), {"is a folder"});
  check_refused(run({"train"}), {"give a config file"});
  check_refused(run(with(short_run(folder), {"data.validation=60"})), {"data.validation", "60"});
  check_refused(run(with(short_run(folder), {"model.hidden=8,x"})), {"model.hidden"});
  check_refused(run(with(short_run(folder), {"device=cuda:9"})),
                {"device: 'cuda:9'", "it has cpu"});
  check_refused(run(with(short_run(folder), {"device=gpu"})), {"gpu"});
  CHECK_FALSE(fs::exists(folder / "outputs"));
}

TEST_CASE("program: a run that diverges names what may help and keeps its checkpoint",
          "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  Words words = short_run(folder);
  // Found at the next step, or, behind the last one, in the validation.
  check_refused(run(with(words, {"optimizer.lr=1e30"})), {"loss is not finite", "optimizer.lr"});
  std::string at = folder / "outputs/run";
  CHECK(optim::read_progress(at + "/last.safetensors").step == 0);
  CHECK_FALSE(fs::exists(at + "/best.safetensors"));
  check_refused(run(with(words, {"optimizer.lr=1e30", "max_steps=1"})),
                {"validation loss is not finite", "optimizer.lr"});
  CHECK_FALSE(fs::exists(at + "/best.safetensors"));
}

TEST_CASE("program: words that are no command", "[program]") {
  auto refused = [](const Words& words, const std::string& part) {
    Finished f = run(words);
    INFO(f.err);
    CHECK(f.status == 2);
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    CHECK_THAT(f.err, Catch::Contains(part));
    CHECK(f.out.empty());
  };
  refused({"trian"}, "unknown command 'trian'; did you mean 'train'?");
  refused({"frobnicate", "x", "--y"}, "there are train, eval, predict, info");
  refused({}, "train, eval, predict, info");
  refused({"--frobnicate"}, "--frobnicate");
  refused({"eval"}, "checkpoint is required");
  refused({"train", "--resume"}, "--resume");
  refused({"predict", "x", "--samples", "many"}, "many");
  CHECK(run({"--help"}).status == 0);
  CHECK(run({"train", "--help"}).status == 0);
  CHECK_THAT(run({"--version"}).out, Catch::StartsWith("0.1.0"));
}

TEST_CASE("program: checkpoints that are none, cut, or damaged", "[program]") {
  TrainedRun trained;
  const std::string bad = trained.folder / "bad.safetensors";
  const std::string good = TemporaryFolder::read(trained.best);
  auto refused_by_all = [&](const std::string& path, const std::vector<std::string>& parts) {
    for (const char* command : {"eval", "predict", "info"}) {
      Words words{command, path};
      if (words[0] == "predict") words.insert(words.end(), {"--samples", "1"});
      check_refused(run(words), with({path}, parts));
    }
  };
  refused_by_all(trained.folder / "none.safetensors", {"No such file"});
  refused_by_all(trained.folder.write("bad.safetensors", good.substr(0, good.size() - 100)),
                 {"cut short"});
  refused_by_all(trained.folder.write("bad.safetensors", good.substr(0, 5)), {"5 bytes"});
  refused_by_all(trained.folder.write("bad.safetensors", "<!DOCTYPE html><html>404</html>"),
                 {"not a safetensors file"});
  trained.folder.write("bad.safetensors", good);
  flip_bit(bad, good.size() - 50);  // in a weight
  refused_by_all(bad, {"damaged"});
  save_safetensors(bad, {{"w", zeros({2})}});  // right format, no checkpoint
  refused_by_all(bad, {"no checkpoint"});
  // The same for a run that is to go on.
  fs::copy(bad, trained.folder / "outputs/run/last.safetensors",
           fs::copy_options::overwrite_existing);
  check_refused(run({"train", "--resume", trained.folder / "outputs/run"}), {"no checkpoint"});
}

TEST_CASE("program: a checkpoint of another model", "[program]") {
  TrainedRun trained;
  // Its config says 8 hidden values; its weights are of a model with 5.
  nn::MLP other({36, 5, 10});
  std::string path = trained.folder / "other.safetensors";
  optim::CheckpointParts parts;
  parts.model = &other;
  optim::save_checkpoint(path, parts, optim::read_progress(trained.best));
  std::vector<std::string> said = {path, "[8,36]", "[5,36]"};
  check_refused(run({"eval", path}), said);
  check_refused(run({"predict", path, "--samples", "1"}), said);
  std::string last = trained.folder / "outputs/run/last.safetensors";
  fs::copy(path, last, fs::copy_options::overwrite_existing);
  said[0] = last;
  check_refused(run({"train", "--resume", trained.folder / "outputs/run"}), said);
  // A right checkpoint, but other images to test on.
  TemporaryFolder larger;
  write_idx(larger, 60, 8);
  check_refused(run({"eval", trained.best, "data.folder=" + (larger / "")}),
                {trained.best, "[1,6,6]", "[1,8,8]"});
  check_refused(run({"eval", trained.best, "optimizer.lr=3"}), {"optimizer.lr=3", "data.folder"});
}

TEST_CASE("program: pictures that are none or cut", "[program]") {
  TrainedRun trained;
  std::string png = test_folder() + "/data/files/rgb.png";
  std::string jpeg = test_folder() + "/data/files/exif_II_1.jpg";
  CHECK(run({"predict", trained.best, png, jpeg}).status == 0);
  auto refused = [&](const std::string& path, const std::string& part) {
    check_refused(run({"predict", trained.best, path}), {path, part});
  };
  const TemporaryFolder& folder = trained.folder;
  std::string whole = TemporaryFolder::read(png), photo = TemporaryFolder::read(jpeg);
  refused(folder.write("words.png", "these are words"), "not a picture");
  refused(folder.write("empty.png", ""), "not a picture");
  refused(folder.write("half.png", whole.substr(0, whole.size() / 2)), "cut");
  refused(folder.write("half.jpg", photo.substr(0, photo.size() - 20)), "cut");
  refused(folder / "none.png", "No such file");
  refused(folder / "", "is a folder");
  refused(test_folder() + "/data/files/cmyk.jpg", "CMYK");
  check_refused(run({"predict", trained.best}), {"--samples"});
  // Predicting needs the checkpoint alone.
  for (const char* name : {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"})
    fs::remove(folder / name);
  CHECK(run({"predict", trained.best, png}).status == 0);
}

TEST_CASE("program: a picture of a training folder that is damaged", "[program]") {
  TemporaryFolder folder;
  std::string png = test_folder() + "/data/files/rgb.png";
  for (const char* part : {"train", "test"})
    for (const char* name : {"cat", "dog"}) {
      std::string place = folder / (std::string("pictures/") + part + "/" + name);
      fs::create_directories(place);
      for (int i = 0; i < 4; ++i) fs::copy(png, place + "/" + std::to_string(i) + ".png");
    }
  Words words{"train",
              folder.write("c.yaml", "data: {name: image_folder, validation: 1, image_size: 8}"),
              "data.folder=" + (folder / "pictures"),
              "model.name=mlp",
              "model.hidden=4",
              "data.batch_size=2",
              "outputs=" + (folder / "outputs")};
  Finished good = run(words);
  INFO(good.err);
  CHECK(good.status == 0);
  std::string whole = TemporaryFolder::read(png);
  std::string bad = folder / "pictures/train/cat/2.png";
  for (const char* workers : {"0", "2"})
    for (const std::string& content : {whole.substr(0, 60), std::string("words")}) {
      std::ofstream(bad, std::ios::binary) << content;
      check_refused(run(with(words, {std::string("data.workers=") + workers})), {bad});
    }
  std::ofstream(bad, std::ios::binary) << whole;
  std::string link = folder / "pictures/train/cat/link.png";
  fs::create_symlink("nowhere.png", link);
  check_refused(run(words), {link, "a link to a file that is not there"});
  fs::remove(link);
  REQUIRE(::mkfifo(link.c_str(), 0600) == 0);
  check_refused(run(words), {link, "not a regular file"});
  fs::remove(link);
  fs::rename(folder / "pictures/train/cat", folder / "pictures/train/c\xe9");
  check_refused(run(words), {folder / "pictures", "UTF-8"});
  fs::rename(folder / "pictures/train/c\xe9", folder / "pictures/train/cat");
  fs::remove_all(folder / "pictures/test/dog");
  check_refused(run(words), {"pictures", "train and test have different classes"});
}
