#include "study/generations.h"

#include <algorithm>

#include "base/disk.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "jobs/jobs.h"

namespace sinew::study {

bool PartEnd::is_over_by(int64_t evaluation) {
  if (evaluation <= seen_) found_ = 0;
  seen_ = evaluation;
  if (over_ || evaluation < after_ || evaluation <= found_) return false;
  return over_ = true;
}

StudyParts::StudyParts(const spec::Job& job, double evaluations, std::function<std::string(int64_t)> directory_of,
                       std::function<TrialMetrics(int64_t)> metrics_of)
    : command_(job.command.given()),
      population_(job.tune.population),
      parts_(job.tune.trials / job.tune.population),
      evaluations_(evaluations / static_cast<double>(parts_)),
      interval_(job.trainer.eval_interval),
      directory_of_(std::move(directory_of)),
      metrics_of_(std::move(metrics_of)) {}

void StudyParts::begin(int64_t id, std::optional<int64_t> from) const {
  if (!from) return;
  const std::string own = states_of(id), theirs = states_of(*from);
  if (command_) {
    if (!jobs::newest_checkpoint(own).empty() || jobs::carry_checkpoint(theirs, own)) return;
  } else {
    if (!checkpoint::list(system_disk(), own).empty()) return;
    if (const auto states = checkpoint::list(system_disk(), theirs); !states.empty()) {
      system_disk().make_directories(own);
      return checkpoint::mirror(system_disk(), states.back(), own);
    }
  }
  throw Error("the checkpoints of trial " + std::to_string(*from) + " are gone, and trial " + std::to_string(id) +
                  " goes on from them",
              "restore " + directory_of_(*from) + ", or begin another study");
}

std::vector<std::string> StudyParts::overrides(int64_t id) const {
  if (command_ || last(id)) return {};
  spec::Duration until = interval_;
  until.amount *= evaluations_ * static_cast<double>(id / population_ + 1);
  return {"budget.training=" + to_string(until)};
}

TrialMetrics StudyParts::measured(int64_t id) const {
  TrialMetrics metrics = metrics_of_(id);
  metrics.next();
  return metrics;
}

PartEnd StudyParts::end_of(const tune::Study& study, int64_t id) const {
  if (!command_ || last(id)) return PartEnd();
  auto left = static_cast<int64_t>(evaluations_) * (id / population_ + 1);
  for (auto from = study.trial(id).from; from; from = study.trial(*from).from) left -= measured(*from).count();
  return PartEnd(std::max<int64_t>(1, left), measured(id).count());
}

bool StudyParts::saved(int64_t id) const {
  return !command_ || last(id) || jobs::has_own_checkpoint(states_of(id));
}

std::vector<double> StudyParts::carried(const tune::Study& study, int64_t id) const {
  for (auto from = study.trial(id).from; from; from = study.trial(*from).from) {
    if (const TrialMetrics before = measured(*from); before.count() > 0) return before.last();
  }
  return {};
}

}  // namespace sinew::study
