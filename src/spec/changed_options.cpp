// Finds the options in which two trainings can differ, for tables that compare trainings.
#include <set>

#include "spec/options.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

// The sections in `others` do not change what a training computes. They say how it is named, run, searched and saved.
bool is_of_the_training(const Option& option) {
  static const std::set<std::string> others = {"name", "checkpoint", "logging", "budget", "workers", "cluster", "tune"};
  return !others.contains(option.key.substr(0, option.key.find('.')));
}

// These options are listed for every job, so that the columns of a table have no gaps.
bool is_always_told(const std::string& key) {
  static const std::set<std::string> told = {"model.name", "optimizer.name", "optimizer.lr", "trainer.batch_size",
                                             "trainer.seed"};
  return told.contains(key);
}

}  // namespace

std::map<std::string, std::string> changed_options(const Job& job) {
  const Job plain = default_job(job.model.name);
  std::map<std::string, std::string> changed;
  for (const Option& option : option_table()) {
    if (!is_of_the_training(option) || !has_effect(option, job) || !is_set(option, job)) continue;
    const std::string text = value_text(option, job);
    if (is_always_told(option.key) || !is_set(option, plain) || text != value_text(option, plain))
      changed[option.key] = text;
  }
  return changed;
}

}  // namespace sinew::spec
