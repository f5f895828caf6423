#include "train/fastest_trial.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "train/fit_memory.h"
#include "train/lone_engine.h"

namespace sinew::train {
namespace {

constexpr size_t kMostRounds = 5;
constexpr double kUsualRounds = 3;
constexpr int64_t kMostStepsOfRound = 20;
constexpr double kRoundSeconds = 0.1, kUsualSeconds = 5;
constexpr double kPartOfTraining = 0.1, kPartOfLongTraining = 0.005;
// What takes so many times as long as the fastest is not measured again after the first rounds.
constexpr double kMuchSlower = 1.4;

double seconds_now() {
  return system_clock().monotonic_seconds();
}

// A step with so many shards; they have as many samples as those of the job.
spec::Job step_of(spec::Job job, int64_t shards) {
  auto& trainer = job.trainer;
  trainer.batch_size = std::min(trainer.batch_size, shards * quotient_up(trainer.batch_size, *trainer.shards));
  trainer.shards = shards;
  trainer.batch_size_ramp.clear();
  trainer.drop_last = false;
  job.cluster.audit = 0;
  return job;
}

// The training as its job plans it: how many steps, and what limits its time.
struct PlannedTime {
  loop::Lengths lengths;
  double steps = INFINITY, limit_seconds = INFINITY;

  double seconds(double step) const { return std::min(limit_seconds, step * steps); }
};

PlannedTime planned_time(const spec::Job& job, const data::DataInfo& info) {
  PlannedTime found{loop::lengths_of(job, info.train_size, info.tokens_per_sample)};
  for (const std::optional<int64_t>& steps : {found.lengths.total_steps, loop::budget_steps(job, found.lengths)}) {
    if (steps) found.steps = std::min(found.steps, static_cast<double>(*steps));
  }
  const spec::Duration& whole = job.trainer.max_duration;
  if (whole.unit == spec::Duration::Unit::seconds) found.limit_seconds = whole.amount;
  if (job.budget.seconds > 0) found.limit_seconds = std::min(found.limit_seconds, job.budget.seconds);
  return found;
}

struct Round {
  double build_seconds = 0, step_seconds = 0, loss = 0;
};

class Measuring {
 public:
  Measuring(const FastestTrialOptions& options, const std::vector<Arithmetic>& all, const ChildWrite& write)
      : options_(options),
        all_(all),
        write_(write),
        job_(options.job),
        planned_(planned_time(job_, options.dataset->info())),
        schedule_(job_.scheduler, planned_.lengths),
        shortest_(all.size(), INFINITY) {}

  void run() {
    if (!prepare()) return;
    for (size_t round = 0; round < kMostRounds; ++round) {
      const double began = seconds_now(), fastest = *std::ranges::min_element(shortest_);
      for (size_t i = 0; i < all_.size(); ++i) {
        if (round >= kFewestRounds && shortest_[i] > kMuchSlower * fastest) continue;  // also what has failed
        if (round == 0 || shortest_[i] < INFINITY) measure(i);
      }
      const double ends = seconds_now();
      if (shortest_[0] == INFINITY || ends + (ends - began) > ends_at_) return;
    }
  }

 private:
  // Decides how many shards and steps a round has. Returns false if there is no time for enough rounds.
  bool prepare() {
    const double began = seconds_now();
    const int64_t shards = *job_.trainer.shards, few = std::min(shards, *job_.trainer.lanes);
    const spec::Job whole = step_of(job_, shards), part = step_of(job_, few);
    job_ = part;
    steps_ = 1;
    Round first;
    if (!guarded(0, [&] { first = train(all_[0]); })) return false;
    const double step = first.step_seconds * static_cast<double>(shards) / static_cast<double>(few);
    const double training = planned_.seconds(step);
    const double allowed = std::min(
        {options_.most_seconds, std::max(kUsualSeconds, kPartOfLongTraining * training), kPartOfTraining * training});
    ends_at_ = began + allowed;
    const double of_round = std::max(0.0, ends_at_ - seconds_now()) / static_cast<double>(all_.size());
    const auto needs = [&](double one, double rounds) { return rounds * (first.build_seconds + 2 * one); };
    const bool has_time = needs(step, kUsualRounds) <= of_round;
    if (has_time) job_ = whole;
    const double one = has_time ? step : first.step_seconds;
    if (needs(one, static_cast<double>(kFewestRounds)) > of_round) return false;
    const double timed = std::min(kRoundSeconds, of_round / kUsualRounds - first.build_seconds - one);
    steps_ = std::clamp(static_cast<int64_t>(timed / std::max(1e-6, one)), int64_t{1}, kMostStepsOfRound);
    return true;
  }

  // The first step allocates what later ones use again, so it is not timed.
  Round train(const Arithmetic& how) const {
    spec::Job job = job_;
    job.trainer.precision = how.precision;
    job.trainer.memory_format = how.memory_format;
    const double began = seconds_now();
    LoneEngine lone(job, *options_.dataset);
    const auto step = [&](int64_t number) {
      return lone.engine().step({job.optimizer.lr * schedule_.factor(number), {}}, /*want_norm=*/false).loss;
    };
    Round round{.build_seconds = seconds_now() - began, .loss = step(0)};
    const double warm = seconds_now();
    for (int64_t i = 1; i <= steps_; ++i) round.loss += step(i);
    round.step_seconds = (seconds_now() - warm) / static_cast<double>(steps_);
    round.loss /= static_cast<double>(steps_ + 1);
    return round;
  }

  void measure(size_t index) {
    Round round;
    if (!guarded(index, [&] { round = train(all_[index]); })) return;
    shortest_[index] = std::min(shortest_[index], round.step_seconds);
    tell({{"trial", index}, {"seconds", round.step_seconds}, {"loss", round.loss}});
  }

  // Returns false if this arithmetic cannot train the model. What fails in the first one fails in the training, too,
  // which says why.
  bool guarded(size_t index, const std::function<void()>& work) {
    try {
      work();
      return true;
    } catch (const std::exception& error) {
      shortest_[index] = INFINITY;
      tell({{"trial", index}, {"error", ran_out(error) ? "not enough memory" : error.what()}});
      return false;
    }
  }

  void tell(const nlohmann::json& line) const { write_(dump_json(line) + "\n"); }

  const FastestTrialOptions& options_;
  const std::vector<Arithmetic>& all_;
  const ChildWrite& write_;
  spec::Job job_;
  PlannedTime planned_;
  loop::Schedule schedule_;
  std::vector<double> shortest_;  // the shortest step of each arithmetic; infinite: it was not measured, or has failed
  int64_t steps_ = 1;
  double ends_at_ = 0;
};

void read_line(const std::string& line, std::vector<ArithmeticTrial>& trials) {
  constexpr size_t kMostText = 200;
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;  // the child was ended while it wrote this line
  ArithmeticTrial& trial = trials.at(json.at("trial").get<size_t>());
  if (json.contains("error")) {
    trial.error = json.at("error").get<std::string>().substr(0, kMostText);
    return;
  }
  trial.rounds.push_back(json.at("seconds").get<double>());
  trial.loss = json.at("loss").is_number() ? json.at("loss").get<double>() : NAN;
}

}  // namespace

FastestTrials try_arithmetics(const FastestTrialOptions& options, const std::vector<Arithmetic>& all) {
  ChildOptions child{.ends_at = seconds_now() + options.most_seconds, .stop_signals = options.stop_signals};
  if (options.most_bytes > 0) child.most_bytes = options.most_bytes;
  const ChildResult result = in_child(child, [&](const ChildWrite& write) { Measuring(options, all, write).run(); });
  FastestTrials found{result.end, result.killed, {}};
  for (const Arithmetic& how : all) found.trials.push_back({how});
  for (size_t begin = 0, end = 0; (end = result.text.find('\n', begin)) != std::string::npos; begin = end + 1)
    read_line(result.text.substr(begin, end - begin), found.trials);
  return found;
}

}  // namespace sinew::train
