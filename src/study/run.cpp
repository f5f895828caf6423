#include "study/run.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <set>

#include "base/disk.h"
#include "base/exit_code.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/shell_loop.h"
#include "report/report.h"
#include "study/directory.h"
#include "study/generations.h"
#include "study/scheduler.h"
#include "study/table.h"
#include "study/text.h"
#include "study/training_time.h"
#include "study/trial_metrics.h"

namespace sinew::study {
namespace {

constexpr double kLookSeconds = 0.05, kShowSeconds = 0.5;
constexpr double kHour = 3600;
constexpr double kTimeForNew = 0.8;   // of tune.time and tune.cost; then only those that wait go on, to come to an end
constexpr double kLeaveSeconds = 60;  // at least, from asking a trial to save and end to killing it
constexpr double kGraceSeconds = 10;  // beyond a command's grace, for its own end

class StudyRun final : public Shell {
 public:
  StudyRun(const Options& options_given, std::string directory, const spec::Job& job, const StudyHead& head,
           const std::vector<StudyEvent>& events, StudyFile& file, StudyProcess& self, const StudyPlaces& places)
      : options_(options_given),
        directory_(std::move(directory)),
        job_(job),
        head_(head),
        space_(space_of(job.tune)),
        best_by_(best_by(job)),
        clock_(options_given.clock),
        file_(file),
        self_(self),
        places_(places),
        cost_(job.tune.cost),
        planned_(head.trials),
        tuning_(tuning_options_here(), events) {
    if (!job_.trainer.lanes && !job_.command.given()) lanes_ = std::max<int64_t>(1, usable_cores() / places_.most());
    if (trains_in_parts(head_.sampler))
      parts_.emplace(
          job_, head_.max_resource, [this](int64_t id) { return directory_of(id); },
          [this](int64_t id) { return metrics_of_trial(id); });
    for (const StudyEvent& event : events) told(event);
    for (const int64_t id : tuning_.study().observed()) {
      if (options_.disk.exists(directory_of(id) + "/checkpoints")) kept_.insert(id);
    }
  }

  void on_signal(int signal) override { stop_.add(signal); }

  std::vector<int> descriptors() const override {
    std::vector<int> all;
    for (const auto& [id, trial] : trials_) all.push_back(trial.process.descriptor());
    return all;
  }

  std::optional<int> turn() override {
    const double now = clock_.monotonic_seconds();
    if (places_.due(now)) follow_the_machine(now);
    if (stop_.requested()) {
      if (leave()) return kResumable;
    } else if (const auto turn = self_.turn()) {
      last_turn_ = now;
      if (decide(std::max(job_.tune.seconds > 0 ? (now - start_) / job_.tune.seconds : 0, part_of_cost())))
        return finish();
      show_table(now - start_);
    } else if (now - last_turn_ >= StudyProcess::kTurnSeconds) {
      last_turn_ = now;
      say("another process has decided for " + short_number(StudyProcess::kTurnSeconds) +
          " s what to do next in this study: is it stopped?");
    }
    return std::nullopt;
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
    say(*change);
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
    if (options_.screen == nullptr || seconds - shown_ < kShowSeconds) return;
    const TerminalSize size = options_.screen->size();
    shown_ = seconds;
    options_.screen->show(study_table(tuning_.study(), head_, planned_, seconds, size.columns, size.rows / 2));
  }

  int finish() {
    if (options_.screen != nullptr) options_.screen->end();
    if (cost_ > 0) show_cost();
    if (tuning_.ended_early()) say("ended early: " + *tuning_.ended_early());
    show_study(options_, directory_, tuning_.study(), head_);
    return tuning_.best().empty() ? kTrainingError : kDone;
  }

  void show_cost() {
    const double part = part_of_cost();
    char text[128];
    std::snprintf(text, sizeof text, "it took %.2f hours of training and cost %.2f", time_.seconds() / kHour,
                  part * cost_);
    say(text);
    if (part < 1 || tuning_.study().next_id() >= planned_) return;
    std::snprintf(text, sizeof text, "%g", 2 * cost_);
    say("tune.cost is spent; go on with more: sinew tune resume " + directory_ + " --cost " + text);
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

  TuningOptions tuning_options_here() {
    TuningOptions options = tuning_options(head_, job_.tune, space_);
    options.study.earlier = earlier_studies(options_.disk, directory_, job_, space_, options_.environment);
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

  void say(const std::string& line) const {
    if (options_.output) options_.output(line);
  }

  void say(int64_t id, const std::string& text) const { say("trial " + std::to_string(id) + ": " + text); }

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
    return {options_.disk, directory_of(id) + "/metrics.jsonl", metrics};
  }

  // A trial that was resolved goes on as it was, on whatever machine: with other cores, this one's lanes would differ.
  std::vector<std::string> command_of(int64_t id, const std::vector<std::string>& changes) {
    const std::string own = directory_of(id);
    options_.disk.make_directories(own);
    if (options_.disk.exists(own + "/resolved.yaml")) return {options_.program, "resume", own};
    if (options_.disk.exists(own + "/job.yaml")) options_.disk.remove_file(own + "/job.yaml");  // nothing was trained
    StudyHead trial = head_;
    trial.overrides.insert(trial.overrides.end(), changes.begin(), changes.end());
    // By the digests the study remembers: every trial would read all the data for them.
    if (!job_.command.given() && options_.record_data)
      options_.record_data(study_job(trial, study_path(directory_), options_.environment), own, directory_);
    if (lanes_) trial.overrides.push_back("trainer.lanes=" + std::to_string(*lanes_));
    if (parts_) {
      parts_->begin(id, tuning_.study().trial(id).from);
      for (std::string& word : parts_->overrides(id)) trial.overrides.push_back(std::move(word));
    }
    std::vector<std::string> command = {options_.program, "train", directory_ + "/job.yaml",
                                        "--run-dir",      own,     "--resume"};
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
    for (const char* part : {"/checkpoints", "/model"}) options_.disk.remove_all(directory_of(id) + part);
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
      if (stop_.immediate())
        trial.process.send_group(SIGKILL);
      else
        ask_to_end(trial);
    }
    for (auto at = trials_.begin(); at != trials_.end();)
      at = at->second.process.wait() ? trials_.erase(at) : std::next(at);
    if (!trials_.empty()) return false;
    say_what_it_took();
    if (options_.screen != nullptr) options_.screen->end();
    say("stopped; go on with it: sinew tune resume " + directory_);
    return true;
  }

  const Options& options_;
  std::string directory_;
  spec::Job job_;
  StudyHead head_;
  tune::Space space_;
  std::string best_by_;
  Clock& clock_;
  StudyFile& file_;
  StudyProcess& self_;
  StopRequests stop_;
  double start_ = clock_.monotonic_seconds(), last_turn_ = start_;
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

int run_trials(const Options& options, const std::string& directory, const spec::Job& job, const StudyHead& head,
               const std::vector<StudyEvent>& events, StudyFile& file, StudyProcess& self, const StudyPlaces& places,
               SignalSource& signals) {
  StudyRun run(options, directory, job, head, events, file, self, places);
  return run_shell(run, signals, kLookSeconds);
}

}  // namespace sinew::study
