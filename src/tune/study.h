// Defines a study: its options and its trial history. Part of tune/tune.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/random.h"
#include "tune/space.h"

namespace sinew::tune {

enum class Direction { minimize, maximize };

// The trials of an earlier study, translated to the space of a new one (make_earlier_study), for a warm start.
struct EarlierStudy {
  std::string name;
  std::vector<std::vector<double>> points;  // points in the new unit cube; NaN: inactive in that trial, or unknown
  std::vector<double> losses;               // one for each point; infinite if the trial failed or was infeasible
};

struct StudyOptions {
  Space space;
  std::vector<Direction> directions = {Direction::minimize};
  uint64_t seed = 0;
  int64_t budget = 0;                      // planned trials; 0: unknown
  std::vector<Point> initial_points = {};  // points to try before the sampler suggests any, such as the user's defaults
  std::vector<EarlierStudy> earlier = {};
  int64_t population = 8;  // members of a population; only the sampler pbt has one
};

// An intermediate value of a running trial.
struct Report {
  double step = 0;  // grows from report to report; usually the number of an epoch or of an evaluation
  double value = 0;
};

enum class TrialState { running, paused, complete, pruned, failed };

// The point that a sampler suggests for the next trial.
struct Suggestion {
  Point point;
  std::string by;                     // the name of the sampler, or "first", "earlier" or "prefill"
  std::string why;                    // the reason, one sentence for the user
  std::vector<double> sampler_state;  // numbers that the sampler will read back from the trial history
  // The expected improvement of the best value, as a fraction of its lead over the median; nullopt if the sampler does
  // not know it.
  std::optional<double> gain = {};
  // If set, the new trial starts from the final training state of this ended trial. Such a suggestion may repeat a
  // point.
  std::optional<int64_t> from = {};
};

struct Trial {
  int64_t id = 0;  // the index in Study::trials
  Point point;
  TrialState state = TrialState::running;
  std::string by, why;
  std::vector<double> sampler_state;
  std::optional<double> gain;
  std::optional<int64_t> from;
  std::vector<double> values;       // one for each objective, as reported; empty unless complete, or pruned with values
  std::vector<double> constraints;  // how much each constraint is violated; at most 0 if it is satisfied
  std::vector<Report> reports;      // intermediate values of the first objective
  std::optional<double> estimate;   // the final value that the pruner expected when it last paused the trial (Verdict)
};

// A study. Its trial history only grows, and each trial ends once.
class Study {
 public:
  explicit Study(StudyOptions options);
  const StudyOptions& options() const { return options_; }
  const Space& space() const { return options_.space; }
  size_t objectives() const { return options_.directions.size(); }

  // Changes the number of planned trials.
  void extend(int64_t budget);
  // Starts a trial and returns its id: the number of trials before it.
  int64_t start(Suggestion suggestion);
  // Adds a trial that ended before the study began. Allowed only before the first start().
  void prefill(Point point, TrialState state, std::vector<double> values, std::vector<double> constraints);
  // The number of trials that start() began, without prefilled ones.
  size_t started() const { return trials_.size() - prefilled_; }
  // Ends a trial: complete (one value for each objective), pruned (values or none) or failed (no values). NaN counts as
  // the worst value. Throws Error if the trial does not exist or has ended, or if the number of values is wrong.
  void tell(int64_t id, TrialState state, std::vector<double> values = {}, std::vector<double> constraints = {});
  // Adds an intermediate value to a running trial. Throws Error if the step is not above the last one.
  void report(int64_t id, double step, double value);
  // Pauses and resumes an open trial. `estimate` is the final value that the pruner expects, in the objective's own
  // unit and sign, like reported values.
  void pause(int64_t id, std::optional<double> estimate = std::nullopt);
  void resume(int64_t id);
  // Makes a failed trial a running one again. A sampler that learns from all trials has seen the failure.
  void retry(int64_t id);

  const std::vector<Trial>& trials() const { return trials_; }
  int64_t next_id() const { return static_cast<int64_t>(trials_.size()); }
  const std::vector<int64_t>& observed() const { return observed_; }  // ids of ended trials, in the order they ended
  const std::vector<int64_t>& open() const { return open_; }          // ids of running and paused trials, ascending
  const Trial& trial(int64_t id) const;                               // throws Error if there is none

  // The value to minimise: the reported value, negated if the objective is to be maximised. +infinity if the trial
  // failed, has no value, or has NaN.
  double loss(const Trial& trial, size_t objective = 0) const;
  // Like loss() of a trial, for the value of an intermediate report.
  double loss(const Report& report) const;
  // The known or estimated loss of the first objective: from the final value, else from the pruner's estimate, else
  // from the last report. It is +infinity for a failed trial. Returns nullopt for an open trial without reports, and if
  // the pruner found that the reports predict nothing.
  std::optional<double> known_loss(const Trial& trial) const;
  // The sum of the constraint violations; 0 if the trial is feasible. It is infinite if the trial failed or a value is
  // not finite. Such a trial therefore never ranks above one that is merely infeasible.
  static double violation(const Trial& trial);
  // Returns whether some trial has this point.
  bool seen(const Point& point) const { return seen_.contains(hash_of(point)); }
  // Returns whether a sampler may suggest the point: no trial has it, and it satisfies the constraints between
  // parameters.
  bool is_new(const Point& point) const { return !seen(point) && space().allows(point); }
  int64_t different_points() const { return static_cast<int64_t>(seen_.size()); }

  // A random stream for one purpose ("tpe", "sobol") that depends on the seed and on the number of trials so far.
  RandomStream random(std::string_view purpose) const;
  // A random key for one purpose that depends on the seed only.
  RandomKey key(std::string_view purpose) const;

 private:
  Trial& open_trial(int64_t id);
  void close(Trial& trial);
  StudyOptions options_;
  std::vector<Trial> trials_;
  std::vector<int64_t> observed_, open_;
  std::unordered_set<uint64_t> seen_;
  size_t prefilled_ = 0;
};

// The best trials, ascending by id. With one objective, this is the complete trial with the lowest loss; of equal
// trials, the earliest. With several objectives, it is the Pareto front of the complete trials. Only feasible trials
// count. If there are none, only the trials with the least violation count. Trials with values that are not finite
// never count.
std::vector<int64_t> best_trials(const Study& study);

// Translates the trials of an earlier study to a new space. Parameters match by name. Trials keep their values if a
// range became wider or a choice was added; a new parameter is unknown in all of them. Leaves out a trial that has a
// value which the new space does not have.
EarlierStudy make_earlier_study(const Space& space, const Study& then, std::string name);

}  // namespace sinew::tune
