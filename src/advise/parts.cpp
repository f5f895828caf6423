#include "advise/parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/short_number.h"

namespace sinew::advise {
namespace {

constexpr double kLeastSeconds = 0.001;  // a run that took less has made no step
// A member with less than this part of the fastest one's speed is slow. Cores of one machine differ by less.
constexpr double kSlowMember = 0.75;
constexpr double kFaultsThatMatter = 20;  // pages read from a disk in a second; below, nothing has waited for memory

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
  return text;
}

double between_start_and_end(const StageTimes& time) {
  return time.total() - time[Stage::startup] - time[Stage::finish] - time[Stage::test];
}

// A loader waits for the disk while it reads; otherwise it needs a core.
double cost_of(const LoadUse& loading, LoadStage stage) {
  return stage == LoadStage::read ? std::max(loading.read_seconds, loading[stage]) : loading[stage];
}

double cost_of(const LoadUse& loading) {
  double cost = 0;
  for (size_t i = 0; i < kLoadStages; ++i) cost += cost_of(loading, static_cast<LoadStage>(i));
  return cost;
}

std::string evidence_of_loading(const LoadUse& loading) {
  const double cost = cost_of(loading);
  if (cost <= 0 || loading.samples == 0) return "";
  const LoadStage stage = slowest_stage(loading);
  char text[96];
  std::snprintf(text, sizeof text, "; a sample took %.2f ms to load, %s of it to %s",
                1e3 * cost / static_cast<double>(loading.samples), percent(cost_of(loading, stage) / cost).c_str(),
                std::string(name_of(stage)).c_str());
  const bool waits = stage == LoadStage::read && loading.read_seconds > 2 * loading[stage];
  return text + std::string(waits ? ", mostly waiting" : "");
}

std::string rate(double bytes, double seconds) {
  return short_count(bytes / seconds) + "B/s";
}

// What the run read from files. Data that lie in memory are not read again.
std::string evidence_of_reading(const Record& record) {
  const auto bytes = static_cast<double>(record.loading.read_bytes);
  return bytes > 0 ? "; read " + rate(bytes, record.seconds()) : "";
}

// What this worker sent, beside the sums of the gradients that each worker needs once a step.
std::string evidence_of_network(const Record& record) {
  const auto sent = static_cast<double>(record.resources.network.sent_bytes),
             received = static_cast<double>(record.resources.network.received_bytes);
  if (sent + received <= 0) return "";
  std::string text = "; sent ";
  const double gradients =
      record.model ? static_cast<double>(record.model->gradient_bytes) * static_cast<double>(record.model->steps) : 0;
  if (gradients > 0) {
    char times[48];
    std::snprintf(times, sizeof times, "%.2f times the gradients a step, ", sent / gradients);
    text += times;
  }
  return text + rate(sent, record.seconds()) + ", received " + rate(received, record.seconds());
}

std::string evidence_of_shares(const std::vector<double>& shares) {
  const double fastest = std::ranges::max(shares);
  std::string text = "; the workers' speeds are as";
  for (const double share : shares) {
    char one[32];
    std::snprintf(one, sizeof one, " %.2f", share / fastest);
    text += one;
  }
  return text;
}

// The stage of computing that took most.
Stage longest_of_model(const StageTimes& time) {
  constexpr std::array kOfModel = {Stage::forward, Stage::backward, Stage::evaluation, Stage::optimizer};
  return *std::ranges::max_element(kOfModel, {}, [&](Stage stage) { return time[stage]; });
}

bool is_amount(double value) {
  return std::isfinite(value) && value >= 0;
}

bool is_model_use(const rundir::ModelUse& use) {
  return is_amount(use.flops_per_step) && is_amount(use.flops) && use.gradient_bytes >= 0 && use.steps >= 0 &&
         std::ranges::all_of(use.layers, [](const rundir::LayerUse& layer) {
           return is_amount(layer.flops) && is_amount(layer.bytes) && layer.calls >= 0 && layer.parameters >= 0;
         });
}

}  // namespace

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

double Record::seconds() const {
  return between_start_and_end(time) / static_cast<double>(time.lanes);
}

LoadStage slowest_stage(const LoadUse& loading) {
  LoadStage slowest = LoadStage::read;
  for (size_t i = 1; i < kLoadStages; ++i) {
    const auto stage = static_cast<LoadStage>(i);
    if (cost_of(loading, stage) > cost_of(loading, slowest)) slowest = stage;
  }
  return slowest;
}

double straggling(const std::vector<double>& shares) {
  if (shares.size() < 2) return 0;
  const double fastest = std::ranges::max(shares);
  if (fastest <= 0 || std::ranges::min(shares) >= kSlowMember * fastest) return 0;
  return 1 - std::accumulate(shares.begin(), shares.end(), 0.0) / (fastest * static_cast<double>(shares.size()));
}

std::optional<StepRatio> ratio_of(const Record& record, Condition condition) {
  const auto found = std::ranges::find(record.experiments, condition, &ConditionTime::condition);
  if (found == record.experiments.end() || found->steps <= 0) return std::nullopt;
  const StepRatio& ratio = found->ratio;
  constexpr double kMost = 1e9;  // the figures come from a file, which may hold any
  const bool possible =
      ratio.low > 0 && ratio.low <= ratio.expected && ratio.expected <= ratio.high && ratio.high <= kMost;
  return possible ? std::optional(ratio) : std::nullopt;
}

double waiting_for_memory(const Record& record) {
  constexpr double kNoise = 1.03;
  const auto ratio = ratio_of(record, Condition::memory_busy);
  if (!ratio || ratio->low < kNoise) return 0;
  return std::clamp(ratio->expected - 1, 0.0, 1.0);
}

// A stage also lasts longer if its lane has no core, and nothing says which stages did. The lanes could not be without
// a core while the worker used CPU time.
Spent spent(const Record& record) {
  const ResourceUse& used = record.resources;
  Spent spent{.all = between_start_and_end(record.time)};
  const auto lanes = static_cast<double>(record.time.lanes);
  const double duration = record.seconds();
  const double most = std::max(0.0, spent.all - used.cpu_seconds);
  spent.quota = std::min(most, used.throttled_seconds);
  spent.starved = std::min(most, waiting_seconds(used, duration));
  if (static_cast<double>(used.major_faults) >= kFaultsThatMatter * duration)
    spent.memory =
        std::min(spent.all - spent.starved, used.memory_stalled_seconds + (lanes - 1) * used.memory_stopped_seconds);
  return spent;
}

std::vector<Part> parts_of(const Record& record, const Spent& spent) {
  const StageTimes& time = record.time;
  const std::string whole = " of " + seconds_text(spent.all);
  std::vector<Part> parts;
  const auto add = [&](Limit limit, double seconds, const std::string& what, const std::string& more = "",
                       std::string_view stage = "") {
    parts.push_back(
        {limit, seconds / spent.all, what + " " + seconds_text(seconds) + whole + more, std::string(stage)});
  };
  // Without other workers, a reduction is work of this worker on its own sums.
  const bool alone = time[Stage::member_wait] <= 0;
  const double runs = spent.runs(), sums = time[Stage::reduction], lost = straggling(record.shares);
  const double model = time[Stage::forward] + time[Stage::backward] + time[Stage::evaluation] + time[Stage::optimizer] +
                       (alone ? sums : 0);
  // while one member is slow, the others wait for its results
  const double slow_wait = lost > 0 ? time[Stage::member_wait] : 0;
  const double exchange = time[Stage::member_wait] - slow_wait + (alone ? 0 : sums);
  add(Limit::input, time[Stage::data_wait] * runs, "the lanes waited for samples",
      evidence_of_loading(record.loading) + evidence_of_reading(record),
      cost_of(record.loading) > 0 ? name_of(slowest_stage(record.loading)) : "");
  const double computing = model * (1 - lost) * runs, memory = waiting_for_memory(record);
  const double calls = computing * cost_of_calls(record), work = computing - calls;
  add(Limit::compute, work * (1 - memory), "the model and the optimizer took", "", name_of(longest_of_model(time)));
  add(Limit::bandwidth, work * memory, "waiting for the memory that the cores share took",
      memory > 0
          ? "; " + text_of(*std::ranges::find(record.experiments, Condition::memory_busy, &ConditionTime::condition))
          : "");
  add(Limit::memory, spent.memory, "threads waited for memory",
      "; " + std::to_string(record.resources.major_faults) + " pages were read from a disk again");
  add(Limit::communication, exchange * runs, "sums of other workers took", evidence_of_network(record));
  add(Limit::straggler, (model * lost + slow_wait) * runs, "work that a slow worker leaves to this one took",
      lost > 0 ? evidence_of_shares(record.shares) : "");
  add(Limit::imbalance, time[Stage::imbalance] * runs, "lanes waited for the other lanes");
  add(Limit::overhead, calls + (time[Stage::loop] + time[Stage::digest]) * runs,
      calls > 0 ? "calls of operators, and work between the steps, took" : "work between the steps took");
  add(Limit::checkpoints, time[Stage::checkpoint] * runs, "copies of the state took");
  add(Limit::starved, spent.starved, "threads had no core, or the CPU quota was used up, for");
  std::ranges::stable_sort(parts, std::ranges::greater(), &Part::share);
  return parts;
}

double share_of(const std::vector<Part>& parts, Limit limit) {
  return std::ranges::find(parts, limit, &Part::limit)->share;
}

double cost_of_calls(const Record& record) {
  constexpr double kMostOfCall = 4e-6;  // seconds; a call on tiny tensors takes one or two, and autograd as much again
  if (record.peak_flops <= 0 || record.bandwidth <= 0) return 0;
  double all = 0, calls = 0;
  for (const OperatorUse& use : record.operators) {
    const double work = std::max(use.flops / record.peak_flops, use.bytes / record.bandwidth);
    all += use.seconds;
    calls += std::min(static_cast<double>(use.calls) * kMostOfCall, std::max(0.0, use.seconds - work));
  }
  return all > 0 ? std::clamp(calls / all, 0.0, 1.0) : 0;
}

bool is_record(const Record& record) {
  const ResourceUse& used = record.resources;
  constexpr double kMost = 1e6;
  return record.time.lanes > 0 && record.time.lanes <= static_cast<int64_t>(kMost) && used.cores <= kMost &&
         std::ranges::all_of(record.time.seconds, is_amount) && std::isfinite(record.time.total()) &&
         between_start_and_end(record.time) >= kLeastSeconds && is_amount(used.cores) && is_amount(used.cpu_seconds) &&
         is_amount(used.queued_seconds) && is_amount(used.throttled_seconds) &&
         is_amount(used.memory_stalled_seconds) && is_amount(used.memory_stopped_seconds) && used.major_faults >= 0 &&
         std::ranges::all_of(record.loading.cpu_seconds, is_amount) && is_amount(record.loading.read_seconds) &&
         std::isfinite(cost_of(record.loading)) && record.loading.samples >= 0 && record.loading.threads >= 0 &&
         record.loading.read_bytes >= 0 && used.disk_read_bytes >= 0 && used.disk_written_bytes >= 0 &&
         used.network.sent_bytes >= 0 && used.network.received_bytes >= 0 &&
         (!record.model || is_model_use(*record.model)) &&
         std::ranges::all_of(record.shares, [](double share) { return is_amount(share) && share < 1e100; });
}

}  // namespace sinew::advise
