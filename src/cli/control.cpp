// `sinew scale` and `sinew control`: wishes of a person for a run that trains.
#include <cstdio>
#include <cstdlib>

#include "base/number_text.h"
#include "cli/commands.h"
#include "cluster/cluster.h"

namespace sinew::cli {
namespace {

constexpr const char* kScaleHelp =
    "usage: sinew scale RUN N [--root DIR]\n\n"
    "From now on the run has N workers: new ones join while the others train on, surplus ones hand over and leave.\n"
    "The model stays the same to the last bit. RUN: a run directory, the end of its name, or 'last'.";
constexpr const char* kControlHelp =
    "usage: sinew control RUN WISH [options]\n\n"
    "Asks a run with several workers for something, at its next step. It becomes part of the run's control log.\n\n"
    "WISH is one of:\n"
    "  stop            finish the step, save a checkpoint, end with exit code 75\n"
    "  checkpoint      save a checkpoint\n"
    "  evaluate        evaluate\n"
    "  lr=FACTOR       multiply the learning rate by FACTOR from then on\n"
    "  batch-size=N    samples in a step from then on\n\n"
    "options:\n"
    "  --reason TEXT   kept with it\n"
    "  --root DIR      where runs are looked for (default: runs)";

struct Words {
  std::vector<std::string> positional;
  std::string root = "runs", reason;
};

Words parse(const Arguments& arguments, const std::string& command) {
  Words words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew " + command + " --help");
      return arguments[++i];
    };
    if (word == "--root") {
      words.root = value();
    } else if (word == "--reason" && command == "control") {
      words.reason = value();
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew " + command + " --help");
    } else {
      words.positional.push_back(word);
    }
  }
  if (words.positional.size() != 2) {
    const std::string needs = command == "scale" ? "scale needs a run and a number" : "control needs a run and a wish";
    throw UsageError(needs, "sinew " + command + " --help");
  }
  return words;
}

struct Wish {
  std::string kind;
  double value = 0;
};

Wish wish_of(const std::string& word) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (equals == std::string::npos && name == "stop") return {"stop", kResumable};
  if (equals == std::string::npos && (name == "checkpoint" || name == "evaluate")) return {name, 0};
  if (name == "batch-size") return {"batch_size", static_cast<double>(whole_number(name, value, 1, 1'000'000'000))};
  if (name == "lr") {
    char* end = nullptr;
    const double factor = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(factor > 0) || factor > 1e6)
      throw UsageError("lr takes a factor above 0, not '" + value + "'", "lr=0.5 halves the learning rate");
    return {"learning_rate", factor};
  }
  throw UsageError("'" + word + "' is nothing a run can be asked for", "sinew control --help lists what is");
}

}  // namespace

int run_scale(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kScaleHelp)) return kDone;
  const Words words = parse(arguments, "scale");
  const int64_t wanted = whole_number("the number of workers", words.positional[1], 1, kMostWorkers);
  std::string directory;
  const cluster::CoordinatorInfo info = cluster::running_coordinator(words.root, words.positional[0], &directory);
  cluster::request_scale(info, directory, wanted);
  std::printf("%s: %lld workers wanted\n", directory.c_str(), static_cast<long long>(wanted));
  return kDone;
}

int run_control(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kControlHelp)) return kDone;
  const Words words = parse(arguments, "control");
  const Wish wish = wish_of(words.positional[1]);
  std::string directory;
  const cluster::CoordinatorInfo info = cluster::running_coordinator(words.root, words.positional[0], &directory);
  cluster::request_control(info, directory, wish.kind, wish.value, words.reason);
  std::printf("%s: asked for %s at its next step\n", directory.c_str(), words.positional[1].c_str());
  return kDone;
}

}  // namespace sinew::cli
