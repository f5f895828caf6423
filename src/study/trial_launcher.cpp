#include "study/trial_launcher.h"

#include <algorithm>
#include <csignal>

#include "base/proc.h"
#include "study/directory.h"
#include "study/folds.h"

namespace sinew::study {

TrialLauncher::TrialLauncher(const Options& options, const OpenStudy& study, int64_t slots,
                             const Generations* generations)
    : options_(options), study_(study), generations_(generations) {
  if (!study.job.trainer.lanes && !study.job.command.given())
    lanes_ = std::max<int64_t>(1, usable_cores() / (slots * study.job.workers.max));
}

ProcessOptions TrialLauncher::prepare(const tune::Trial& trial, const std::vector<std::string>& changes) const {
  const std::string own = trial_directory(study_.directory, trial.id);
  options_.disk.make_directories(own);
  ProcessOptions process;
  if (options_.disk.exists(rundir::file_in(own, rundir::kResolvedFile)) || is_study(options_.disk, own))
    process.command = {options_.program(), "resume", own};
  else
    process.command = first_command(trial, changes);
  // A trial of a search trains its folds one after another.
  if (study_.job.data.trains_folds() && !leads_folds(study_.job))
    process.command.insert(process.command.end(), {"--parallel", "1"});
  // The trial dies with its leader; its checkpoints remain, and the next leader continues from them.
  process.death_signal = SIGKILL;
  process.output = own + "/output.log";
  return process;
}

std::vector<std::string> TrialLauncher::first_command(const tune::Trial& trial,
                                                      const std::vector<std::string>& changes) const {
  const std::string own = trial_directory(study_.directory, trial.id);
  // Removes a job file without resolved.yaml: its process ended before it trained.
  options_.disk.remove_file(rundir::file_in(own, rundir::kJobFile));
  StudyHead head = study_.head;
  head.overrides.insert(head.overrides.end(), changes.begin(), changes.end());
  // Caches digests of data in the study's directory, so that not every trial reads all data to compute them.
  if (!study_.job.command.given() && options_.record_data) {
    const spec::Job job = study_job(head, study_path(study_.directory), options_.environment);
    options_.record_data(job, own, study_.directory);
  }
  if (lanes_) head.overrides.push_back("trainer.lanes=" + std::to_string(*lanes_));
  if (generations_ != nullptr) {
    generations_->copy_state(trial.id, trial.from);
    for (std::string& word : generations_->overrides(trial.id)) head.overrides.push_back(std::move(word));
  }
  std::vector<std::string> command = {options_.program(), "train", rundir::file_in(study_.directory, rundir::kJobFile),
                                      "--run-dir",        own,     "--resume"};
  command.insert(command.end(), head.overrides.begin(), head.overrides.end());
  return command;
}

}  // namespace sinew::study
