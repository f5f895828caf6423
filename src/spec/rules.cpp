#include "spec/rules.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include "base/comparison.h"
#include "spec/amounts.h"
#include "spec/options.h"
#include "spec/search.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

// The message for an option that has no effect, because of the value of another option.
std::string no_effect_with(const Option& option, const Job& job) {
  const std::string& owner = option.effect.key;
  return option.key + " has no effect with " + owner + ": " + value_text(*find_option(owner), job);
}

struct Rules {
  const Job& job;
  const GivenKeys& given;
  std::vector<Finding> findings;

  bool has(const std::string& key) const { return given.contains(key); }
  // Returns whether none of these keys has a problem of its own.
  bool good(std::initializer_list<std::string> keys) const {
    for (const std::string& key : keys) {
      const auto found = given.find(key);
      if (found != given.end() && !found->second.good) return false;
    }
    return true;
  }
  Position value_of(const std::string& key) const {
    const auto found = given.find(key);
    return found == given.end() ? Position{} : found->second.value;
  }
  Position key_of(const std::string& key) const {
    const auto found = given.find(key);
    return found == given.end() ? Position{} : found->second.key;
  }
  void say(Position position, ErrorCode code, std::string what, std::string hint) {
    findings.push_back({position, code, std::move(what), std::move(hint)});
  }

  std::string replace_section(const std::string& owner) const;
  void no_effect();
  void source(const std::string& part, bool required);
  void split(const std::string& part, const DataSource& source, double share);
  void folds();
  void data();
  void model();
  void pairs(const std::string& key, const std::vector<std::string>& items, const std::string& example,
             bool may_be_empty);
  void device();
  void optimizer();
  void workers();
  void threshold();
  void budget();
  void tune();
  void objectives();
  void parameter_constraints();
  void constraints();
  void pbt();
};

// The part of a hint that says how to replace the whole section. An override of one key keeps the other keys that the
// file gives in the section.
std::string Rules::replace_section(const std::string& owner) const {
  const bool by_override = value_of(owner).override_index >= 0;
  const std::string section = find_option(owner)->section();
  if (!by_override || short_form_of(section) != find_option(owner)) return "";
  return "; or replace the whole section: " + section + "=" + value_text(*find_option(owner), job);
}

void Rules::no_effect() {
  for (const Option& option : option_table()) {
    if (!has(option.key) || !good({option.key}) || has_effect(option, job)) continue;
    if (has("command") && is_of_training(option.key)) continue;  // check_command_rules reports it
    const std::string& owner = option.effect.key;
    if (!good({owner})) continue;
    if (option.effect.values.empty()) {
      say(key_of(option.key), "SPEC_NO_EFFECT", option.key + " has no effect without " + owner,
          "give " + owner + ", or delete this line");
      continue;
    }
    say(key_of(option.key), "SPEC_NO_EFFECT", no_effect_with(option, job) + (has(owner) ? "" : " (the default)"),
        "delete it, or choose " + owner + ": " + either(option.effect.values) + replace_section(owner));
  }
}

void Rules::source(const std::string& part, bool required) {
  const std::string key = "data." + part, path = key + ".path", images = key + ".images", labels = key + ".labels";
  if (!good({key, path, images, labels, "data"})) return;
  const bool given_path = has(path), given_images = has(images), given_labels = has(labels);
  if (!given_path && !given_images && !given_labels) {
    if (!required && !has(key)) return;
    const Position position = has(key) ? key_of(key) : has("data") ? key_of("data") : Position{};
    say(position, has(key) ? ErrorCode("SPEC_INCOMPLETE") : ErrorCode("SPEC_MISSING_KEY"),
        has(key) ? key + " names no file" : key + " is missing, so there is nothing to train on",
        "give a file or folder, '" + part + ": path', or for idx and npy '" + part + ": {images: path, labels: path}'");
    return;
  }
  if (given_path && (given_images || given_labels)) {
    say(key_of(given_images ? images : labels), "SPEC_CONFLICT",
        key + " has both a path and " + (given_images ? "images" : "labels"),
        "keep path, or images and labels (for idx and npy)");
    return;
  }
  if (given_images != given_labels) {
    say(key_of(given_images ? images : labels), "SPEC_INCOMPLETE",
        given_images ? images + " is given without " + labels : labels + " is given without " + images,
        "give both files: idx and npy need them");
    return;
  }
  if (!good({"data.format"}) || job.data.format == "auto") return;
  const bool pairs = job.data.format == "idx" || job.data.format == "npy";
  if (job.data.format == "npy" && given_path) {  // for idx, the path may be a folder with the usual file names
    say(value_of(path), "SPEC_CONFLICT", "the format npy needs images and labels, not one path",
        "write '" + part + ": {images: path, labels: path}'");
  } else if (!pairs && given_images) {
    say(key_of(images), "SPEC_CONFLICT", "the format " + job.data.format + " needs one path, not images and labels",
        "write '" + part + ": path', or choose data.format: idx or npy");
  }
}

void Rules::split(const std::string& part, const DataSource& source, double share) {
  const std::string key = "data.split." + part;
  if (!good({key, "data." + part}) || !has(key) || share <= 0 || !source.given()) return;
  say(value_of(key), "SPEC_NO_EFFECT", key + " has no effect, because data." + part + " names its own files",
      "delete one of the two");
}

void Rules::folds() {
  const DataOptions& data = job.data;
  if (!good({"data.split.folds", "data.split.fold"}) || data.folds == 0) return;
  if (data.fold && *data.fold >= data.folds) {
    say(value_of("data.split.fold"), "SPEC_BAD_RANGE",
        "data.split.fold is " + std::to_string(*data.fold) + ", but the folds are 0 to " +
            std::to_string(data.folds - 1),
        "choose one of them, or auto: train once for each fold");
  }
  if (good({"data.split.val"}) && data.split_val > 0) {
    say(value_of("data.split.val"), "SPEC_CONFLICT",
        "data.split.val and data.split.folds contradict each other: each fold is the validation data of one training",
        "delete data.split.val, or set it to 0; data.split.test still takes the test data first");
  }
  if (good({"data.val"}) && data.val.given()) {
    say(key_of("data.val"), "SPEC_CONFLICT",
        "data.val and data.split.folds contradict each other: each fold is the validation data of one training",
        "delete one of the two; data.val may become data.test");
  }
}

void Rules::data() {
  const DataOptions& data = job.data;
  source("train", true);
  source("val", false);
  source("test", false);
  split("val", data.val, data.split_val);
  split("test", data.test, data.split_test);
  folds();
  if (good({"data.split.val", "data.split.test"}) && data.split_val + data.split_test >= 1) {
    say(value_of("data.split.test"), "SPEC_CONFLICT", "data.split.val and data.split.test leave no data for training",
        "make their sum smaller than 1; it is " + value_text(*find_option("data.split.val"), job) + " + " +
            value_text(*find_option("data.split.test"), job));
  }
  if (good({"data.split.group", "data.split.by"}) && !data.split_group.empty() && !data.split_by.empty()) {
    say(key_of("data.split.by"), "SPEC_CONFLICT", "data.split.group and data.split.by contradict each other",
        "delete one of the two");
  }
  if (is_table(data) && good({"data.format", "data.columns.target", "data.columns", "data"}) &&
      !has("data.columns.target")) {
    say(value_of("data.format"), "SPEC_INCOMPLETE", "the format " + data.format + " needs data.columns.target",
        "name the column to predict, for example 'columns: {target: price}'");
  }
  const std::vector<double>& scale = data.augment.scale;
  if (good({"data.augment.scale"}) && scale.size() == 2 && scale[0] > scale[1]) {
    say(value_of("data.augment.scale"), "SPEC_BAD_RANGE", "data.augment.scale has its larger factor first",
        "write [low, high]");
  }
}

// Checks that the items have the form "name=value". Later code checks names and values.
void Rules::pairs(const std::string& key, const std::vector<std::string>& items, const std::string& example,
                  bool may_be_empty) {
  if (!good({key})) return;
  for (const std::string& item : items) {
    const size_t at = item.find('=');
    if (at != std::string::npos && at > 0 && (may_be_empty || at + 1 < item.size())) continue;
    say(value_of(key), "SPEC_BAD_PAIR", key + " has '" + item + "', which does not have the form name=value",
        "write it as " + example);
  }
}

void Rules::model() {
  const std::string& name = job.model.name;
  const bool graph = name == "program" || name == "torchscript", own = graph || name == "library";
  pairs("model.inputs", job.model.inputs, "'ids=0:16', 'price=price' or 'label=target'", false);
  pairs("model.options", job.model.options, "'width=64'", true);
  pairs("model.init_from.map", job.model.init_from.map, "'encoder.*=backbone.*', or 'old.*=' to leave those out", true);
  if (!good({"model", "model.name", "model.file", "loss", "loss.name", "data", "data.format"})) return;
  if (own && !has("model.file")) {
    const char* file = name == "program" ? "model.pt2" : name == "library" ? "libmodel.so" : "model.pt";
    say(has("model.name") ? value_of("model.name") : key_of("model"), "SPEC_INCOMPLETE",
        "model: " + name + " names no file", "give its file: 'model: {name: " + name + ", file: " + file + "}'");
  }
  if (!graph && job.loss.name == "program")
    say(value_of("loss.name"), "SPEC_CONFLICT", "loss is program, but the model is " + name,
        "choose another loss: only a program or TorchScript model (model.file) computes its own loss");
  if (job.loss.balanced && !job.loss.class_weights.empty())
    say(key_of("loss.balanced"), "SPEC_CONFLICT", "loss.balanced and loss.class_weights contradict each other",
        "delete one of the two");
  if (job.loss.focal_gamma > 0 && job.loss.label_smoothing > 0)
    say(key_of("loss.focal_gamma"), "SPEC_CONFLICT", "the focal loss has no label smoothing",
        "delete loss.focal_gamma or loss.label_smoothing");
  if (name != "library" && job.loss.name == "library" && !has("loss.library"))
    say(value_of("loss.name"), "SPEC_INCOMPLETE", "loss: library names no file",
        "give its file: 'loss: {name: library, library: libloss.so}'");
  if (name != "library" && job.data.format == "library" && !has("data.library"))
    say(value_of("data.format"), "SPEC_INCOMPLETE", "the format library names no file",
        "give its file: 'data: {library: libdata.so}'");
}

void Rules::device() {
  if (!good({"trainer.device"}) || job.trainer.device != "cuda") return;
  say(value_of("trainer.device"), "SPEC_UNSUPPORTED_DEVICE",
      "trainer.device is cuda, but this version trains on the CPU only", "use trainer.device: cpu");
}

void Rules::optimizer() {
  const OptimizerOptions& optimizer = job.optimizer;
  for (const std::string& item : optimizer.lr_scale) {
    if (!good({"optimizer.lr_scale"}) || parse_scale(item)) continue;
    say(value_of("optimizer.lr_scale"), "SPEC_BAD_PAIR",
        "optimizer.lr_scale has '" + item + "', which does not have the form pattern=factor",
        "write for example 'encoder.*=0.1', with a factor of at least 0");
  }
  if (optimizer.nesterov && optimizer.name == "sgd" && optimizer.momentum <= 0 &&
      good({"optimizer.nesterov", "optimizer.name", "optimizer.momentum"})) {
    say(value_of("optimizer.nesterov"), "SPEC_INCOMPLETE", "optimizer.nesterov needs a momentum above 0",
        "give for example momentum: 0.9");
  }
}

void Rules::workers() {
  const WorkersOptions& workers = job.workers;
  if (workers.min > workers.max && good({"workers", "workers.min", "workers.max"})) {
    say(value_of("workers.min"), "SPEC_CONFLICT",
        "workers.min is " + std::to_string(workers.min) + ", more than workers.max: " + std::to_string(workers.max) +
            (has("workers.max") ? "" : " (the default)"),
        "raise workers.max: training starts as soon as workers.min of them are there");
  }
}

void Rules::threshold() {
  if (job.threshold.metric.empty() || job.threshold.value == 0) return;
  if (!good({"threshold", "threshold.metric", "threshold.value"})) return;
  say(key_of("threshold.value"), "SPEC_CONFLICT",
      "threshold.value is fixed, and threshold.metric would choose another one on the validation data",
      "delete one of the two");
}

void Rules::budget() {
  if (has("budget.cost") && !has("budget.price") && good({"budget.cost"}))
    say(key_of("budget.cost"), "SPEC_INCOMPLETE", "budget.cost needs budget.price",
        "give for example price: 1.2, the price of an hour of the machine in the same currency");
}

void Rules::tune() {
  if (!has("tune") || !good({"tune", "tune.search"})) return;
  if (!has("tune.search"))
    return say(key_of("tune"), "SPEC_INCOMPLETE", "tune varies nothing",
               "list options below tune.search, or delete the section");
  if (has("tune.objectives") && good({"tune.objectives"})) objectives();
  if (has("tune.constraints") && good({"tune.constraints", "tune.pruner", "tune.end_early"})) constraints();
  if (has("tune.parameter_constraints") && good({"tune.parameter_constraints"})) parameter_constraints();
  if (has("tune.cost") && !has("tune.price") && good({"tune.cost"}))
    say(key_of("tune.cost"), "SPEC_INCOMPLETE", "tune.cost needs tune.price",
        "give for example price: 2.5, the price of an hour of one trial");
  if (job.tune.sampler == "pbt" && good({"tune.sampler", "tune.trials", "tune.population", "tune.pruner"})) pbt();
}

// A trial's constraints are measured only at its end. A pruner therefore cannot apply them earlier, and the study
// cannot estimate how much a further trial would gain.
void Rules::constraints() {
  if (job.tune.pruner != "auto" && job.tune.pruner != "none")
    say(key_of("tune.pruner"), "SPEC_CONFLICT", "tune.pruner cannot be combined with tune.constraints",
        "trials are stopped early by one metric only; delete one of the two");
  if (job.tune.end_early)
    say(key_of("tune.end_early"), "SPEC_CONFLICT", "tune.end_early cannot be combined with tune.constraints",
        "the remaining gain cannot be estimated with constraints; delete one of the two");
}

void Rules::parameter_constraints() {
  const Position position = value_of("tune.parameter_constraints");
  const auto is_text = [](const std::string& choice) { return !is_number(choice); };
  for (const std::string& constraint : job.tune.parameter_constraints) {
    const Comparison comparison(constraint);
    for (const std::string& name : comparison.names()) {
      const std::string subject = "'" + constraint + "' uses " + name + ", ";
      const auto found = std::ranges::find(job.tune.search, name, &SearchParameter::key);
      if (found == job.tune.search.end())
        say(position, "SPEC_UNKNOWN_NAME", subject + "which tune.search does not vary",
            "use parameters of tune.search only");
      else if (const auto text = std::ranges::find_if(found->choices, is_text); text != found->choices.end())
        say(position, "SPEC_CONFLICT", subject + "whose choice " + *text + " is not a number",
            "compare numbers only; for other choices use a condition ('if')");
    }
  }
}

// Returns whether a training that continues from a checkpoint can have another value of this option.
bool changes_on_the_way(const Option& option) {
  const std::string section = option.section();
  const bool along = is_one_of(section, {"optimizer", "scheduler", "loss", "data.augment"}) ||
                     is_one_of(option.key, {"model.dropout", "trainer.grad_clip_norm"});
  return along && takes_range(option);
}

void Rules::pbt() {
  const TuneOptions& tune = job.tune;
  const Position position = value_of("tune.sampler");
  if (has("command") && !tune.evaluations && good({"tune.evaluations"}))
    say(position, "SPEC_INCOMPLETE",
        "tune.sampler: pbt needs the number of times that a complete run of the command reports the metric",
        "give tune.evaluations: the number for one generation times tune.trials / tune.population");
  if (tune.pruner != "auto" && tune.pruner != "none")
    say(key_of("tune.pruner"), "SPEC_CONFLICT",
        "tune.pruner cannot be combined with tune.sampler: pbt, which trains every member to the end",
        "delete one of the two");
  if (tune.trials % tune.population != 0 || tune.trials < 2 * tune.population)
    say(has("tune.trials") ? value_of("tune.trials") : position, "SPEC_CONFLICT",
        "tune.trials is " + std::to_string(tune.trials) + (has("tune.trials") ? "" : " (the default)") +
            ", but a population of " + std::to_string(tune.population) +
            " needs a multiple of itself for two generations or more",
        "set tune.trials to a multiple, for example " + std::to_string(5 * tune.population) + " for five generations");
  for (const SearchParameter& parameter : tune.search) {
    const Option* option = find_option(parameter.key);
    if (option == nullptr || changes_on_the_way(*option)) continue;
    if (has("command")) {
      say(value_of("tune.search"), "SPEC_CONFLICT",
          "pbt cannot vary " + parameter.key + ": a member can change only its params between generations",
          "vary params, or choose sampler: auto");
      continue;
    }
    say(value_of("tune.search"), "SPEC_CONFLICT",
        "pbt cannot vary " + parameter.key + ": a training cannot continue from a checkpoint with another value of it",
        "vary numbers of optimizer, scheduler, loss and data.augment, model.dropout or trainer.grad_clip_norm, or "
        "choose sampler: auto");
  }
}

// Methods for a single metric do not work with several, because no trial is best in all of them.
void Rules::objectives() {
  const TuneOptions& tune = job.tune;
  const auto beside = [&](bool chosen, const std::string& key, const std::string& hint) {
    if (chosen && good({key}))
      say(key_of(key), "SPEC_CONFLICT", key + " cannot be combined with tune.objectives", hint);
  };
  beside(tune.monitor != "auto", "tune.monitor", "keep one of the two");
  beside(tune.mode != "auto", "tune.mode", "give tune.directions: one for each objective");
  beside(!tune.warm_start.empty(), "tune.warm_start",
         "earlier studies can warm-start only a search for one metric; delete one of the two");
  beside(tune.end_early, "tune.end_early",
         "the remaining gain can be estimated for one metric only; delete one of the two");
  beside(tune.pruner != "auto" && tune.pruner != "none", "tune.pruner",
         "trials are stopped early by one metric only; delete one of the two");
  beside(is_one_of(tune.sampler, {"bohb", "cmaes", "nearby", "pbt"}), "tune.sampler",
         tune.sampler + " supports one objective only; choose auto, gp or tpe");
  if (good({"tune.directions"}) && !tune.directions.empty() && tune.directions.size() != tune.objectives.size())
    say(value_of("tune.directions"), "SPEC_CONFLICT",
        "tune.directions has " + std::to_string(tune.directions.size()) + " items, tune.objectives " +
            std::to_string(tune.objectives.size()),
        "give one direction for each objective, in the same order");
  const std::set<std::string> different(tune.objectives.begin(), tune.objectives.end());
  if (different.size() < tune.objectives.size())
    say(value_of("tune.objectives"), "SPEC_CONFLICT", "tune.objectives lists a metric twice", "keep one of them");
}

}  // namespace

std::vector<Problem> without_effect(const DataOptions& data) {
  Job job;
  job.data = data;
  std::vector<Problem> problems;
  for (const Option& option : option_table()) {
    if (option.effect.key != "data.format" || has_effect(option, job)) continue;
    if (value_text(option, job) == value_text(option, Job{})) continue;
    std::vector<std::string> formats = option.effect.values;
    std::erase(formats, "auto");  // the job file says auto, so the hint must not offer it
    problems.push_back({"", 0, 0, "SPEC_NO_EFFECT", no_effect_with(option, job),
                        "delete it, or choose data.format: " + either(formats)});
  }
  return problems;
}

std::vector<Finding> check_rules(const Job& job, const GivenKeys& given) {
  Rules rules{job, given, {}};
  rules.no_effect();
  rules.budget();
  rules.tune();
  if (given.contains("command")) {
    for (Finding& finding : check_command_rules(job, given)) rules.findings.push_back(std::move(finding));
    return std::move(rules.findings);
  }
  rules.data();
  rules.model();
  rules.device();
  rules.optimizer();
  rules.workers();
  rules.threshold();
  return std::move(rules.findings);
}

}  // namespace sinew::spec
