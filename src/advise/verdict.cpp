#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "advise/advise.h"
#include "base/check.h"
#include "base/error.h"
#include "base/printable.h"

namespace sinew::advise {
namespace {

constexpr double kWorthSaying = 0.25;    // a part with this share is a limit beside the largest one
constexpr double kWorthTrying = 0.05;    // a remedy that cannot gain more is not named
constexpr double kMostShare = 0.99;      // of a part that takes all the time, the gain has no bound
constexpr double kLeastSeconds = 0.001;  // a run that took less has made no step

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
  return text;
}

// The time of all lanes between the start and the end of the run, in seconds.
struct Spent {
  double all = 0;
  double starved = 0;  // in which the lanes could not run
  double quota = 0;    // the part of `starved` in which a CPU quota was used up
};

double between_start_and_end(const StageTimes& time) {
  return time.total() - time[Stage::startup] - time[Stage::finish];
}

// A stage also lasts longer if its lane has no core, and nothing says which stages did. Threads of this worker may also
// wait for each other. So other programs took at most the CPU time that this worker could have had and did not use. Nor
// could the lanes be without a core while the worker used CPU time.
Spent spent(const StageTimes& time, const ResourceUse& resources) {
  Spent spent{.all = between_start_and_end(time)};
  const double duration = time.total() / static_cast<double>(time.lanes);
  const double unused = std::max(0.0, resources.cores * duration - resources.cpu_seconds);
  const double most = std::max(0.0, spent.all - resources.cpu_seconds);
  spent.quota = std::min(most, resources.throttled_seconds);
  spent.starved = std::min(most, spent.quota + std::min(resources.queued_seconds, unused));
  return spent;
}

std::vector<Part> parts_of(const StageTimes& time, const Spent& spent) {
  const double runs = 1 - spent.starved / spent.all;  // the part of the time in which the lanes ran
  const std::string whole = " of " + seconds_text(spent.all);
  std::vector<Part> parts;
  const auto add = [&](Limit limit, double seconds, const std::string& what) {
    parts.push_back({limit, seconds / spent.all, what + " " + seconds_text(seconds) + whole});
  };
  // Without other workers, a reduction is work of this worker on its own sums.
  const bool alone = time[Stage::member_wait] <= 0;
  const double sums = time[Stage::reduction];
  const double model = time[Stage::forward] + time[Stage::backward] + time[Stage::evaluation] + time[Stage::optimizer];
  add(Limit::input, time[Stage::data_wait] * runs, "the lanes waited for samples");
  add(Limit::compute, (model + (alone ? sums : 0)) * runs, "the model and the optimizer took");
  add(Limit::communication, (time[Stage::member_wait] + (alone ? 0 : sums)) * runs, "sums of other workers took");
  add(Limit::imbalance, time[Stage::imbalance] * runs, "lanes waited for the other lanes");
  add(Limit::overhead, (time[Stage::loop] + time[Stage::digest]) * runs, "work between the steps took");
  add(Limit::checkpoints, time[Stage::checkpoint] * runs, "copies of the state took");
  add(Limit::starved, spent.starved, "threads had no core, or the CPU quota was used up, for");
  std::ranges::stable_sort(parts, std::ranges::greater(), &Part::share);
  return parts;
}

double share_of(const std::vector<Part>& parts, Limit limit) {
  return std::ranges::find(parts, limit, &Part::limit)->share;
}

std::vector<Remedy> remedies_of(const std::vector<Part>& parts, const Spent& spent) {
  std::vector<Remedy> remedies;
  // If a share of the time vanishes, the rest takes 1 - share of it.
  const auto add = [&](double share, const std::string& what, bool keeps_result = true) {
    share = std::min(share, kMostShare);
    if (share >= kWorthTrying) remedies.push_back({what, share / (1 - share), keeps_result});
  };
  add(share_of(parts, Limit::input), "read samples faster: more data.prefetch.threads, smaller files, a faster disk");
  add(share_of(parts, Limit::communication),
      "wait less for other workers: a faster network, fewer workers, or no slow one among them");
  add(share_of(parts, Limit::imbalance), "a number of trainer.lanes that divides trainer.shards");
  add(share_of(parts, Limit::overhead), "larger steps: a higher trainer.batch_size", false);
  add(share_of(parts, Limit::checkpoints), "save less often: a longer checkpoint.interval");
  add(spent.quota / spent.all, "raise the CPU quota of the container");
  add((spent.starved - spent.quota) / spent.all, "end other programs on this machine, or give the run fewer lanes");
  std::ranges::stable_sort(remedies, std::ranges::greater(), &Remedy::at_most);
  return remedies;
}

bool is_amount(double value) {
  return std::isfinite(value) && value >= 0;
}

// The numbers come from a file, which may hold any.
bool is_record(const StageTimes& time, const ResourceUse& resources) {
  return time.lanes > 0 && std::ranges::all_of(time.seconds, is_amount) && std::isfinite(time.total()) &&
         between_start_and_end(time) >= kLeastSeconds && is_amount(resources.cores) &&
         is_amount(resources.cpu_seconds) && is_amount(resources.queued_seconds) &&
         is_amount(resources.throttled_seconds);
}

}  // namespace

std::string_view name_of(Limit limit) {
  constexpr std::array<std::string_view, 7> kNames = {"input-bound",     "compute-bound",  "communication-bound",
                                                      "imbalance-bound", "overhead-bound", "checkpoint-bound",
                                                      "starved"};
  return kNames.at(static_cast<size_t>(limit));
}

Verdict judge(const StageTimes& time, const ResourceUse& resources) {
  SINEW_CHECK(is_record(time, resources), time.total());
  const Spent of_lanes = spent(time, resources);
  Verdict verdict{.parts = parts_of(time, of_lanes)};
  for (const Part& part : verdict.parts) {
    if (verdict.limits.empty() || part.share >= kWorthSaying) verdict.limits.push_back(part.limit);
  }
  verdict.remedies = remedies_of(verdict.parts, of_lanes);
  return verdict;
}

Verdict judge(const rundir::Outcome& outcome, const std::string& run) {
  if (!outcome.folds.empty())
    throw Error("ADVISE_NO_RECORD", run + " is a cross-validation, whose folds are runs of their own",
                "sinew advise " + shell_quoted(run + "/" + outcome.folds[0].run));
  if (!outcome.time || !outcome.resources || !is_record(*outcome.time, *outcome.resources))
    throw Error("ADVISE_NO_RECORD", run + " has no record of where its time went",
                "advice is about a finished training: a run that made steps in its last attempt, with this version");
  return judge(*outcome.time, *outcome.resources);
}

}  // namespace sinew::advise
