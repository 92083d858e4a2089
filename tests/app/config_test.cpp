// What a config may hold, what is refused and in which words, and that it comes back as written.
#include "tapegrad/tools/app/config.h"

#include "catch.h"
#include "tapegrad/core/error.h"
#include "temporary_folder.h"

using namespace tg;
using namespace tg::app;
using namespace std::string_literals;

namespace {

std::string refusal(const std::string& yaml) {
  try {
    TrainConfig c = parse_config(yaml, "c.yaml");
    validate(c);
  } catch (const ValueError& e) {
    return e.what();
  }
  return "accepted";
}

std::string refused_words(const std::vector<std::string>& words) {
  TrainConfig c;
  try {
    apply_overrides(c, words);
  } catch (const ValueError& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a config sets what it names and nothing else", "[config]") {
  TrainConfig c = parse_config(
      "# a comment\n"
      "run: first try\n"
      "epochs: 3\n"
      "data: {batch_size: 32, augment: yes}\n"
      "optimizer:\n"
      "  lr: 1e-4\n"
      "  name: sgd\n"
      "schedule:\n"
      "model:\n"
      "  hidden: 256,128\n",
      "c.yaml");
  CHECK(c.run == "first try");
  CHECK(c.epochs == 3);
  CHECK(c.data.batch_size == 32);
  CHECK(c.data.augment);
  CHECK(c.optimizer.lr == 1e-4);
  CHECK(c.optimizer.name == "sgd");
  CHECK(c.model.hidden == "256,128");
  TrainConfig untouched;
  CHECK(c.seed == untouched.seed);
  CHECK(c.schedule.warmup == untouched.schedule.warmup);
  CHECK(to_yaml(parse_config("", "c.yaml")) == to_yaml(untouched));
  CHECK(to_yaml(parse_config("# nothing\n", "c.yaml")) == to_yaml(untouched));
}

TEST_CASE("words of the command line come last", "[config]") {
  TemporaryFolder folder;
  std::string path = folder.write("c.yaml", "epochs: 3\noptimizer: {lr: 0.5}\n");
  TrainConfig c = load_config(path, {"epochs=5", "run=a=b", "data.augment=on"});
  CHECK(c.epochs == 5);
  CHECK(c.run == "a=b");
  CHECK(c.data.augment);
  CHECK(c.optimizer.lr == 0.5);
}

TEST_CASE("an unknown key is named with its line and the nearest one", "[config]") {
  CHECK(refusal("run: a\nepoch: 3\n") ==
        "c.yaml: line 2: unknown key 'epoch'; did you mean 'epochs'?");
  CHECK(refusal("data:\n  batchsize: 3\n") ==
        "c.yaml: line 2: unknown key 'data.batchsize'; did you mean 'data.batch_size'?");
  CHECK(refusal("lr: 0.1\n") == "c.yaml: line 1: unknown key 'lr'; did you mean 'optimizer.lr'?");
  CHECK(refusal("xylophone_of_doom: 1\n") == "c.yaml: line 1: unknown key 'xylophone_of_doom'");
  CHECK(refused_words({"optimiser.lr=1"}) ==
        "command line: unknown key 'optimiser.lr'; did you mean 'optimizer.lr'?");
  CHECK_THAT(refusal("data: 3\n"), Catch::StartsWith("c.yaml: line 1: 'data' is a group of keys: "
                                                     "data.name, data.folder, "));
  CHECK_THAT(refusal("epochs:\n  a: 3\n"), Catch::StartsWith("c.yaml: line 2: unknown key "
                                                             "'epochs.a'; did you mean 'epochs'?"));
}

TEST_CASE("a value of the wrong type is named with its line", "[config]") {
  CHECK(refusal("epochs: ten\n") == "c.yaml: line 1: epochs must be a whole number, not 'ten'");
  for (const char* number : {"3.5", "3 apples", "", "1e3", "0x10", "+3", "99999999999999999999"})
    CHECK_THAT(refusal("epochs: "s + number), Catch::Contains("epochs must be a whole number"));
  CHECK(refusal("optimizer: {lr: fast}\n") ==
        "c.yaml: line 1: optimizer.lr must be a number, not 'fast'");
  for (const char* number : {".inf", "nan", "1,5", "1e999"})
    CHECK_THAT(refusal("optimizer: {lr: \""s + number + "\"}"), Catch::Contains("optimizer.lr"));
  CHECK(refusal("data: {augment: maybe}") ==
        "c.yaml: line 1: data.augment must be true or false, not 'maybe'");
  CHECK(refusal("epochs: [1, 2]\n") == "c.yaml: line 1: 'epochs' must be one value, not a list");
  CHECK_THAT(refusal("? [a, b]\n: 1\n"), Catch::Contains("a key must be a word"));
  CHECK_THAT(refusal("- a\n- b\n"), Catch::Contains("c.yaml: expected 'key: value' lines"));
  CHECK_THAT(refusal("just words\n"), Catch::Contains("c.yaml: expected 'key: value' lines"));
  CHECK(refused_words({"epochs=x"}) == "command line: epochs must be a whole number, not 'x'");
  CHECK(refused_words({"epochs"}) == "expected key=value, got 'epochs'");
  CHECK(refused_words({"=3"}) == "expected key=value, got '=3'");
}

TEST_CASE("a key that stands twice is refused, however it is written", "[config]") {
  CHECK(refusal("epochs: 1\nepochs: 2\n") ==
        "c.yaml: line 2: 'epochs' stands twice, first in line 1");
  CHECK(refusal("optimizer.lr: 0.1\noptimizer:\n  lr: 0.2\n") ==
        "c.yaml: line 3: 'optimizer.lr' stands twice, first in line 1");
  CHECK(refusal("optimizer: {lr: 0.1}\nrun: a\noptimizer.lr: 0.1\n") ==
        "c.yaml: line 3: 'optimizer.lr' stands twice, first in line 1");
  CHECK(refusal("data: {workers: 1, workers: 2}\n") ==
        "c.yaml: line 1: 'data.workers' stands twice, first in line 1");
  CHECK(refusal("data: {workers: 1}\ndata: {augment: yes}\n") ==
        "c.yaml: line 2: 'data' stands twice, first in line 1");
  TrainConfig c = parse_config("optimizer.lr: 0.5\noptimizer: {name: sgd}\n", "c.yaml");
  CHECK(c.optimizer.lr == 0.5);
  CHECK(c.optimizer.name == "sgd");
}

TEST_CASE("groups in groups, and groups that hold themselves", "[config]") {
  CHECK(refusal("data: &a {name: *a}\n") ==
        "c.yaml: line 1: 'data.name' must be one value, not a group of keys");
  CHECK(refusal("data: {data: {data: {name: x}}}\n") ==
        "c.yaml: line 1: 'data.data' must be one value, not a group of keys");
  CHECK(refusal("epochs: {}\n") ==
        "c.yaml: line 1: 'epochs' must be one value, not a group of keys");
  CHECK(refusal("&a epochs: {*a : 1}\n").starts_with("c.yaml: line 1: unknown key 'epochs."));
}

TEST_CASE("texts that no checkpoint can hold are refused", "[config]") {
  for (const char* key : {"run", "outputs", "data.folder"}) {
    CHECK(refused_words({key + "=caf\xe9"s}) ==
          key + ": 'caf\xe9' is not UTF-8; a symbolic link can give it another name"s);
    CHECK(refused_words({key + "=caf\xc3\xa9"s}) == "accepted");
  }
  CHECK(refusal("run: \"a\\0b\"\n") == "run: 'a...' has a zero byte in it");
}

TEST_CASE("two configs tell in which keys they differ", "[config]") {
  TrainConfig a, b;
  CHECK(differences(a, b, {}).empty());
  b.epochs = 5;
  b.optimizer.lr = 0.5;
  b.data.folder = "/b c";
  b.data.augment = true;
  CHECK(differences(a, b, {}) ==
        "epochs is 1, not 5, data.folder is \"\", not \"/b c\", data.augment is false, not true, "
        "optimizer.lr is 0.001, not 0.5");
  CHECK(differences(b, a, {"epochs", "data.folder", "data.augment"}) ==
        "optimizer.lr is 0.5, not 0.001");
}

TEST_CASE("a text that is no YAML is refused at its line", "[config]") {
  CHECK_THAT(refusal("a: b: c\n"), Catch::StartsWith("c.yaml: line 1: "));
  CHECK_THAT(refusal("data: {batch_size: 3\n"), Catch::StartsWith("c.yaml: line "));
  CHECK_THAT(refusal("\t- a\n"), Catch::StartsWith("c.yaml: line 1: "));
  CHECK_THAT(refusal("epochs: *last\n"), Catch::StartsWith("c.yaml: line 1: "));
  CHECK_THAT(refusal(std::string(20000, '[')), Catch::StartsWith("c.yaml: line "));
  CHECK(refusal("epochs: 3\n---\nepochs: 4\n") == "c.yaml: holds more than one document");
}

TEST_CASE("values that make no sense are refused before anything starts", "[config]") {
  CHECK(refused_words({"epochs=0"}) == "epochs must be at least 1, not 0");
  CHECK(refused_words({"data.batch_size=-1"}) == "data.batch_size must be at least 1, not -1");
  CHECK(refused_words({"epochs=9000000000000000000"}) ==
        "epochs must be at most 1000000000, not 9000000000000000000");
  CHECK(refused_words({"data.image_size=1000000000"}) ==
        "data.image_size must be at most 16384, not 1000000000");
  CHECK(refused_words({"threads=100000"}) == "threads must be at most 1024, not 100000");
  CHECK(refused_words({"data.workers=1025"}) == "data.workers must be at most 1024, not 1025");
  CHECK(refused_words({"optimizer.lr=0"}) == "optimizer.lr must be above 0, not 0");
  CHECK(refused_words({"optimizer.momentum=-1"}) ==
        "optimizer.momentum must be at least 0, not -1");
  CHECK(refused_words({"model.name=resnet81"}) ==
        "model.name: unknown 'resnet81'; did you mean 'resnet18'? Known: mlp, cnn, resnet18");
  for (const char* name : {"", ".", "..", "a/b", "/tmp"})
    CHECK_THAT(refused_words({"run="s + name}),
               Catch::Contains("run must be the name of a folder"));
}

TEST_CASE("a config comes back as it was written", "[config]") {
  TrainConfig c;
  c.epochs = 7;
  c.optimizer.lr = 0.1 + 0.2;
  c.data.augment = true;
  for (const char* text : {"plain",
                           "two words",
                           "",
                           "null",
                           "~",
                           "-",
                           "-x",
                           "? x",
                           "true",
                           "12",
                           "a: b",
                           "a #b",
                           "quote\" and \\ and 'this'",
                           "[list]",
                           "tab\tline\nreturn\r\x01",
                           "caf\xc3\xa9",
                           "%&*!|>@`",
                           "a=b",
                           "<<",
                           "trailing ",
                           " leading"}) {
    INFO(text);
    c.data.folder = text;
    TrainConfig read = parse_config(to_yaml(c), "written");
    CHECK(read.data.folder == text);
    CHECK(to_yaml(read) == to_yaml(c));
    CHECK(read.optimizer.lr == c.optimizer.lr);
  }
}

TEST_CASE("the nearest word is near", "[config]") {
  CHECK(nearest("trian", {"train", "eval"}) == "train");
  CHECK(nearest("zzz", {"train", "eval"}).empty());
  CHECK(nearest("evla", {"train", "eval"}) == "eval");
}
