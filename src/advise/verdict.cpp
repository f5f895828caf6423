#include <algorithm>
#include <array>
#include <cmath>

#include "advise/advise.h"
#include "advise/parts.h"
#include "advise/remedies.h"
#include "base/check.h"
#include "base/error.h"
#include "base/printable.h"

namespace sinew::advise {
namespace {

constexpr double kWorthSaying = 0.25;  // a part with this share is a limit beside the largest one

}  // namespace

std::string_view name_of(Limit limit) {
  constexpr std::array<std::string_view, static_cast<size_t>(Limit::starved) + 1> kNames = {
      "input-bound",     "compute-bound",   "memory-bandwidth-bound", "memory-capacity-bound", "communication-bound",
      "straggler-bound", "imbalance-bound", "overhead-bound",         "checkpoint-bound",      "starved"};
  return kNames.at(static_cast<size_t>(limit));
}

Verdict judge(const Record& record, const spec::Job* job) {
  SINEW_CHECK(is_record(record), record.time.total());
  const Spent of_lanes = spent(record);
  Verdict verdict{.parts = parts_of(record, of_lanes)};
  verdict.experiments = record.experiments;
  verdict.operators = record.operators;
  verdict.peak_flops = record.peak_flops;
  verdict.bandwidth = record.bandwidth;
  for (const Part& part : verdict.parts) {
    if (verdict.limits.empty() || part.share >= kWorthSaying) verdict.limits.push_back(part.limit);
  }
  const double passes = record.time[Stage::forward] + record.time[Stage::backward];
  if (record.model && record.model->flops > 0 && passes > 0) {
    verdict.flops_in_passes = record.model->flops / passes;
    verdict.flops_in_all = record.model->flops / of_lanes.all;
  }
  verdict.model = record.model;
  verdict.remedies = remedies_of(record, of_lanes, verdict.parts, job);
  return verdict;
}

std::optional<Record> between(const Record& earlier, const Record& later) {
  if (earlier.time.lanes != later.time.lanes) return std::nullopt;
  Record record = later;
  for (size_t i = 0; i < kStages; ++i) {
    record.time.seconds[i] = std::max(0.0, later.time.seconds[i] - earlier.time.seconds[i]);
  }
  record.resources = sinew::between(earlier.resources, later.resources);
  record.loading = sinew::between(earlier.loading, later.loading);
  if (record.model && earlier.model) {
    record.model->flops -= earlier.model->flops;
    record.model->steps -= earlier.model->steps;
  } else {
    record.model.reset();
  }
  return is_record(record) ? std::optional(std::move(record)) : std::nullopt;
}

Record record_of(const rundir::Outcome& outcome, const std::string& run) {
  if (!outcome.folds.empty())
    throw Error("ADVISE_NO_RECORD", run + " is a cross-validation, whose folds are runs of their own",
                "sinew advise " + shell_quoted(run + "/" + outcome.folds[0].run));
  Record record;
  if (outcome.time) record.time = *outcome.time;
  if (outcome.resources) record.resources = *outcome.resources;
  if (outcome.loading) record.loading = *outcome.loading;
  record.shares = outcome.shares;
  record.experiments = outcome.experiments;
  record.model = outcome.model;
  record.steps = outcome.steps;
  record.epochs = outcome.epochs;
  if (!outcome.time || !outcome.resources || !is_record(record))
    throw Error("ADVISE_NO_RECORD", run + " has no record of where its time went",
                "a run tells it some seconds after its first step; an older version did not");
  return record;
}

}  // namespace sinew::advise
