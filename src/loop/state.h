// Part of loop.h: defines the training state except its tensors.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "data/data.h"
#include "forecast/forecast.h"
#include "loop/control.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::loop {

// The history of evaluations, from which early stopping, best checkpoints and the objective are decided.
struct EvaluationState {
  // The metric of `best`. Empty if there is no best value yet, or if an older version, which did not save the name,
  // wrote the checkpoint.
  std::string monitor;
  std::optional<double> best;  // best value of checkpoint.monitor
  Step best_step;
  std::vector<Step> best_steps;  // steps that were the best when they were reached, newest last; old ones are dropped
  // The best value of early_stopping.monitor. It equals `best` if both monitors are the same metric.
  report::BestSoFar patience;
  report::Metrics last;  // metrics of the newest evaluation
  bool objective_met = false;
  std::string stop;  // why training ends; empty while it continues
};

// What the evaluations so far promise for the end of the run. It decides nothing, so it is no part of the digest.
struct Outlook {
  std::string metric;  // report::monitored_metric of the job
  forecast::Evaluations evaluations;
  std::vector<rundir::MetricForecast> made;   // for report.json
  std::optional<forecast::BestValue> newest;  // not saved
  bool told = false;                          // the user knows that probably no better evaluation comes
  std::string short_budget;                   // the limit of which the user knows that it will not do
};

// A sample that all members leave out, because it does not decode.
struct LeftOut {
  data::Split split = data::Split::train;
  int64_t sample = 0;
  auto operator<=>(const LeftOut&) const = default;
};

// Everything that determines the next step, besides the trainer's tensors.
struct State {
  Step step;
  data::Cursor cursor;
  int64_t samples = 0, tokens = 0;  // counts of committed steps, since step 0
  uint64_t seed = 0;
  ControlLog control;
  EvaluationState evaluation;
  Outlook outlook;
  std::set<LeftOut> left_out;
};

// The entries of a checkpoint's state.json besides the state itself.
struct StateFacts {
  Digest data_digest;        // digest of the training data; a resume refuses other data
  std::string resolved_job;  // the text of resolved.yaml
  std::string model;         // identity of the model; a resume refuses another model
  report::Metrics window;    // sums of the training metrics since the last line of metrics.jsonl
  // sums of the training metrics since the last evaluation, because train/loss can be monitored
  report::Metrics evaluation_window;
  double seconds = 0;   // training time of the run, over all its attempts
  double joules = 0;    // energy that counters have measured in that time; 0 if none do
  std::string records;  // for a joiner: records that are perhaps not in the files yet; "" in a checkpoint
};

// The text that the digest of the state covers, in two parts: the counts of the steps so far, and the decisions of
// users and evaluations. A trainer may put counts of its own between them.
std::string counts_text(const State& state);
std::string decisions_text(const State& state);

// state.json as a document. A trainer may add fields of its own. read_document throws exceptions of the JSON library,
// and Error if the document contradicts itself.
nlohmann::json state_document(const State& state, const StateFacts& facts);
void read_document(const nlohmann::json& document, State& state, StateFacts& facts);

}  // namespace sinew::loop
