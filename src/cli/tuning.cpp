#include "cli/tuning.h"

#include <algorithm>
#include <cmath>

#include "base/exit_code.h"

namespace sinew::cli {

using tune::Course;
using tune::TrialState;
using Kind = StudyEvent::Kind;

Tuning::Tuning(TuningOptions options, const std::vector<StudyEvent>& events)
    : options_(std::move(options)), study_(options_.study), sampler_(tune::make_sampler(options_.sampler)) {
  tune::StopperOptions stopper;
  stopper.name = options_.stopper;
  stopper.max_resource = options_.max_resource;
  const bool counts = options_.stopper != "auto" && options_.stopper != "none" && options_.stopper != "median";
  if (counts && options_.max_resource < 2)
    throw Error(
        "tune.stopper: " + options_.stopper + " needs to know how many evaluations a training has, two at least",
        "give trainer.max_duration and trainer.eval_interval in one unit, or choose median");
  stopper_ = tune::make_stopper(stopper);
  for (const StudyEvent& event : events) apply(study_, event);
  for (const int64_t id : study_.open()) {
    if (study_.trial(id).state == TrialState::running) waiting_.push_back(id);
  }
}

void Tuning::record(const StudyEvent& event) {
  if (options_.record) options_.record(event);
  apply(study_, event);
  in_vain_.reset();
}

TrialStart Tuning::begin(int64_t id, bool again, std::string why) {
  running_[id] = {};
  return {id, again, std::move(why)};
}

std::optional<TrialStart> Tuning::next(bool no_new) {
  if (static_cast<int64_t>(running_.size()) >= options_.parallel || in_vain_ == no_new) return std::nullopt;
  if (!waiting_.empty()) {
    const int64_t id = waiting_.front();
    waiting_.erase(waiting_.begin());
    return begin(id, true, "it goes on from its checkpoint");
  }
  const bool no_more = no_new || study_.next_id() >= options_.trials;
  if (const auto promotion = stopper_->promote(study_, no_more)) {
    record({.kind = Kind::resume, .id = promotion->id});
    return begin(promotion->id, true, promotion->why);
  }
  if (no_more) return in_vain_ = no_new, std::nullopt;
  const tune::Suggestion suggestion = tune::suggest_next(study_, *sampler_);
  const int64_t id = study_.next_id();
  record({.kind = Kind::start, .id = id, .suggestion = suggestion});
  return begin(id, false, suggestion.why);
}

bool Tuning::reported(int64_t id, double step, double value, std::string& why) {
  const auto life = running_.find(id);
  if (life == running_.end()) return false;
  const tune::Trial& trial = study_.trial(id);
  if (!trial.reports.empty() && step <= trial.reports.back().step) return false;
  record({.kind = Kind::report, .id = id, .step = step, .value = value});
  deaths_.erase(id);
  const bool last = options_.max_resource > 0 && step >= options_.max_resource;  // it ends by itself
  if (life->second.asked || last) return false;
  const tune::Verdict verdict = stopper_->judge(study_, trial);
  if (verdict.course == Course::go_on) return false;
  life->second.asked = verdict.course;
  why = verdict.why;
  return true;
}

TrialOver Tuning::end_trial(int64_t id, TrialState state, std::vector<double> values, std::string why) {
  record({.kind = Kind::end, .id = id, .state = state, .values = std::move(values)});
  return {std::move(why), best() == id, false};
}

TrialOver Tuning::ended(int64_t id, const ProcessEnd& end, std::optional<double> value) {
  const Life life = running_.at(id);
  running_.erase(id);
  const bool saved = end == ProcessEnd{kResumable, 0};
  if (value) return end_trial(id, TrialState::complete, {*value}, "done");
  if (saved && life.asked == Course::pause) {
    record({.kind = Kind::pause, .id = id});
    return {"paused", false, true};
  }
  if (life.asked == Course::stop) {
    const tune::Trial& trial = study_.trial(id);
    const std::vector<double> last =
        trial.reports.empty() ? std::vector<double>{} : std::vector{trial.reports.back().value};
    return end_trial(id, TrialState::pruned, last, "stopped");
  }
  const bool by_itself = end.signal == 0 && !saved;
  if (by_itself) return end_trial(id, TrialState::failed, {}, "failed: " + to_string(end));
  if (!saved && ++deaths_[id] >= options_.most_deaths)
    return end_trial(id, TrialState::failed, {},
                     "failed: it died " + std::to_string(deaths_[id]) + " times without an evaluation, the last time " +
                         to_string(end));
  waiting_.push_back(id);
  in_vain_.reset();
  return {to_string(end) + "; it goes on from its checkpoint", false, true};
}

std::optional<int64_t> Tuning::best() const {
  std::optional<int64_t> best;
  for (const tune::Trial& trial : study_.trials()) {
    if (trial.state != TrialState::complete || !std::isfinite(study_.loss(trial))) continue;
    if (!best || study_.loss(trial) < study_.loss(study_.trial(*best))) best = trial.id;
  }
  return best;
}

std::vector<int64_t> Tuning::running() const {
  std::vector<int64_t> ids;
  for (const auto& [id, life] : running_) ids.push_back(id);
  return ids;
}

double evaluations_of(const spec::Job& job) {
  const spec::Duration &whole = job.trainer.max_duration, &interval = job.trainer.eval_interval;
  if (interval.unit == spec::Duration::Unit::fraction) return std::floor(1 / interval.amount + 1e-9);
  if (interval.unit != whole.unit || whole.unit == spec::Duration::Unit::seconds) return 0;
  return std::floor(whole.amount / interval.amount + 1e-9);
}

}  // namespace sinew::cli
