#include "cli/study_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <set>
#include <thread>

#include "base/disk.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/signals.h"
#include "cli/data_manifest.h"
#include "cli/launch.h"
#include "cli/numbers.h"
#include "cli/study_directory.h"
#include "cli/study_parts.h"
#include "cli/study_screen.h"
#include "cli/study_text.h"
#include "cli/study_time.h"
#include "cli/trial_metrics.h"
#include "cli/tuning.h"
#include "cli/worker_process.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

constexpr double kLookSeconds = 0.05, kShowSeconds = 0.5;
constexpr double kHour = 3600;
constexpr double kTimeForNew = 0.8;   // of tune.time and tune.cost; then only those that wait go on, to come to an end
constexpr double kLeaveSeconds = 60;  // at least, from asking a trial to save and end to killing it
constexpr double kGraceSeconds = 10;  // beyond a command's grace, for its own end

volatile std::sig_atomic_t asked = 0, insisted = 0;
void on_signal(int signal) {
  if (can_insist(signal)) insisted = insisted + 1;
  asked = 1;
}

class StudyRun {
 public:
  StudyRun(std::string directory, const spec::Job& job, const StudyHead& head, const std::vector<StudyEvent>& events,
           StudyFile& file, StudyProcess& self, const StudyPlaces& places, Clock& clock)
      : directory_(std::move(directory)),
        job_(job),
        head_(head),
        space_(space_of(job.tune)),
        best_by_(best_by(job)),
        clock_(clock),
        file_(file),
        self_(self),
        places_(places),
        cost_(job.tune.cost),
        planned_(head.trials),
        tuning_(options(), events) {
    if (!job_.trainer.lanes && !job_.command.given()) lanes_ = std::max<int64_t>(1, usable_cores() / places_.most());
    if (trains_in_parts(head_.sampler))
      parts_.emplace(
          job_, head_.max_resource, [this](int64_t id) { return directory_of(id); },
          [this](int64_t id) { return metrics_of_trial(id); });
    for (const StudyEvent& event : events) told(event);
    for (const int64_t id : tuning_.study().told()) {
      if (system_disk().exists(directory_of(id) + "/checkpoints")) kept_.insert(id);
    }
  }

  int run() {
    const double began = clock_.monotonic_seconds();
    double last_turn = began;
    while (true) {
      const double now = clock_.monotonic_seconds();
      if (places_.due(now)) follow_the_machine(now);
      if (asked > 0) {
        if (leave()) return kResumable;
      } else if (const auto turn = self_.turn()) {
        last_turn = now;
        if (decide(std::max(job_.tune.seconds > 0 ? (now - began) / job_.tune.seconds : 0, part_of_cost()))) break;
        show_table(now - began);
      } else if (now - last_turn >= StudyProcess::kTurnSeconds) {
        last_turn = now;
        screen_.say("another process has decided for " + short_number(StudyProcess::kTurnSeconds) +
                    " s what to do next in this study: is it stopped?");
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
    }
    screen_.end();
    if (cost_ > 0) show_cost();
    if (tuning_.ended_early()) std::printf("ended early: %s\n", tuning_.ended_early()->c_str());
    show_study(system_disk(), directory_, tuning_.study(), head_);
    return tuning_.best().empty() ? kTrainingError : kDone;
  }

 private:
  struct Trial {
    Process process;
    TrialMetrics metrics;
    PartEnd part;
    std::optional<double> asked = {};  // when it was asked to save and end
    bool gave_way = false;             // by the machine's other programs, not by the study
  };

  // Where there are fewer places the newest trials save and end, and go on when there is one again. A command may not
  // have saved anything: it comes to its end, and nothing takes its place.
  void follow_the_machine(double now) {
    const auto change = places_.look(now, cpu_times(cores_));
    if (!change) return;
    screen_.say(*change);
    tuning_.set_parallel(places_.now());
    auto over = static_cast<int64_t>(std::ranges::count_if(trials_, [](const auto& one) { return !one.second.asked; }));
    for (auto at = trials_.rbegin(); at != trials_.rend() && over > places_.now(); ++at) {
      if (job_.command.given() || at->second.asked) continue;
      at->second.gave_way = true;
      ask_to_end(at->second);
      --over;
    }
  }

  // Of tune.cost, the part that was spent.
  double part_of_cost() {
    if (!(cost_ > 0)) return 0;
    for (const auto& [id, trial] : trials_) time_.trained(id, seconds_of(id));
    return time_.seconds() / kHour * job_.tune.price / cost_;
  }

  void show_table(double seconds) {
    const TerminalSize size = terminal_size();
    if (!screen_.terminal() || seconds - shown_ < kShowSeconds) return;
    shown_ = seconds;
    screen_.show(study_table(tuning_.study(), head_, planned_, seconds, size.columns, size.rows / 2));
  }

  void show_cost() {
    const double part = part_of_cost();
    std::printf("it took %.2f hours of training and cost %.2f\n", time_.seconds() / kHour, part * cost_);
    if (part >= 1 && tuning_.study().next_id() < planned_)
      std::printf("tune.cost is spent; go on with more: sinew tune resume %s cost=%g\n", directory_.c_str(), 2 * cost_);
  }

  // Said by this process or another one.
  void told(const StudyEvent& event) {
    time_.told(event);
    if (event.kind == StudyEvent::Kind::extend) {
      planned_ = event.trials;
      cost_ = event.cost.value_or(cost_);
    }
  }

  // In a turn; `part` of tune.time has passed, or of tune.cost is spent. True: the study is over.
  bool decide(double part) {
    for (const StudyEvent& event : file_.news(space_)) {
      tuning_.told(event);
      told(event);
      if (event.kind == StudyEvent::Kind::end) kept_.insert(event.id);
    }
    Hurry hurry = part >= (tuning_.pauses() ? kTimeForNew : 1) ? Hurry::no_new : Hurry::none;
    if (part >= 1 && !tuning_.best().empty()) hurry = Hurry::over;
    start_trials(hurry);
    look_at_trials();
    if (!trials_.empty() || !tuning_.over(hurry)) return false;
    forget_models();  // who was killed may have left some
    return true;
  }

  TuningOptions options() {
    TuningOptions options = tuning_options(head_, job_.tune, space_);
    options.study.earlier = earlier_studies(system_disk(), directory_, job_, space_);
    options.parallel = places_.now();
    options.record = [this](StudyEvent event) {
      if (!begins_life(event) && began_.contains(event.id)) event.seconds = seconds_of(event.id);
      file_.append(space_, event);
      told(event);
    };
    options.process = self_.name();
    options.abandoned = [this](const std::string& process, int64_t id) {
      return self_.abandoned(process, directory_of(id));
    };
    return options;
  }

  double seconds_of(int64_t id) const { return clock_.monotonic_seconds() - began_.at(id); }

  void say(int64_t id, const std::string& text) { screen_.say("trial " + std::to_string(id) + ": " + text); }

  std::string directory_of(int64_t id) const { return trial_directory(directory_, id); }

  void start_trials(Hurry hurry) {
    while (const auto start = tuning_.next(hurry)) {
      const auto changes = overrides_of(space_, tuning_.study().trial(start->id).point);
      std::string words;
      for (const std::string& change : changes) words += (words.empty() ? "" : " ") + change;
      say(start->id, (start->again ? "" : words + "  ") + "(" + start->why + ")");
      ProcessOptions process;
      process.command = command_of(start->id, changes);
      process.death_signal = SIGKILL;  // its checkpoints stand; the study goes on from them
      process.output = directory_of(start->id) + "/output.log";
      began_[start->id] = clock_.monotonic_seconds() - time_.of(start->id);
      const PartEnd part = parts_ ? parts_->end_of(tuning_.study(), start->id) : PartEnd();
      trials_.emplace(start->id, Trial{Process(process), metrics_of_trial(start->id), part});
    }
  }

  TrialMetrics metrics_of_trial(int64_t id) const {
    std::vector<std::string> metrics = metrics_of(head_.aim);
    if (!best_by_.empty()) metrics.push_back(best_by_);
    return {system_disk(), directory_of(id) + "/metrics.jsonl", metrics};
  }

  // A trial that was resolved goes on as it was, on whatever machine: with other cores, this one's lanes would differ.
  std::vector<std::string> command_of(int64_t id, const std::vector<std::string>& changes) {
    const std::string own = directory_of(id);
    system_disk().make_directories(own);
    if (system_disk().exists(own + "/resolved.yaml")) return {this_program(), "resume", own};
    if (system_disk().exists(own + "/job.yaml")) system_disk().remove_file(own + "/job.yaml");  // nothing was trained
    StudyHead trial = head_;
    trial.overrides.insert(trial.overrides.end(), changes.begin(), changes.end());
    // By the digests the study remembers: every trial would read all the data for them.
    if (!job_.command.given()) record_data(study_job(trial, study_path(directory_)), own, directory_);
    if (lanes_) trial.overrides.push_back("trainer.lanes=" + std::to_string(*lanes_));
    if (parts_) {
      parts_->begin(id, tuning_.study().trial(id).from);
      for (std::string& word : parts_->overrides(id)) trial.overrides.push_back(std::move(word));
    }
    std::vector<std::string> command = {this_program(), "train", directory_ + "/job.yaml",
                                        "--run-dir",    own,     "--resume"};
    command.insert(command.end(), trial.overrides.begin(), trial.overrides.end());
    return command;
  }

  void ask_to_end(Trial& trial) {
    const double now = clock_.monotonic_seconds();
    if (!trial.asked) {
      trial.asked = now;
      trial.process.send(SIGTERM);
    } else if (now - *trial.asked >= std::max(kLeaveSeconds, job_.command.grace_seconds + kGraceSeconds)) {
      trial.process.send_group(SIGKILL);
    }
  }

  void take_reports(int64_t id, Trial& trial) {
    for (const auto& value : trial.metrics.next()) {
      std::string why = "its part is over";
      const bool told = value.number <= trial.part.after();  // how far it came until it ended is a matter of timing
      bool ends = told && tuning_.reported(id, static_cast<double>(value.number), value.value, why);
      if (trial.part.is_over_by(value.number)) ends = true;
      if (!ends) continue;
      say(id, why);
      ask_to_end(trial);
    }
  }

  void look_at_trials() {
    for (auto at = trials_.begin(); at != trials_.end();) {
      auto& [id, trial] = *at;
      const auto end = trial.process.wait();
      take_reports(id, trial);
      if (trial.asked) ask_to_end(trial);
      if (!end) {
        ++at;
        continue;
      }
      const int64_t over = id;
      const Trial gone = std::move(at->second);
      at = trials_.erase(at);
      take_end(over, gone, *end);
    }
  }

  // By which metric a training ends with the weights that were best; empty: it ends with the last ones.
  static std::string best_by(const spec::Job& job) {
    const auto& early = job.early_stopping;
    if (job.command.given() || early.monitor.empty() || !early.restore_best) return "";
    if (job.checkpoint.monitor != "auto") return job.checkpoint.monitor;
    return job.objective ? job.objective->metric : early.monitor;
  }

  // What was measured of the weights that a training ended with.
  std::vector<double> measured(int64_t id, const Trial& trial) const {
    const TrialMetrics& metrics = trial.metrics;
    if (metrics.count() >= trial.part.after()) return metrics.at(trial.part.after());
    if (parts_ && metrics.count() == 0) {  // nothing was left to train
      if (auto carried = parts_->carried(tuning_.study(), id); !carried.empty()) return carried;
    }
    return best_by_.empty() ? metrics.last() : metrics.at_best(report::lower_is_better(best_by_, job_.checkpoint.mode));
  }

  void take_end(int64_t id, const Trial& trial, const ProcessEnd& end) {
    const bool by_itself = end == ProcessEnd{kDone, 0} || end == ProcessEnd{kBudget, 0};
    const bool saved = !parts_ || trial.metrics.count() == 0 || parts_->saved(id);
    TrialOver over;
    if (!saved && (by_itself || (trial.part.over() && left_as_asked(end)))) {
      over =
          tuning_.failed(id, "it left no complete checkpoint in SINEW_CHECKPOINT_DIR for the next part to go on from");
    } else {
      std::optional<Outcome> outcome;  // of one that came to its end, which may be that of its budget or its part
      if (by_itself || (trial.part.over() && saved)) outcome = outcome_of(head_.aim, measured(id, trial));
      over = tuning_.ended(id, end, outcome, trial.gave_way);
    }
    say_end(id, over);
    if (!over.resumable) kept_.insert(id);
    forget_models();
  }

  void say_end(int64_t id, const TrialOver& over) {
    const tune::Trial& trial = tuning_.study().trial(id);
    std::string text = over.why;
    if (trial.state == tune::TrialState::complete) text += ", " + result_text(head_.aim, trial);
    if (over.best) text += head_.aim.objectives.size() == 1 ? ", the best so far" : ", among the best so far";
    if (trial.state == tune::TrialState::failed) text += "; " + directory_of(id) + "/output.log says more";
    say(id, text);
  }

  // Of trials that have ended, here or elsewhere, and that nobody needs any more.
  void forget_models() {
    const auto best = tuning_.best();
    std::erase_if(kept_, [&](int64_t id) {
      if (tuning_.needs(id) || std::ranges::count(best, id) > 0) return false;
      forget_model(id);
      return true;
    });
  }

  // Its metrics and its job stay; what is large goes.
  void forget_model(int64_t id) {
    for (const char* part : {"/checkpoints", "/model"}) system_disk().remove_all(directory_of(id) + part);
  }

  // For whoever goes on with them; in vain where another process holds the turn.
  void say_what_it_took() {
    const auto turn = self_.turn();
    if (!turn) return;
    file_.news(space_);
    for (const int64_t id : tuning_.running())
      file_.append(space_, {.kind = StudyEvent::Kind::leave, .id = id, .seconds = time_.of(id)});
  }

  // Trials save a checkpoint and end; a second signal kills them. True: all are gone. What they reported last is found
  // in their metrics by whoever goes on with them.
  bool leave() {
    for (auto& [id, trial] : trials_) {
      time_.trained(id, seconds_of(id));
      if (insisted > 1)
        trial.process.send_group(SIGKILL);
      else
        ask_to_end(trial);
    }
    for (auto at = trials_.begin(); at != trials_.end();)
      at = at->second.process.wait() ? trials_.erase(at) : std::next(at);
    if (!trials_.empty()) return false;
    say_what_it_took();
    screen_.end();
    std::printf("stopped; go on with it: sinew tune resume %s\n", directory_.c_str());
    return true;
  }

  std::string directory_;
  spec::Job job_;
  StudyHead head_;
  tune::Space space_;
  std::string best_by_;
  Clock& clock_;
  StudyFile& file_;
  StudyProcess& self_;
  StudyScreen screen_{terminal_size().columns > 0};
  double shown_ = -kShowSeconds;
  StudyPlaces places_;
  std::set<int> cores_ = own_cores();
  StudyTime time_;
  double cost_;      // that all may come to; 0: there is no limit
  int64_t planned_;  // trials
  Tuning tuning_;
  std::map<int64_t, Trial> trials_;
  std::map<int64_t, double> began_;  // of each that was started here: when it would have, had it never stopped
  std::optional<StudyParts> parts_;
  std::set<int64_t> kept_;  // trials that have ended and may still have their models
  std::optional<int64_t> lanes_;
};

}  // namespace

int run_trials(const std::string& directory, const spec::Job& job, const StudyHead& head,
               const std::vector<StudyEvent>& events, StudyFile& file, StudyProcess& self, const StudyPlaces& places,
               Clock& clock) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_signal);
  return StudyRun(directory, job, head, events, file, self, places, clock).run();
}

}  // namespace sinew::cli
