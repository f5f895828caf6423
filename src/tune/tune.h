// Which trial next: search spaces, the record of a study, samplers and pruners.
//
// For cli/ and jobs/. Nothing here runs a trial, waits, or touches a disk: a study is told what happened, and samplers
// and pruners are asked what to do next. What they answer is a function of (options, seed, what was told, in its
// order) and of nothing else: the same record gives the same suggestion with 1 or 8 workers and after a restart.
// Whatever a sampler keeps between two calls is an acceleration and may not change an answer; what it wants to find
// again (fitted numbers, say) it writes into the trial's sampler_state, which is part of the record.
//
// Everything is minimised inside: use Study::loss, not the told values.
// Errors: a space or an answer of the user's that makes no sense throws Error. Threads: one study, one thread.
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

// One value a parameter: the number itself of a real or an integer, the index of a choice; NaN where it is not active.
using Point = std::vector<double>;
inline constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

// A parameter is active when the parent is and has one of the allowed values (numbers as in a Point).
struct Condition {
  size_t parent = 0;
  std::vector<double> allowed;
};

struct Parameter {
  enum class Kind { real, integer, categorical, ordinal };
  std::string name;
  Kind kind = Kind::real;
  double low = 0, high = 1;           // real and integer; both ends included; of choices 0 and the last index
  bool log = false;                   // search evenly in the logarithm
  double step = 0;                    // real: 0 or a lattice from low on; integer: 1 or more
  std::vector<std::string> choices;   // categorical and ordinal (in order): each the JSON text of a scalar: "relu", 64
  std::vector<Condition> conditions;  // all must hold

  bool numeric() const { return kind == Kind::real || kind == Kind::integer; }
  bool ordered() const { return kind != Kind::categorical; }
};

// A validated list of parameters; parents precede their children. And what must hold between them: a constraint names
// parameters, whose values are numbers or choices that are numbers, and does not matter where one of them is inactive.
class Space {
 public:
  // Throws Error naming the parameter, or the constraints that no point meets.
  explicit Space(std::vector<Parameter> parameters, std::vector<Comparison> constraints = {});
  size_t size() const { return parameters_.size(); }
  const Parameter& operator[](size_t i) const { return parameters_[i]; }
  bool conditional() const { return conditional_; }

  // How many values a parameter has; 0: a continuum.
  int64_t cells(size_t i) const { return cells_[i]; }
  // A value's place in [0, 1], in the logarithm where asked; what has cells has the middle of its cell. And back: the
  // nearest value there is. unit_at(value_at(u)) moves u less than a cell.
  double unit_at(size_t i, double value) const;
  double value_at(size_t i, double unit) const;
  // The value of a parameter with cells that is so many steps above its lowest.
  double value_of_cell(size_t i, double cell) const;
  // The whole point; inactive is NaN in both. Every point of the cube is a point of the space: what turns out inactive
  // is dropped.
  Point from_unit(std::span<const double> unit) const;
  std::vector<double> to_unit(const Point& point) const;

  const std::vector<Comparison>& constraints() const { return constraints_; }
  bool allows(const Point& point) const { return !violated(point); }
  // The first constraint that a point of the space does not meet; none: all are met.
  const Comparison* violated(const Point& point) const;
  // The place of the last parameter that a violated constraint names: what changes behind it mends nothing.
  size_t last_named(const Comparison& violated) const;
  // One that they allow; empty where there are none.
  const Point& allowed_point() const { return allowed_point_; }

  // Whether parameter i is active given those before it.
  bool active(size_t i, std::span<const double> point) const;
  // Brings every active value to the nearest one there is and drops inactive ones; an active parameter without a value
  // gets the middle. The result is a point of the space.
  void settle(Point& point) const;
  // Why this is not a point of the space, or not one that the constraints allow; none: it is one.
  std::optional<std::string> problem_of(const Point& point) const;

  // The number of different points that the constraints allow, when those of the space are at most kMostCounted; else
  // none.
  static constexpr int64_t kMostCounted = 1 << 20;
  std::optional<int64_t> count() const { return count_; }
  // Goes through a counted space in a fixed order: the first point, then the one after; with those that the constraints
  // do not allow. None: that was the last.
  Point first_point() const;
  std::optional<Point> point_after(const Point& point) const;

 private:
  void check_parameter(size_t i) const;
  void count_points();
  void bind_constraints();
  void find_allowed_point();
  std::optional<bool> meets(size_t constraint, const Point& point) const;
  double number_of(size_t i, double value) const;
  std::vector<Parameter> parameters_;
  std::vector<Comparison> constraints_;
  std::vector<std::vector<size_t>> constrained_;     // the parameters that each names
  std::vector<std::vector<double>> choice_numbers_;  // of the choices of those
  Point allowed_point_;
  std::vector<int64_t> cells_;
  std::vector<double> from_, to_;  // the ends of the unit interval, in the logarithm where asked
  std::optional<int64_t> count_;
  bool conditional_ = false;
};

bool same_point(const Point& a, const Point& b);
// Equal points have equal hashes; unequal ones practically never.
uint64_t hash_of(const Point& point);

// A space, a point as JSON text (docs/formats/ask-tell.md). Reading throws Error saying where.
Space read_space(std::string_view json, std::vector<Comparison> constraints = {});
Point read_point(const Space& space, std::string_view json);  // {"lr": 0.1, ...}; exactly the active parameters
std::string write_point(const Space& space, const Point& point);

// ---- studies -------------------------------------------------------------------------------------------------------

enum class Direction { minimize, maximize };

// What an earlier study knows, in the words of a new study's space (earlier_in).
struct EarlierStudy {
  std::string name;
  std::vector<std::vector<double>> units;  // in the unit cube; NaN: not active there, or not known
  std::vector<double> losses;              // one a row, to minimise; infinite: failed
};

struct StudyOptions {
  Space space;
  std::vector<Direction> directions = {Direction::minimize};
  uint64_t seed = 0;
  int64_t budget = 0;             // trials planned; 0: not known
  std::vector<Point> first = {};  // tried before anything a sampler suggests: the user's defaults, say
  std::vector<EarlierStudy> earlier = {};
  int64_t population = 8;  // of the sampler pbt
};

struct Report {
  double step = 0;  // an epoch, usually: whatever the trial counts by, growing
  double value = 0;
};

enum class TrialState { running, paused, complete, pruned, failed };

// What a sampler suggests: a point of the space, who thought of it, and why in a sentence.
struct Suggestion {
  Point point;
  std::string by;
  std::string why;
  std::vector<double> sampler_state;  // numbers the sampler wants to find again in the record
  // How much better the best is expected to become, as a part of its lead over the median; where the sampler knows.
  std::optional<double> gain = {};
  // The trial that has ended whose state it goes on from. The same point may come again then.
  std::optional<int64_t> from = {};
};

struct Trial {
  int64_t id = 0;  // its place in Study::trials
  Point point;
  TrialState state = TrialState::running;
  std::string by, why;
  std::vector<double> sampler_state;
  std::optional<double> gain;       // as suggested
  std::optional<int64_t> from;      // likewise
  std::vector<double> values;       // one an objective, as told; empty unless complete (or pruned with a value)
  std::vector<double> constraints;  // at most 0: feasible
  std::vector<Report> reports;      // of the first objective
  std::optional<double> estimate;   // its pruner's, when it last waited (Verdict)
};

// The record: only grows. A trial ends once.
class Study {
 public:
  explicit Study(StudyOptions options);
  const StudyOptions& options() const { return options_; }
  const Space& space() const { return options_.space; }
  size_t objectives() const { return options_.directions.size(); }

  // So many trials are planned from now on.
  void extend(int64_t budget);
  // Begins a trial (running) and returns its id: the number of trials before it.
  int64_t start(Suggestion suggestion);
  // A trial that was over before the study began; these come before all others.
  void prefill(Point point, TrialState state, std::vector<double> values, std::vector<double> constraints);
  // Trials begun since.
  size_t started() const { return trials_.size() - prefilled_; }
  // Ends one: complete with a value an objective, pruned (values or none), failed (none). Throws Error when there is no
  // such trial, it has ended, or the numbers are not as many as they should be. NaN counts as the worst value.
  void tell(int64_t id, TrialState state, std::vector<double> values = {}, std::vector<double> constraints = {});
  void report(int64_t id, double step, double value);                     // of a running trial; steps grow
  void pause(int64_t id, std::optional<double> estimate = std::nullopt);  // the estimate as a told value
  void resume(int64_t id);

  const std::vector<Trial>& trials() const { return trials_; }
  int64_t next_id() const { return static_cast<int64_t>(trials_.size()); }
  const std::vector<int64_t>& observed() const { return observed_; }  // ids of ended trials, in the order they ended
  const std::vector<int64_t>& open() const { return open_; }          // running and paused, ascending
  const Trial& trial(int64_t id) const;                               // throws Error when there is none

  // What to minimise: the told value with its sign; +infinity for failed trials, NaN and what was never told.
  double loss(const Trial& trial, size_t objective = 0) const;
  // Reports likewise.
  double loss(const Report& report) const;
  // What is known of the first objective, told or not: the told value, else the pruner's estimate, else the last
  // report; none: a running trial that has reported nothing, or one whose pruner says that nobody can tell. A failed
  // trial is +infinity.
  std::optional<double> known_loss(const Trial& trial) const;
  // The sum of violated constraints: 0 is feasible. Infinite of a trial that failed or whose value is no finite number:
  // what it was told of its constraints, if anything, makes it no better than one that is infeasible.
  static double violation(const Trial& trial);
  // Whether some trial has or had this point, and how many different points there were.
  bool seen(const Point& point) const { return seen_.contains(hash_of(point)); }
  // Whether it may be suggested: nobody has tried it, and the constraints between parameters allow it.
  bool is_new(const Point& point) const { return !seen(point) && space().allows(point); }
  int64_t different_points() const { return static_cast<int64_t>(seen_.size()); }

  // The numbers of the next trial, for one purpose: "tpe", "sobol".
  RandomStream random(std::string_view purpose) const;
  RandomKey key(std::string_view purpose) const;  // the same for all trials

 private:
  Trial& open_trial(int64_t id);
  void close(Trial& trial);
  StudyOptions options_;
  std::vector<Trial> trials_;
  std::vector<int64_t> observed_, open_;
  std::unordered_set<uint64_t> seen_;
  size_t prefilled_ = 0;
};

// The complete trials that are worth keeping, ascending: with one objective the best, the first of equals; with several
// those that no other is better than in all of them. Those that meet the constraints, if there are any; else those
// that violate them least. Values that are no finite numbers are worth nothing.
std::vector<int64_t> best_trials(const Study& study);

// Parameters are the same by their names: a widened range and an added choice keep what was tried, a trial with a value
// that is not in the space any more is left out, and a new parameter is unknown in all of them.
EarlierStudy earlier_in(const Space& space, const Study& then, std::string name);

// ---- samplers ------------------------------------------------------------------------------------------------------

// One sampler serves one study, which grows between calls; a new sampler given the same study answers the same.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Suggestion suggest(const Study& study) = 0;
  // False: not before more of the open trials have ended.
  virtual bool ready(const Study&) const { return true; }
  // Whether trials yet to come may go on from this one, which has ended.
  virtual bool needs(const Study&, int64_t) const { return false; }
};

struct SamplerMaker {
  const char* name;
  std::unique_ptr<Sampler> (*make)();
  const char* help;
  bool one_objective = false;  // knows no more than the first
};
std::span<const SamplerMaker> samplers();
// Throws Error with the names there are, and where the sampler does not know so many objectives.
std::unique_ptr<Sampler> make_sampler(std::string_view name, size_t objectives = 1);

// The next trial's point: first those of the options, then the sampler's; in a finite space never one that was tried
// while another is left.
Suggestion suggest_next(const Study& study, Sampler& sampler);

// Of the best value's lead over the median: who expects to gain less expects next to nothing.
inline constexpr double kLittleGain = 0.01;

// Why another trial is not expected to gain much; none: it may, or nobody knows. A function of the record.
std::optional<std::string> little_to_gain(const Study& study);

// ---- pruners ------------------------------------------------------------------------------------------------------

struct PrunerOptions {
  std::string name = "none";
  double min_resource = 1;  // steps, as reported
  double max_resource = 0;  // steps of a whole trial; pruners with rungs need it
  double reduction = 3;     // of the trials on a rung one in so many goes on
};

enum class PruneDecision { keep_running, pause, prune };
struct Verdict {
  PruneDecision decision = PruneDecision::keep_running;
  std::string why;
  // What the trial would end with, as a told value, for samplers; NaN: nobody can tell, and they should learn nothing
  // from its reports.
  std::optional<double> estimate = {};
};
// A paused trial worth going on with.
struct Promotion {
  int64_t id = 0;
  std::string why;
};

// As a sampler: one study, and a function of its record.
class Pruner {
 public:
  virtual ~Pruner() = default;
  // What becomes of a running trial after its newest report.
  virtual Verdict judge(const Study& study, const Trial& trial) = 0;
  // The paused trial to go on with instead of a new one; none: start a new one. `no_new`: there will be no new ones,
  // so whatever still deserves to go on is named now, and none means the study is over but for what runs.
  virtual std::optional<Promotion> promote(const Study& study, bool no_new);
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

// A member of a population that trains side by side: its options now, and how well it does (lower is better).
struct Member {
  Point point;
  double loss = 0;
};
// Whose state and options member `me` goes on with: its own (from == me), or another's, changed a little.
struct PopulationStep {
  size_t from = 0;
  Point point;
  std::string why;
};
PopulationStep population_step(const Space& space, std::span<const Member> members, size_t me, RandomStream random);

// ---- what a study says about its parameters ------------------------------------------------------------------------

// Shares of the variance of an objective over the space, as a model of the trials sees it (importance.cpp).
struct Importance {
  struct Pair {
    size_t first = 0, second = 0;
    double share = 0;  // of what the two do together beyond what each does alone
  };
  std::vector<double> alone;  // one a parameter; together at most 1
  std::vector<Pair> pairs;    // the largest first; among the parameters that matter most
  int64_t trials = 0;         // it was found from
};
// A function of the record. None: too few trials have a value.
std::optional<Importance> importance_of(const Study& study, size_t objective = 0);

// ---- the conversation ----------------------------------------------------------------------------------------------

// One side of the conversation of docs/formats/ask-tell.md: a line comes in, a line goes out. Whatever comes in gets
// exactly one answer; what can not be understood gets {"error": ..., "hint": ...} and changes nothing.
class AskTell {
 public:
  // The answer, without a newline; none: the other side has taken its leave.
  std::optional<std::string> answer(std::string_view line);

 private:
  struct Request;
  std::string dispatch(const Request& request);
  std::string init(const Request& request);
  std::string ask(const Request& request);
  std::string tell(const Request& request);
  std::string report(const Request& request);
  Study& study();

  std::optional<Study> study_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Pruner> pruner_;
};

}  // namespace sinew::tune
