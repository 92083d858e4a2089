// The command line of the tapegrad program: its words become the arguments of a command.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tapegrad/tools/app/commands.h"

namespace tg::app {

int run_program(int argc, char** argv) {
  CLI::App app{"Trains and uses models written with tapegrad."};
  app.require_subcommand(1);

  TrainArguments train;
  std::vector<std::string> words;
  CLI::App* train_app = app.add_subcommand("train", "train a model as a YAML file says");
  train_app->add_option("config", words, "CONFIG.yaml, then key=value to change it");
  train_app->add_option("--resume", train.resume, "folder of a run to go on with");

  std::string checkpoint;
  std::vector<std::string> files;
  int samples = 0;
  CLI::App* eval_app =
      app.add_subcommand("eval", "loss and accuracy of a checkpoint on the test set");
  eval_app->add_option("checkpoint", checkpoint, "a .safetensors file of a run")->required();
  eval_app->add_option("overrides", words, "key=value");
  CLI::App* predict_app = app.add_subcommand("predict", "class and confidence of pictures");
  predict_app->add_option("checkpoint", checkpoint, "a .safetensors file of a run")->required();
  predict_app->add_option("files", files, "picture files");
  predict_app->add_option("--samples", samples, "instead, the first N test images");
  CLI::App* info_app = app.add_subcommand("info", "version, devices, threads; or a checkpoint");
  info_app->add_option("checkpoint", checkpoint, "what a .safetensors file of a run holds");

  CLI11_PARSE(app, argc, argv);
  try {
    if (*train_app) {
      for (const std::string& word : words) {
        bool is_config =
            train.config.empty() && train.overrides.empty() && word.find('=') == std::string::npos;
        if (is_config)
          train.config = word;
        else
          train.overrides.push_back(word);
      }
      return train_command(train);
    }
    if (*eval_app) return eval_command(checkpoint, words);
    if (*predict_app) return predict_command(checkpoint, files, samples);
    if (*info_app) return info_command(checkpoint);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    fmt::print(stderr, "tapegrad: {}\n", e.what());
    return 1;
  }
  return 0;
}

}  // namespace tg::app
