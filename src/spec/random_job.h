// Makes random jobs from the option table that keep the rules between options. For tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "spec/amounts.h"
#include "spec/options.h"

namespace sinew::spec {

// Draws valid values for options, one option at a time.
class RandomValues {
 public:
  explicit RandomValues(RandomStream& random) : random_(random) {}

  void fill(const Option& option, Job& job) {
    option_ = &option;
    visit_value(option, job, [&](auto& value) { draw(value); });
  }

  std::string text() {
    static const std::vector<std::string> kPieces = {
        "a",  "data/x", " ", "'", "\"", "\\",   "$", "${", "}",   "$$",   "#",    " #",  ":",
        ": ", ",",      "[", "{", "no", "null", "~", "12", "1e3", "é",    "日本", "- ",  "-",
        "&a", "*a",     "!", "%", "@",  "`",    "|", ">",  "?",   "true", "=",    "\\n", "/"};
    std::string made;
    for (uint64_t n = 1 + random_.below(5); n > 0; --n) made += kPieces[random_.below(kPieces.size())];
    return made;
  }

 private:
  void draw(std::string& value) {
    const Type& type = option_->type;
    switch (type.kind) {
      case Kind::choice:
        value = type.choices[random_.below(type.choices.size())];
        if (value == "cuda") value = "cpu";  // no rule accepts this choice yet
        break;
      case Kind::metric:
        value = type.auto_metric && random_.below(2) == 0 ? "auto" : "val/f1@" + word("abc_.-1", 4);
        break;
      case Kind::comparison: value = "2 * a <= b"; break;
      case Kind::name: value = "n" + word("abz09_.-", 20); break;
      case Kind::interval: {
        Duration duration;
        draw(duration);
        value = random_.below(3) == 0 ? "never" : to_string(duration);
        break;
      }
      default: value = text(); break;
    }
  }
  void draw(bool& value) { value = random_.below(2) == 0; }
  void draw(uint64_t& value) { value = random_.bits64() >> random_.below(64); }
  void draw(int64_t& value) {
    const Type& type = option_->type;
    if (type.kind == Kind::bytes) {
      value = 1 + static_cast<int64_t>((random_.bits64() >> 5) % 999999999999999 >> random_.below(45));
    } else if (!type.choices.empty()) {
      value = std::stoll(type.choices[random_.below(type.choices.size())]);
    } else if (type.zero && random_.below(4) == 0) {
      value = 0;
    } else {
      const auto width = static_cast<uint64_t>(type.range.high - type.range.low) + 1;
      value = static_cast<int64_t>(type.range.low) + static_cast<int64_t>(random_.below(width));
    }
  }
  void draw(Auto<int64_t>& value) {
    value.reset();
    if (random_.below(2) == 0) draw(value.emplace());
  }
  void draw(double& value) {
    if (option_->type.kind == Kind::time) {
      value = static_cast<double>(1 + random_.below(100000)) * (random_.below(2) == 0 ? 0.1 : 60);
      return;
    }
    const Range& range = option_->type.range;
    do {
      value = range.low + random_.uniform() * (range.high - range.low);
      if (random_.below(2) == 0) value *= std::pow(10, -static_cast<double>(random_.below(12)));
      if (random_.below(5) == 0) value = random_.below(2) == 0 ? range.low : range.high;
    } while (!range.holds(value));
  }
  void draw(Duration& value) {
    for (;;) {
      value.unit = static_cast<Duration::Unit>(random_.below(6));
      const char* units[] = {"ep", "st", "sp", "tok", "s", "dur"};
      const std::string allowed = " " + option_->type.units + " ";
      if (allowed.find(" " + std::string(units[static_cast<int>(value.unit)]) + " ") != std::string::npos) break;
    }
    const auto whole = static_cast<double>(1 + random_.below(5'000'000));
    const bool counted = value.unit == Duration::Unit::steps || value.unit == Duration::Unit::samples ||
                         value.unit == Duration::Unit::tokens;
    value.amount = value.unit == Duration::Unit::fraction ? 1 - random_.uniform()
                   : counted                              ? whole * (random_.below(2) == 0 ? 1000 : 1)
                                                          : whole * (random_.below(2) == 0 ? 0.001 : 1);
    if (option_->type.zero && random_.below(4) == 0) value.amount = 0;
  }
  void draw(Objective& value) {
    value = {"val/" + word("abc_", 5), random_.below(2) == 0, random_.normal() * std::pow(10, random_.normal() * 5)};
  }
  void draw(std::optional<Objective>& value) { draw(value.emplace()); }
  // Draws only parameters that no rule between options names. read_job checks those rules for the values of a search
  // too.
  void draw(std::vector<SearchParameter>& search) {
    SearchParameter rate, clip, metric;
    rate.key = "optimizer.lr";
    rate.low = 1e-6 * (1 + random_.uniform());
    rate.high = random_.uniform() + 0.1;
    rate.log = random_.below(2) == 0;
    clip.key = "trainer.grad_clip_norm";
    clip.kind = SearchParameter::Kind::choice;
    clip.choices = {"0", "0.5", "1e3"};
    clip.ordered = random_.below(2) == 0;
    metric.key = "trainer.eval_batch_size";
    metric.kind = SearchParameter::Kind::whole;
    metric.high = static_cast<double>(10 + random_.below(1000));
    metric.step = static_cast<double>(random_.below(10));
    metric.only_if = {{"trainer.grad_clip_norm", {"0", "1e3"}}};
    search = {rate, clip, metric};
  }
  void draw(std::vector<NamedValue>& values) {
    values.clear();
    for (uint64_t n = 1 + random_.below(3); n > 0; --n) {
      using Kind = NamedValue::Kind;
      NamedValue value{"N" + std::to_string(n) + word("abc_09", 8), "", static_cast<Kind>(random_.below(3))};
      value.value = value.kind == Kind::text ? text() : value.kind == Kind::number ? "1e-" + std::to_string(n) : "true";
      values.push_back(std::move(value));
    }
  }
  template <typename T>
  void draw(std::vector<T>& values) {
    const Type& type = option_->type;
    values.resize(type.min_items + random_.below(std::min<size_t>(type.max_items - type.min_items + 1, 5)));
    for (T& value : values) draw(value);
  }

  std::string word(const std::string& letters, size_t most) {
    std::string made(1, letters[random_.below(letters.size())]);
    while (random_.below(4) != 0 && made.size() < most) made += letters[random_.below(letters.size())];
    return made;
  }

  RandomStream& random_;
  const Option* option_ = nullptr;
};

// Makes one job. It fills its options at random, and then corrects those that break a rule between options.
class JobMaker {
 public:
  explicit JobMaker(uint64_t seed) : random_(random_key({seed})), values_(random_) {}

  Job make() {
    Job job;
    // First fills the options that decide whether other options have an effect.
    for (const Option& option : option_table()) {
      if (!option.effect.key.empty()) continue;
      if (option.key.starts_with("data.") && option.type.kind == Kind::path) continue;
      if (!option.unset.empty() && random_.below(2) == 0) continue;
      values_.fill(option, job);
    }
    for (const Option& option : option_table()) {
      if (option.effect.key.empty() || !has_effect(option, job)) continue;
      if (random_.below(3) != 0) values_.fill(option, job);
    }
    obey_the_rules(job);
    return job;
  }

 private:
  void fill_source(DataSource& source, bool pairs) {
    (pairs ? source.images : source.path) = values_.text();
    if (pairs) source.labels = values_.text();
  }

  // A job with a command has no options of a training.
  static void obey_the_rules_of_commands(Job& job) {
    const Job usual;
    job.model = usual.model;
    job.loss = usual.loss;
    job.data = usual.data;
    job.trainer = usual.trainer;
    job.optimizer = usual.optimizer;
    job.scheduler = usual.scheduler;
    job.checkpoint = usual.checkpoint;
    job.workers = usual.workers;
    job.cluster = usual.cluster;
    job.threshold = usual.threshold;
    job.logging.interval = usual.logging.interval;
    job.early_stopping.restore_best = usual.early_stopping.restore_best;
    job.tune = usual.tune;  // the searches of this test vary options of a training
    job.budget.training = usual.budget.training;
    job.budget.memory = usual.budget.memory;
    job.budget.kilowatt_hours = job.budget.watts = 0;
  }

  void obey_the_rules(Job& job) {
    if (job.budget.cost > 0 && job.budget.price == 0) job.budget.price = 0.5;
    if (job.command.given()) return obey_the_rules_of_commands(job);
    const bool graph = job.model.name == "program" || job.model.name == "torchscript";
    if ((graph || job.model.name == "library") && job.model.file.empty()) job.model.file = values_.text();
    if (!graph && job.loss.name == "program") job.loss = {};
    if (job.loss.name == "library" && job.loss.library.empty()) job.loss.library = values_.text();
    if (job.data.format == "library" && job.data.library.empty()) job.data.library = values_.text();
    for (std::string& option : job.model.options) option = "a=" + option;
    for (std::string& name : job.model.init_from.map) name = "a=" + name;
    for (std::string& input : job.model.inputs) input = "a=" + input;
    for (std::string& scale : job.optimizer.lr_scale) scale += "=0.5";
    if (job.loss.balanced) job.loss.class_weights.clear();
    if (job.loss.focal_gamma > 0) job.loss.label_smoothing = 0;
    DataOptions& data = job.data;
    if (!data.split_group.empty()) data.split_by.clear();
    const bool either = data.format == "idx" || data.format == "auto";
    const bool pairs = data.format == "npy" || (either && random_.below(2) == 0);
    fill_source(data.train, pairs);
    data.split_val *= 0.5;
    data.split_test *= 0.5;
    if (random_.below(2) == 0) fill_source(data.val, pairs), data.split_val = 0;
    if (random_.below(2) == 0) fill_source(data.test, pairs), data.split_test = 0;
    if (data.folds > 0) data.split_val = 0, data.val = {};
    if (data.fold) *data.fold %= std::max<int64_t>(data.folds, 1);
    if (!job.threshold.metric.empty()) job.threshold.value = 0;
    if (is_table(data) && data.columns.target.empty()) data.columns.target = "y";
    std::sort(data.augment.scale.begin(), data.augment.scale.end());
    if (job.optimizer.momentum <= 0) job.optimizer.nesterov = false;
    if (!job.tune.objectives.empty()) obey_the_rules_of_several(job.tune);
    if (!job.tune.constraints.empty()) job.tune.pruner = "none", job.tune.end_early = false;
    obey_the_rules_of_constraints(job.tune);
    if (job.tune.cost > 0 && job.tune.price == 0) job.tune.price = 0.5;
    if (job.tune.sampler == "pbt") job.tune.sampler = "auto";  // pbt cannot vary the options of this test
    job.tune.population = TuneOptions().population;
    job.workers.min = std::min(job.workers.min, job.workers.max);
  }

  static void obey_the_rules_of_constraints(TuneOptions& tune) {
    const auto number = [](const SearchParameter& parameter) {
      return parameter.kind != SearchParameter::Kind::choice;
    };
    const auto found = std::ranges::find_if(tune.search, number);
    if (found == tune.search.end()) return tune.parameter_constraints.clear();
    for (std::string& constraint : tune.parameter_constraints) constraint = "2 * " + found->key + " + 7 > 0";
  }
  void obey_the_rules_of_several(TuneOptions& tune) {
    const TuneOptions usual;
    for (size_t k = 0; k < tune.objectives.size(); ++k) tune.objectives[k] += std::to_string(k);
    if (!tune.directions.empty()) tune.directions.resize(tune.objectives.size(), "max");
    tune.monitor = usual.monitor;
    tune.mode = usual.mode;
    tune.sampler = usual.sampler;
    tune.pruner = usual.pruner;
    tune.end_early = usual.end_early;
    tune.warm_start.clear();
  }

  RandomStream random_;
  RandomValues values_;
};

}  // namespace sinew::spec
