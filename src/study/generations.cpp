#include "study/generations.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "jobs/jobs.h"
#include "rundir/rundir.h"

namespace sinew::study {

bool GenerationEnd::ends_at(int64_t evaluation) {
  if (evaluation <= newest_) found_ = 0;
  newest_ = evaluation;
  if (reached_ || evaluation < evaluations_ || evaluation <= found_) return false;
  return reached_ = true;
}

Generations::Generations(Disk& disk, const spec::Job& job, double evaluations,
                         std::function<std::string(int64_t)> directory_of,
                         std::function<TrialMetrics(int64_t)> metrics_of)
    : disk_(disk),
      command_(job.command.given()),
      population_(job.tune.population),
      generations_(job.tune.trials / job.tune.population),
      evaluations_(evaluations / static_cast<double>(generations_)),
      interval_(job.trainer.eval_interval),
      directory_of_(std::move(directory_of)),
      metrics_of_(std::move(metrics_of)) {}

std::string Generations::checkpoints_of(int64_t id) const {
  return rundir::file_in(directory_of_(id), rundir::kCheckpoints);
}

void Generations::copy_state(int64_t id, std::optional<int64_t> from) const {
  if (!from) return;
  const std::string own = checkpoints_of(id), source = checkpoints_of(*from);
  if (command_) {
    if (!jobs::newest_checkpoint(own).empty() || jobs::carry_checkpoint(source, own)) return;
  } else {
    if (!checkpoint::list(disk_, own).empty()) return;
    if (const auto states = checkpoint::list(disk_, source); !states.empty()) {
      disk_.make_directories(own);
      // The mark is written first. It allows the training to begin with a state that was trained with other options.
      const std::string name = states.back().substr(states.back().rfind('/') + 1);
      write_durably(disk_, rundir::file_in(own, rundir::kCarriedFile), name + "\n");
      return checkpoint::mirror(disk_, states.back(), own);
    }
  }
  throw Error("STUDY_CHECKPOINT_MISSING",
              "trial " + std::to_string(id) + " starts from a checkpoint of trial " + std::to_string(*from) +
                  ", and that trial has none any more",
              "restore " + directory_of_(*from) + ", or begin another study");
}

std::vector<std::string> Generations::overrides(int64_t id) const {
  if (command_ || is_last(id)) return {};
  spec::Duration until = interval_;
  until.amount *= evaluations_ * static_cast<double>(id / population_ + 1);
  return {"budget.training=" + to_string(until)};
}

TrialMetrics Generations::measured(int64_t id) const {
  TrialMetrics metrics = metrics_of_(id);
  metrics.next();
  return metrics;
}

GenerationEnd Generations::end_of(const tune::Study& study, int64_t id) const {
  if (!command_ || is_last(id)) return GenerationEnd();
  auto left = static_cast<int64_t>(evaluations_) * (id / population_ + 1);
  for (auto from = study.trial(id).from; from; from = study.trial(*from).from) left -= measured(*from).count();
  return GenerationEnd(std::max<int64_t>(1, left), measured(id).count());
}

bool Generations::saved(int64_t id) const {
  return !command_ || is_last(id) || jobs::has_own_checkpoint(checkpoints_of(id));
}

std::vector<double> Generations::inherited_values(const tune::Study& study, int64_t id) const {
  for (auto from = study.trial(id).from; from; from = study.trial(*from).from) {
    if (const TrialMetrics before = measured(*from); before.count() > 0) return before.last();
  }
  return {};
}

}  // namespace sinew::study
