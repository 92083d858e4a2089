// The command line of the tapegrad program: its words become the arguments of a command.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <system_error>

#include "tapegrad/core/error.h"
#include "tapegrad/tools/app/bench/bench.h"
#include "tapegrad/tools/app/code_version.h"
#include "tapegrad/tools/app/commands.h"
#include "tapegrad/tools/app/config.h"

namespace tg::app {
namespace {

constexpr int kFailed = 1, kWrongWords = 2;
constexpr const char* kUnwritten = "standard output: what was printed could not be written";

void prepare_process() {
  // A stream that was closed (`>&-`) would be the next file that is opened, and what is printed
  // would go into that. Opened for reading, it fails as it did.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) (void)!::open("/dev/null", O_RDONLY);
  // Beyond `ulimit -f` a write shall fail and be reported; the signal would end the program.
  std::signal(SIGXFSZ, SIG_IGN);
}

// Whatever went wrong is one line, whoever wrote the message.
int report(std::string message, int status) {
  std::fflush(stdout);
  for (char& c : message)  // a name from a file could hold anything, and steer a terminal
    if (std::iscntrl(static_cast<unsigned char>(c))) c = ' ';
  message = "tapegrad: " + message + "\n";
  std::fputs(message.c_str(), stderr);  // which may be full or closed: the status says it too
  return status;
}

struct CommandLine {
  CLI::App app{"Trains and uses models written with tapegrad."};
  TrainArguments train;
  BenchArguments bench;
  std::vector<std::string> words, files, kernels;
  std::string checkpoint;
  int samples = 0;
  CLI::App *train_app, *eval_app, *predict_app, *info_app, *bench_app;

  CommandLine() {
    app.set_version_flag("--version", fmt::format("{} ({})", TAPEGRAD_VERSION, code_commit()));
    train_app = app.add_subcommand("train", "train a model as a YAML file says");
    train_app->add_option("config", words, "CONFIG.yaml, then key=value to change it");
    train_app->add_option("--resume", train.resume, "folder of a run to go on with");
    eval_app = app.add_subcommand("eval", "loss and accuracy of a checkpoint on the test set");
    eval_app->add_option("checkpoint", checkpoint, "a .safetensors file of a run")->required();
    eval_app->add_option("overrides", words, "key=value");
    predict_app = app.add_subcommand("predict", "class and confidence of pictures");
    predict_app->add_option("checkpoint", checkpoint, "a .safetensors file of a run")->required();
    predict_app->add_option("files", files, "picture files");
    predict_app->add_option("--samples", samples, "instead, the first N test images");
    info_app = app.add_subcommand("info", "version, devices, threads; or a checkpoint");
    info_app->add_option("checkpoint", checkpoint, "what a .safetensors file of a run holds");
    bench_app = app.add_subcommand("bench", "the machine's roofs, and operators against them");
    bench_app->add_option("what", bench.words, "lab [LADDER...]: the kernel lab, rung by rung");
    bench_app->add_option("--compare", bench.compare, "instead, what changed between two files")
        ->expected(2);
    bench_app->add_option("--json", bench.json, "a file for the results");
    bench_app->add_option("--only", bench.only, "operators with this in their name");
    bench_app->add_option("--threads", bench.threads, "0: all cores, but one for the lab");
    bench_app->add_option("--rounds", bench.rounds, "of all measurements")->capture_default_str();
    bench_app->add_option("--seconds", bench.seconds, "of one measurement")->capture_default_str();
    for (CLI::App* command : {train_app, bench_app})
      command
          ->add_option("--kernel", kernels, "LADDER:RUNG of the kernel lab, in the engine's place")
          ->expected(1)
          ->take_all();
  }

  // ValueError for a first word that is no command: CLI11 would complain about all words instead.
  void check_command(int argc, char** argv) const {
    std::vector<std::string> known;
    std::string list;
    for (const CLI::App* command : app.get_subcommands({})) {
      known.push_back(command->get_name());
      list += (list.empty() ? "" : ", ") + known.back();
    }
    check<ValueError>(argc > 1, "which command?", list + "; tapegrad --help says more");
    std::string word = argv[1];
    if (word.starts_with("-") || std::find(known.begin(), known.end(), word) != known.end()) return;
    std::string hint = nearest(word, known);
    fail<ValueError>("unknown command '" + word + "'" +
                     (hint.empty() ? "; there are " + list : "; did you mean '" + hint + "'?"));
  }

  int run(int argc, char** argv) {
    use_kernels(kernels);
    if (*train_app) {
      train.command.assign(argv, argv + argc);
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
    if (*info_app) {
      check<ValueError>(info_app->count("checkpoint") == 0 || !checkpoint.empty(),
                        "info: the name of the checkpoint is empty");
      return info_command(checkpoint);
    }
    if (*bench_app) {
      bench.command.assign(argv, argv + argc);
      return bench_command(bench);
    }
    return 0;
  }
};

}  // namespace

int run_program(int argc, char** argv) {
  prepare_process();
  CommandLine line;
  try {
    line.check_command(argc, argv);
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // asked for help or the version
      line.app.exit(e);
      return std::cout.flush() ? 0 : report(kUnwritten, kFailed);
    }
    return report(std::string(e.what()) + " (tapegrad --help says more)", kWrongWords);
  } catch (const Error& e) {
    return report(e.what(), kWrongWords);
  }
  try {
    int status = line.run(argc, argv);
    check<FileError>(std::fflush(stdout) == 0 && !std::ferror(stdout), kUnwritten);
    return status;
  } catch (const std::bad_alloc&) {
    return report("out of memory", kFailed);
  } catch (const std::system_error& e) {
    bool threads = e.code() == std::errc::resource_unavailable_try_again;
    return report(threads
                      ? "the system gives no more threads; fewer data.workers or threads may help"
                      : e.what(),
                  kFailed);
  } catch (const std::exception& e) {
    return report(e.what(), kFailed);
  }
}

}  // namespace tg::app
