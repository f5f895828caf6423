// Hyperparameter search: search spaces, studies, samplers and pruners.
//
// The code in tune/ runs no trial, never waits and touches no disk. The caller runs the trials and reports to a Study
// what happened. Samplers then suggest the next trial, and pruners decide which trials are worth continuing. Their
// results are a pure function of three things: the options, the seed, and the trial history of the study in the order
// of its events. The same history gives the same suggestion with 1 or 8 workers and after a restart. A sampler may keep
// data between two calls only to save time. Data that later suggestions depend on, such as fitted kernel parameters,
// goes into the `sampler_state` of a suggestion, which is part of the trial history.
//
// The code minimises: it compares losses (Study::loss), never the values as the caller reported them.
// Errors: an invalid space, request or value throws Error; its codes begin with TUNE_ or ASK_TELL_.
// Threads: one thread at a time may use a Study with its sampler and pruner.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tune/space.h"
#include "tune/study.h"

namespace sinew::tune {

// ---- samplers ------------------------------------------------------------------------------------------------------

// Suggests trials. A sampler serves one study, which grows between calls. A new sampler for the same study gives the
// same suggestions.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Suggestion suggest(const Study& study) = 0;
  // Returns false if the sampler cannot suggest a trial before more of the open trials have ended.
  virtual bool ready(const Study&) const { return true; }
  // Returns whether a later trial may start from the final state of this ended trial. If so, its checkpoint must be
  // kept.
  virtual bool needs(const Study&, int64_t) const { return false; }
};

struct SamplerMaker {
  const char* name;
  std::unique_ptr<Sampler> (*make)();
  const char* help;
  bool one_objective = false;  // the sampler cannot search for several objectives
};
std::span<const SamplerMaker> samplers();
// Throws Error if there is no sampler of this name, or if it does not support that many objectives.
std::unique_ptr<Sampler> make_sampler(std::string_view name, size_t objectives = 1);

// Suggests the next trial: the points of StudyOptions::initial_points, then the best points of earlier studies, then
// whatever the sampler suggests. Never repeats a point of a finite space while an untried one is left. Suggested points
// satisfy the constraints between parameters, and real numbers are rounded to a few significant digits.
Suggestion suggest_next(const Study& study, Sampler& sampler);

// An expected gain below this fraction of the best value's lead over the median counts as negligible.
inline constexpr double kLittleGain = 0.01;

// Returns a sentence that says why another trial is expected to gain next to nothing. Returns nullopt if another trial
// may gain something, or if the samplers give no estimate. The result depends only on the trial history.
std::optional<std::string> little_to_gain(const Study& study);

// ---- pruners ------------------------------------------------------------------------------------------------------

struct PrunerOptions {
  std::string name = "none";
  double min_resource = 1;  // the first step at which a trial may be paused or pruned
  double max_resource = 0;  // steps of a training that runs to its end, 0 if unknown; curve, asha and hyperband need it
  double reduction = 3;     // one in this many of the trials on a rung is promoted
};

enum class PruneDecision { keep_running, pause, prune };

// What a pruner decides about a running trial.
struct Verdict {
  PruneDecision decision = PruneDecision::keep_running;
  std::string why;  // the reason, one sentence for the user
  // The final value that the pruner expects, in the objective's own sign. Samplers learn from it. NaN means that the
  // reports predict nothing, so that samplers must ignore them. Without an estimate, samplers use the last report.
  std::optional<double> estimate = {};
};

// The paused trial to resume next.
struct Promotion {
  int64_t id = 0;
  std::string why;
};

// Stops unpromising trials early. Like a sampler, a pruner serves one study, and its decisions depend only on the trial
// history.
class Pruner {
 public:
  virtual ~Pruner() = default;
  // Decides about a running trial after its newest report.
  virtual Verdict judge(const Study& study, const Trial& trial) = 0;
  // Returns the paused trial that the caller should resume before it starts a new one, or nullopt if it should start a
  // new one. With `no_new` the caller will start no new trials. The pruner then names, one after another, all trials
  // that still deserve to continue; nullopt means that the study is over once the running trials end.
  virtual std::optional<Promotion> promote(const Study& study, bool no_new);
  // Returns whether judge() ever pauses a trial.
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

// How much of an objective's variance over the space each parameter explains, by functional analysis of variance
// (importance.cpp).
struct Importance {
  struct Pair {
    size_t first = 0, second = 0;
    double share = 0;  // the interaction of the two parameters, without the main effects
  };
  std::vector<double> alone;  // the main effect of each parameter; their sum is at most 1
  std::vector<Pair> pairs;    // the largest first; only pairs of the most important parameters
  int64_t trials = 0;         // the number of trials behind the analysis
};
// The result depends only on the trial history. Returns nullopt if too few trials have a finite loss.
std::optional<Importance> importance_of(const Study& study, size_t objective = 0);

// ---- ask and tell --------------------------------------------------------------------------------------------------

// The server side of the ask-tell protocol (docs/formats/ask-tell.md). Every request line gets exactly one response
// line. An invalid request gets {"error": ..., "code": ..., "hint": ...} and changes nothing.
class AskTell {
 public:
  // Returns the response to one request, without a newline, or nullopt if the request is "quit".
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
// Answers each line of `in` with a line on `out`, until "quit" or the end. Returns false if `out` fails, for example
// because the program that reads it has ended.
bool converse(std::istream& in, std::ostream& out);

}  // namespace sinew::tune
