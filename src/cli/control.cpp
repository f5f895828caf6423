// `sinew scale` and `sinew control` send a user's requests to a run that is training.
#include <cstdio>
#include <cstdlib>

#include "base/number_text.h"
#include "base/process.h"
#include "cli/options.h"
#include "cluster/cluster.h"
#include "spec/spec.h"

namespace sinew::cli {
namespace {

struct Request {
  std::string kind;
  double value = 0;
};

// Returns the value of a request of this kind. `name` is the kind's name on the command line.
double value_for(const char* kind_name, const std::string& name, const std::string& text, const std::string& hint) {
  const cluster::RequestKind* kind = cluster::request_kind(kind_name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !kind->accepts(value)) {
    throw UsageError("OPTION_INVALID", name + " takes " + kind->value + ", not '" + text + "'", hint);
  }
  return value;
}

// "20m" or "500st"; epochs and fractions have no length that this command knows.
Request save_interval_of(const std::string& name, const std::string& text) {
  using Unit = spec::Duration::Unit;
  const std::string hint = name + "=20m or " + name + "=500st";
  const auto interval = spec::parse_duration(text);
  if (!interval || interval->amount <= 0 || (interval->unit != Unit::seconds && interval->unit != Unit::steps))
    throw UsageError("OPTION_INVALID", name + " takes a time or steps, not '" + text + "'", hint);
  const char* kind = interval->unit == Unit::steps ? "checkpoint_steps" : "checkpoint_interval";
  return {kind, value_for(kind, name, number_text(interval->amount), hint)};
}

Request request_of(const std::string& word) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (equals == std::string::npos && name == "stop") return {"stop", kResumable};
  if (equals == std::string::npos && (name == "checkpoint" || name == "evaluate" || name == "experiment"))
    return {name, 0};
  if (name == "checkpoint.interval") return save_interval_of(name, value);
  if (name == "data.prefetch.threads") return {"loader_threads", value_for("loader_threads", name, value, name + "=8")};
  if (name == "batch-size" || name == "lr") {
    const char* kind = name == "lr" ? "learning_rate" : "batch_size";
    const double number =
        value_for(kind, name, value, "lr=0.5 halves the learning rate; batch-size=256 sets the samples of a step");
    return {kind, number};
  }
  throw UsageError("OPTION_INVALID", "a run cannot be asked for '" + word + "'",
                   "sinew control --help lists the requests");
}

}  // namespace

int run_scale(const Arguments& arguments) {
  std::string run, number, root = "runs", directory;
  Options options("scale", "Changes the number of workers of a run that trains");
  options
      .about(
          "New workers join while the others train on; surplus ones hand over their work and leave. The model stays "
          "the "
          "same to the last bit.")
      .argument("RUN", run, "a run directory, the end of a run's id, or last")
      .argument("N", number, "how many workers the run should have")
      .text("--root", "DIR", root, "where runs are found by name")
      .example("sinew scale last 4");
  if (!options.parse(arguments)) return kDone;
  const int64_t wanted = whole_number("the number of workers", number, 1, cluster::kMostWorkers);
  const cluster::CoordinatorInfo info = cluster::running_coordinator(root, run, &directory);
  cluster::check_coordinator_address(info, own_variable("SINEW_COORDINATORS"));
  cluster::request_scale(info, directory, wanted);
  std::printf("%s: %lld workers wanted\n", directory.c_str(), static_cast<long long>(wanted));
  return kDone;
}

int run_control(const Arguments& arguments) {
  std::string run, word, root = "runs", reason, directory;
  Options options("control", "Asks a run that trains for something at its next step");
  options
      .about(
          "The request becomes part of the run's control log.\n\n"
          "  stop            finish the step, save a checkpoint, end with exit code 75\n"
          "  checkpoint      save a checkpoint\n"
          "  evaluate        evaluate\n"
          "  lr=FACTOR       multiply the learning rate by FACTOR from then on\n"
          "  batch-size=N    samples in a step from then on\n"
          "  experiment      make some steps under other conditions, to learn what limits the run\n"
          "\n"
          "Options of the job file that change no result can be changed, until the run ends or is resumed:\n"
          "  checkpoint.interval=TIME, checkpoint.interval=STEPSst, data.prefetch.threads=N")
      .argument("RUN", run, "a run directory, the end of a run's id, or last")
      .argument("REQUEST", word, "see above")
      .text("--reason", "TEXT", reason, "kept with the request")
      .text("--root", "DIR", root, "where runs are found by name")
      .example("sinew control last lr=0.5");
  if (!options.parse(arguments)) return kDone;
  const Request request = request_of(word);
  const cluster::CoordinatorInfo info = cluster::running_coordinator(root, run, &directory);
  cluster::check_coordinator_address(info, own_variable("SINEW_COORDINATORS"));
  cluster::request_control(info, directory, request.kind, request.value, reason);
  std::printf("%s: asked for %s at its next step\n", directory.c_str(), word.c_str());
  return kDone;
}

}  // namespace sinew::cli
