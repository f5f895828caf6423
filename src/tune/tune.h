// Hyperparameter search: search spaces, the record of a study, samplers and pruners.
//
// This room runs no trial, never waits and touches no disk. The caller runs the trials and reports to a Study what
// happened. Samplers then suggest the next trial, and pruners decide which trials are worth continuing. Their answers
// are a pure function of the options, the seed and the study's record, in the order of its events: the same record
// gives the same suggestion with 1 or 8 workers and after a restart. A sampler may keep data between two calls only to
// answer faster. Data that later answers depend on, such as fitted kernel parameters, goes into the suggestion's
// `sampler_state`, which is part of the record.
//
// This room minimises: it compares losses (Study::loss), never the values as the caller reported them.
// Errors: an invalid space, request or value throws Error; its codes begin with TUNE_ or ASK_TELL_.
// Threads: one thread at a time may use a Study with its sampler and pruner.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/comparison.h"
#include "base/random.h"

namespace sinew::tune {

// ---- spaces --------------------------------------------------------------------------------------------------------

// One number for each parameter: the value of a real or an integer, or the index of a choice. NaN: the parameter is
// inactive.
using Point = std::vector<double>;
inline constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

// Makes a parameter active only while its parent is active and has one of the `allowed` values (numbers as in a Point).
struct Condition {
  size_t parent = 0;
  std::vector<double> allowed;
};

struct Parameter {
  enum class Kind { real, integer, categorical, ordinal };
  std::string name;
  Kind kind = Kind::real;
  double low = 0, high = 1;          // both ends included; for choices: 0 and the last index
  bool log = false;                  // real and integer: search evenly in the logarithm
  double step = 0;                   // real: 0, or the distance between the allowed values; integer: at least 1
  std::vector<std::string> choices;  // categorical and ordinal: each is the JSON text of a scalar, such as "relu" or 64
  std::vector<Condition> conditions;  // the parameter is active while all of them hold

  bool numeric() const { return kind == Kind::real || kind == Kind::integer; }
  bool ordered() const { return kind != Kind::categorical; }
};

// A validated list of parameters and the constraints between them. Parents precede their children.
//
// A constraint compares parameters that have numeric values: numbers, or choices that are numbers. It applies to a
// point only if all parameters that it names are active there. A parameter with finitely many values is divided into
// `cells` of equal width along the unit interval, one for each value.
class Space {
 public:
  // Throws Error that names the invalid parameter, or the constraints that no point satisfies.
  explicit Space(std::vector<Parameter> parameters, std::vector<Comparison> constraints = {});
  size_t size() const { return parameters_.size(); }
  const Parameter& operator[](size_t i) const { return parameters_[i]; }
  bool conditional() const { return conditional_; }

  // The number of values of parameter i; 0: a continuum.
  int64_t cells(size_t i) const { return cells_[i]; }
  // Maps a value to [0, 1], along the logarithm if the parameter asks for it; a value with a cell maps to the middle of
  // its cell. value_at() maps back, to the nearest valid value. unit_at(value_at(u)) differs from u by less than a
  // cell.
  double unit_at(size_t i, double value) const;
  double value_at(size_t i, double unit) const;
  // The value of cell number `cell` of a parameter with cells; cell 0 holds the lowest value.
  double value_of_cell(size_t i, double cell) const;
  // Map whole points between the unit cube and the space; inactive parameters are NaN in both. Every point of the cube
  // maps to a point of the space: from_unit() drops the coordinates of parameters that turn out inactive.
  Point from_unit(std::span<const double> unit) const;
  std::vector<double> to_unit(const Point& point) const;

  const std::vector<Comparison>& constraints() const { return constraints_; }
  bool allows(const Point& point) const { return !violated(point); }
  // The first constraint that a point of the space violates; null: it satisfies all.
  const Comparison* violated(const Point& point) const;
  // The index of the last parameter that a violated constraint names. Changing only later parameters cannot satisfy it.
  size_t last_parameter_of(const Comparison& violated) const;
  // Some point that satisfies all constraints; empty if there are no constraints.
  const Point& allowed_point() const { return allowed_point_; }

  // Whether parameter i is active, given the parameters before it.
  bool active(size_t i, std::span<const double> point) const;
  // Turns any vector of the right size into a point of the space: moves every active value to the nearest valid one,
  // gives active parameters without a value the middle of their range, and drops the values of inactive parameters.
  void snap(Point& point) const;
  // Why this is not a point of the space, or which constraint it violates; none: it is valid.
  std::optional<std::string> problem_of(const Point& point) const;

  // The number of points that satisfy the constraints. None: the space is infinite, or has more than kMostCounted
  // points in all.
  static constexpr int64_t kMostCounted = 1 << 20;
  std::optional<int64_t> count() const { return count_; }
  // Enumerate a space with a count() in a fixed order, points that violate constraints included. None: `point` was the
  // last one.
  Point first_point() const;
  std::optional<Point> point_after(const Point& point) const;

 private:
  void check_parameter(size_t i) const;
  void count_points();
  void bind_constraints();
  void find_allowed_point();
  std::optional<bool> satisfies(size_t constraint, const Point& point) const;
  double number_of(size_t i, double value) const;
  std::vector<Parameter> parameters_;
  std::vector<Comparison> constraints_;
  std::vector<std::vector<size_t>> constrained_;     // for each constraint: the parameters that it names
  std::vector<std::vector<double>> choice_numbers_;  // for each constrained parameter: its choices as numbers
  Point allowed_point_;
  std::vector<int64_t> cells_;
  std::vector<double> from_, to_;  // what 0 and 1 of the unit interval stand for; logarithms if the parameter asks
  std::optional<int64_t> count_;
  bool conditional_ = false;
};

bool same_point(const Point& a, const Point& b);
// Equal points have equal hashes; different points practically never do.
uint64_t hash_of(const Point& point);

// Read and write a space and a point as JSON (docs/formats/ask-tell.md). Reading throws Error that names the parameter.
Space read_space(std::string_view json, std::vector<Comparison> constraints = {});
Point read_point(const Space& space, std::string_view json);  // {"lr": 0.1, ...}: exactly the active parameters
std::string write_point(const Space& space, const Point& point);

// ---- studies -------------------------------------------------------------------------------------------------------

enum class Direction { minimize, maximize };

// The trials of an earlier study, translated to the space of a new one (make_earlier_study), for a warm start.
struct EarlierStudy {
  std::string name;
  std::vector<std::vector<double>> points;  // points in the new unit cube; NaN: inactive in that trial, or unknown
  std::vector<double> losses;               // one for each point; infinite: the trial failed
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
  std::string by;                     // the name of the sampler; "first", "earlier" and "prefill" are no samplers
  std::string why;                    // the reason, one sentence for people
  std::vector<double> sampler_state;  // numbers that the sampler will read back from the record
  // The expected improvement of the best value, as a fraction of its lead over the median; none: the sampler cannot
  // say.
  std::optional<double> gain = {};
  // The ended trial whose final training state the new trial starts from. Such a suggestion may repeat a point.
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
  std::vector<double> constraints;  // constraint violations; at most 0: satisfied
  std::vector<Report> reports;      // intermediate values of the first objective
  std::optional<double> estimate;   // the final value that the pruner expected when it last paused the trial (Verdict)
};

// The record of a study. It only grows, and each trial ends once.
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
  // Pauses and resumes an open trial. `estimate`: the final value that the pruner expects, in the caller's sign.
  void pause(int64_t id, std::optional<double> estimate = std::nullopt);
  void resume(int64_t id);

  const std::vector<Trial>& trials() const { return trials_; }
  int64_t next_id() const { return static_cast<int64_t>(trials_.size()); }
  const std::vector<int64_t>& observed() const { return observed_; }  // ids of ended trials, in the order they ended
  const std::vector<int64_t>& open() const { return open_; }          // running and paused, ascending
  const Trial& trial(int64_t id) const;                               // throws Error if there is none

  // The value to minimise: the reported value, negated if the objective is to be maximised. +infinity if the trial
  // failed, has no value, or has NaN.
  double loss(const Trial& trial, size_t objective = 0) const;
  // The same for an intermediate value.
  double loss(const Report& report) const;
  // The best knowledge of a trial's first objective: its final value, else the pruner's estimate, else the last report.
  // +infinity for a failed trial. None: a running trial without reports, or a trial whose pruner said that its reports
  // predict nothing.
  std::optional<double> known_loss(const Trial& trial) const;
  // The sum of the constraint violations; 0: feasible. Infinite if the trial failed or a value is not finite, so that
  // such a trial never ranks above one that is merely infeasible.
  static double violation(const Trial& trial);
  // Whether some trial has this point.
  bool seen(const Point& point) const { return seen_.contains(hash_of(point)); }
  // Whether a sampler may suggest the point: no trial has it, and it satisfies the constraints between parameters.
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

// The incumbents, ascending by id. One objective: the complete trial with the lowest loss, the earliest of equal ones.
// Several: the Pareto front of the complete trials. Only feasible trials count; if there are none, only those with the
// least violation. Trials with values that are not finite never count.
std::vector<int64_t> best_trials(const Study& study);

// Translates the trials of an earlier study to a new space. Parameters match by name: trials keep their values if a
// range became wider or a choice was added, and a new parameter is unknown in all of them. A trial with a value that
// the new space does not have is left out.
EarlierStudy make_earlier_study(const Space& space, const Study& then, std::string name);

// ---- samplers ------------------------------------------------------------------------------------------------------

// Suggests trials. A sampler serves one study, which grows between calls. A new sampler for the same study gives the
// same answers.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Suggestion suggest(const Study& study) = 0;
  // False: the sampler cannot suggest a trial before more of the open trials have ended.
  virtual bool ready(const Study&) const { return true; }
  // Whether a later trial may start from the final state of this ended trial, so that its checkpoint must be kept.
  virtual bool needs(const Study&, int64_t) const { return false; }
};

struct SamplerMaker {
  const char* name;
  std::unique_ptr<Sampler> (*make)();
  const char* help;
  bool one_objective = false;  // it cannot search for several objectives
};
std::span<const SamplerMaker> samplers();
// Throws Error if there is no such sampler, or it does not support that many objectives.
std::unique_ptr<Sampler> make_sampler(std::string_view name, size_t objectives = 1);

// Suggests the next trial: the points of StudyOptions::initial_points, then the best points of earlier studies, then
// whatever the sampler suggests. Never repeats a point of a finite space while an untried one is left. Suggested points
// satisfy the constraints between parameters, and real numbers are rounded to a few significant digits.
Suggestion suggest_next(const Study& study, Sampler& sampler);

// An expected gain below this fraction of the best value's lead over the median counts as negligible.
inline constexpr double kLittleGain = 0.01;

// A sentence that says why another trial is expected to gain next to nothing. None: it may gain something, or the
// samplers cannot say. A function of the record.
std::optional<std::string> little_to_gain(const Study& study);

// ---- pruners ------------------------------------------------------------------------------------------------------

struct PrunerOptions {
  std::string name = "none";
  double min_resource = 1;  // the first step at which a trial may be paused or pruned
  double max_resource = 0;  // steps of a whole trial; 0: unknown; pruners with rungs and the curve pruner need it
  double reduction = 3;     // one in so many of the trials on a rung is promoted
};

enum class PruneDecision { keep_running, pause, prune };

// What a pruner decides about a running trial.
struct Verdict {
  PruneDecision decision = PruneDecision::keep_running;
  std::string why;  // the reason, one sentence for people
  // The final value that the pruner expects, in the caller's sign; samplers learn from it. NaN: the reports predict
  // nothing, so samplers must ignore them. None: samplers use the last report.
  std::optional<double> estimate = {};
};

// The paused trial to resume next.
struct Promotion {
  int64_t id = 0;
  std::string why;
};

// Stops unpromising trials early. Like a sampler, a pruner serves one study, and its answers are a function of the
// record.
class Pruner {
 public:
  virtual ~Pruner() = default;
  // Decides about a running trial after its newest report.
  virtual Verdict judge(const Study& study, const Trial& trial) = 0;
  // The paused trial to resume before the caller starts a new one; none: start a new one. With `no_new` the caller will
  // start no new trials: the pruner then names every trial that still deserves to continue, and none means that the
  // study is over once the running trials end.
  virtual std::optional<Promotion> promote(const Study& study, bool no_new);
  // Whether judge() ever pauses a trial.
  virtual bool pauses() const { return false; }
};

struct PrunerMaker {
  const char* name;
  std::unique_ptr<Pruner> (*make)(const PrunerOptions&);
  const char* help;
};
std::span<const PrunerMaker> pruners();
std::unique_ptr<Pruner> make_pruner(const PrunerOptions& options);  // throws Error

// ---- populations ---------------------------------------------------------------------------------------------------

// A member of a population: its current hyperparameters and its loss.
struct PopulationMember {
  Point point;
  double loss = 0;
};
// How member `me` continues: with its own state (from == me), or with a perturbed copy of member `from`.
struct PopulationStep {
  size_t from = 0;
  Point point;
  std::string why;
};
PopulationStep population_step(const Space& space, std::span<const PopulationMember> members, size_t me,
                               RandomStream random);

// ---- parameter importance ------------------------------------------------------------------------------------------

// Fractions of an objective's variance over the space, by functional analysis of variance (importance.cpp).
struct Importance {
  struct Pair {
    size_t first = 0, second = 0;
    double share = 0;  // the interaction of the two parameters, without the main effects
  };
  std::vector<double> alone;  // the main effect of each parameter; their sum is at most 1
  std::vector<Pair> pairs;    // the largest first; only pairs of the most important parameters
  int64_t trials = 0;         // the number of trials behind the analysis
};
// A function of the record. None: too few trials have a value.
std::optional<Importance> importance_of(const Study& study, size_t objective = 0);

// ---- ask and tell --------------------------------------------------------------------------------------------------

// The server side of the ask-tell protocol (docs/formats/ask-tell.md). Every request line gets exactly one answer line.
// An invalid request gets {"error": ..., "code": ..., "hint": ...} and changes nothing.
class AskTell {
 public:
  // The answer to one request, without a newline; none: the request was "quit".
  std::optional<std::string> answer(std::string_view line);

 private:
  struct Request;
  std::string dispatch(const Request& request);
  std::string init(const Request& request);
  static StudyOptions study_options(const Request& request);
  static PrunerOptions pruner_options(const Request& request);
  static void prefill(Study& study, const Request& request);
  std::string ask(const Request& request);
  std::string tell(const Request& request);
  std::string report(const Request& request);
  Study& study();

  std::optional<Study> study_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Pruner> pruner_;
};

}  // namespace sinew::tune
