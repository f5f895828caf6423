#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "advise/advise.h"
#include "base/check.h"
#include "base/error.h"

namespace sinew::advise {
namespace {

constexpr double kWorthSaying = 0.25;  // a part with this share is a limit beside the largest one
constexpr double kWorthTrying = 0.05;  // a remedy that cannot gain more is not named

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
  return text;
}

// The lanes' time after the start of the run, without the time in which they could not run.
struct Spent {
  double all = 0;      // seconds of all lanes
  double starved = 0;  // seconds of all lanes
  double quota = 0;    // the part of `starved` for which a CPU quota was used up
  StageTimes time;     // `idle` without the start
};

// The start is the time of lane 0 before the first step; the other lanes are idle meanwhile.
//
// A stage also lasts longer if its lane does not get a core, and nothing says which stages were affected. Threads of
// this worker may also wait for each other. So the lanes were starved at most for the CPU time that this worker could
// have had and did not use.
Spent spent(const StageTimes& time, const ResourceUse& resources) {
  Spent spent{.time = time};
  const double start = time[Stage::startup], lanes = static_cast<double>(time.lanes);
  spent.time[Stage::startup] = 0;
  spent.time[Stage::idle] = std::max(0.0, time[Stage::idle] - start * (lanes - 1));
  spent.all = spent.time.total();
  const double unused = std::max(0.0, resources.cores * time.total() / lanes - resources.cpu_seconds);
  const double queued = std::min(resources.queued_seconds, unused);
  spent.starved = std::min(spent.all, queued + resources.throttled_seconds);
  spent.quota = std::min(spent.starved, resources.throttled_seconds);
  return spent;
}

std::vector<Part> parts_of(const Spent& spent) {
  const StageTimes& time = spent.time;
  const double runs = 1 - spent.starved / spent.all;  // the part of the time in which the lanes ran
  const std::string whole = " of " + seconds_text(spent.all);
  std::vector<Part> parts;
  const auto add = [&](Limit limit, double seconds, const std::string& what) {
    parts.push_back({limit, seconds / spent.all * runs, what + " " + seconds_text(seconds) + whole});
  };
  // Without other workers, a reduction is work of this worker on its own sums.
  const bool alone = time[Stage::member_wait] <= 0;
  const double sums = time[Stage::reduction];
  add(Limit::input, time[Stage::data_wait], "the lanes waited for samples");
  add(Limit::compute,
      time[Stage::forward] + time[Stage::backward] + time[Stage::evaluation] + time[Stage::optimizer] +
          (alone ? sums : 0),
      "the model and the optimizer took");
  add(Limit::communication, time[Stage::member_wait] + (alone ? 0 : sums), "sums of other workers took");
  add(Limit::overhead, time[Stage::loop] + time[Stage::digest] + time[Stage::idle],
      "the loop between the steps, and lanes without work, took");
  add(Limit::checkpoints, time[Stage::checkpoint], "copies of the state took");
  parts.push_back(
      {Limit::starved, spent.starved / spent.all,
       "other programs had the cores, or the CPU quota was used up, for " + seconds_text(spent.starved) + whole});
  std::ranges::stable_sort(parts, std::ranges::greater(), &Part::share);
  return parts;
}

double share_of(const std::vector<Part>& parts, Limit limit) {
  return std::ranges::find(parts, limit, &Part::limit)->share;
}

std::vector<Remedy> remedies_of(const std::vector<Part>& parts, const Spent& spent, const ResourceUse& resources) {
  std::vector<Remedy> remedies;
  // If a share of the time vanishes, the rest takes 1 - share of it.
  const auto add = [&](double share, const std::string& what, bool keeps_result = true) {
    if (share >= kWorthTrying && share < 1) remedies.push_back({what, share / (1 - share), keeps_result});
  };
  const auto lanes = static_cast<double>(spent.time.lanes);
  add(share_of(parts, Limit::input), "read samples faster: more data.prefetch_threads, smaller files, a faster disk");
  add(share_of(parts, Limit::communication),
      "wait less for other workers: a faster network, fewer workers, or no slow one among them");
  add(share_of(parts, Limit::overhead), "larger steps: a higher trainer.batch_size", false);
  add(share_of(parts, Limit::checkpoints), "save less often: a longer checkpoint.interval");
  add(spent.quota / spent.all, "raise the CPU quota of the container");
  add((spent.starved - spent.quota) / spent.all, "end the other programs on this machine");
  if (resources.cores >= lanes + 1) add(1 - lanes / resources.cores, "use all cores: a higher trainer.lanes");
  std::ranges::stable_sort(remedies, std::ranges::greater(), &Remedy::at_most);
  return remedies;
}

}  // namespace

std::string_view name_of(Limit limit) {
  constexpr std::array<std::string_view, 6> kNames = {"input-bound",    "compute-bound",    "communication-bound",
                                                      "overhead-bound", "checkpoint-bound", "starved"};
  return kNames.at(static_cast<size_t>(limit));
}

Verdict judge(const StageTimes& time, const ResourceUse& resources) {
  SINEW_CHECK(time.lanes > 0, time.lanes);
  const Spent of_lanes = spent(time, resources);
  SINEW_CHECK(of_lanes.all > 0, of_lanes.all);
  Verdict verdict{.parts = parts_of(of_lanes)};
  for (const Part& part : verdict.parts) {
    if (verdict.limits.empty() || part.share >= kWorthSaying) verdict.limits.push_back(part.limit);
  }
  verdict.remedies = remedies_of(verdict.parts, of_lanes, resources);
  return verdict;
}

Verdict judge(const rundir::Outcome& outcome, const std::string& run) {
  // The fields come from a file, which may hold any numbers.
  const bool usable = outcome.time && outcome.resources && outcome.time->lanes > 0 &&
                      std::ranges::all_of(outcome.time->seconds, [](double one) { return one >= 0; }) &&
                      std::isfinite(outcome.time->total()) &&
                      outcome.time->total() > outcome.time->lanes * (*outcome.time)[Stage::startup];
  if (!usable)
    throw Error("ADVISE_NO_RECORD", run + " has no record of where its time went",
                "advice is about a finished training: a run that made steps in its last attempt, with this version");
  return judge(*outcome.time, *outcome.resources);
}

}  // namespace sinew::advise
