#include "cli/study_parts.h"

#include <algorithm>

#include "base/disk.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "jobs/jobs.h"

namespace sinew::cli {

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

int64_t StudyParts::ends_after(const tune::Study& study, int64_t id) const {
  if (!command_ || last(id)) return kNever;
  auto left = static_cast<int64_t>(evaluations_) * (id / population_ + 1);
  for (auto from = study.trial(id).from; from; from = study.trial(*from).from) {
    TrialMetrics before = metrics_of_(*from);
    before.next();
    left -= before.count();
  }
  return std::max<int64_t>(1, left);
}

std::optional<std::string> StudyParts::worthless(int64_t id) const {
  if (!command_ || last(id) || !jobs::newest_checkpoint(states_of(id)).empty()) return std::nullopt;
  return "its part is over, and it saved nothing where SINEW_CHECKPOINT_DIR says that the next one could go on from";
}

}  // namespace sinew::cli
