// A remedy makes a part of the time shorter, and the rest stays. So the training takes rest / whole of its time. The
// rest is not known exactly: threads that no longer compete for the caches, the memory and the cores are faster, and
// two runs of a job never take the same time.
#include "advise/remedies.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "advise/rest.h"
#include "base/number_text.h"
#include "base/short_number.h"

namespace sinew::advise {
namespace {

constexpr double kNoDifference = 0.01;      // of two parts of the time
constexpr double kBusyThatStays = 0.9;      // of the CPU time: threads that wait for a disk wake often
constexpr double kErrorOfWork = 0.15;       // of CPU time, which is a little less if nothing else uses the caches
constexpr double kExchangeThatGoes = 0.94;  // the rest is the work of sending and adding, on any network
constexpr double kWorstOfLane = 0.75;       // of the speed of a lane, if another one computes beside it
constexpr double kCheckpoints = 0.02;       // the part of the time that checkpoints should take
constexpr double kEvaluations = 0.05;       // the part of the time that evaluations should take
constexpr double kManyEvaluations = 0.15;
constexpr double kRarest = 20;             // times: a crash must not lose too much, and a curve needs its points
constexpr double kRarestInTraining = 0.1;  // the longest interval, as a part of the training
constexpr int64_t kMostThreads = 1024;     // of data.prefetch.threads
constexpr char kLanes[] = "trainer.lanes=";
// What bfloat16 leaves of the time of the products: nothing is known before it is measured. On processors without
// bfloat16 in hardware the measurement chooses fp32 again.
constexpr double kOftenLeft = 0.75, kLeastLeft = 0.35;
constexpr double kBusy = 0.85;  // cores that are used for this part of the time leave nothing to other threads

// A measured effect predicts a gain better than a computed one.
constexpr double kErrorOfExperiment = 0.08;

Rest measured(const StepRatio& ratio) {
  return {ratio.expected, ratio.low * (1 - kErrorOfExperiment), ratio.high * (1 + kErrorOfExperiment)};
}

std::string saved_text(double seconds) {
  return seconds < 10 ? rounded_text(seconds, 2) + " s" : short_seconds(seconds);
}

// The most shards that one lane computes in a step.
double rounds(int64_t shards, int64_t lanes) {
  return std::ceil(static_cast<double>(shards) / static_cast<double>(lanes));
}

class Remedies {
 public:
  Remedies(const Record& record, const Spent& spent, const std::vector<Part>& parts, const spec::Job* job)
      : record_(record), spent_(spent), parts_(parts), job_(job), lanes_(record.time.lanes) {}

  std::vector<Remedy> all() {
    add("let other workers wait less: a faster network, or fewer workers",
        remains(1 - kExchangeThatGoes * share(Limit::communication)));
    add("move less memory: trainer.precision: bf16 where the processor has it, fewer or smaller layers",
        remains(1 - share(Limit::bandwidth) / 2), false);
    add("end what slows the slow worker down, or leave it out", remains(1 - share(Limit::straggler)));
    add("raise the memory limit, or use less memory: a smaller trainer.batch_size, fewer trainer.lanes",
        remains(1 - spent_.memory / spent_.all));
    add("raise the CPU quota of the container", with_cores(spent_.quota));
    add("end other programs on this machine", with_cores(spent_.starved - spent_.quota));
    of_input();
    of_checkpoints();
    if (job_ != nullptr) {
      if (!of_lanes()) of_shards();
      of_evaluations();
      of_overhead();
      of_arithmetic();
      of_early_end();
    }
    std::ranges::stable_sort(found_, std::ranges::greater(), [](const Remedy& remedy) { return remedy.gain.expected; });
    if (job_ != nullptr) std::ranges::move(other_models(record_, computing(), *job_), std::back_inserter(found_));
    return std::move(found_);
  }

 private:
  // The part of the time that the lanes ran. While other programs take cores, less work still takes less time.
  double share(Limit limit) const { return share_of(parts_, limit) / std::max(kLeastRest, spent_.runs()); }

  double computing() const { return share(Limit::compute) + share(Limit::bandwidth); }

  // Returns whether the remedy is worth trying.
  bool add(const std::string& what, const Rest& rest, bool keeps_result = true, std::vector<std::string> options = {}) {
    const Estimate gain = gain_of(rest);
    if (gain.expected < kWorthTrying) return false;
    found_.push_back({what, gain, keeps_result, std::move(options)});
    return true;
  }

  // The CPU time of the run without so many seconds of its loaders, as a part of the lanes' time.
  double work_without(double loading) const {
    return std::max(0.0, record_.resources.cpu_seconds - loading) / spent_.all;
  }

  // The lanes had no core for so long, in seconds. While one of them had none, the others, and the loaders, waited for
  // it, too, and nothing says for how long. So what remains lies between the work of the lanes and all other time.
  Rest with_cores(double starved) const {
    const double without = 1 - starved / spent_.all, work = std::min(without, work_without(record_.loading.cpu()));
    if (starved <= 0) return {};
    return {work + (without - work) / 4, work * (1 - kErrorOfWork), std::max(without, work * (1 + kErrorOfWork))};
  }

  // While the lanes wait for samples, the loaders read or compute. They compute on the same cores as the lanes.
  void of_input() {
    const LoadUse& loading = record_.loading;
    auto ready = ratio_of(record_, Condition::samples_ready);
    if (ready && ready->high >= 1) ready.reset();  // no more than noise
    // lanes also wait for other lanes that wait for samples, and nothing says for how long
    const double waits = 1 - share(Limit::input), idle = share(Limit::imbalance);
    const Rest rest = ready
                          ? measured({std::min(1.0, ready->expected), ready->low, ready->high})
                          : Rest{waits - 0.75 * idle, (waits - idle) * (1 - kErrorOfRest), waits * (1 + kErrorOfRest)};
    const double without = rest.expected, cores = record_.resources.cores,
                 busy = cores > 0 ? record_.resources.cpu_seconds / (cores * record_.seconds()) : 0;
    if (slowest_stage(loading) == LoadStage::read || loading.cpu() <= 0) {
      add("read samples without waiting: a faster disk, or files that are in memory",
          busy > rest.expected + kNoDifference
              ? Rest{kBusyThatStays * busy, (kBusyThatStays - 0.2) * busy, (kBusyThatStays + 0.3) * busy}
              : Rest{rest.expected, std::clamp(busy * (1 - kErrorOfWork), rest.least, rest.expected), rest.most});
    } else {
      // the lanes then have the cores of the loaders, too
      const double work = work_without(loading[LoadStage::decode]);
      if (slowest_stage(loading) == LoadStage::decode)
        add("decode the files once, before the training: sinew data pack JOB DIRECTORY --decode",
            {work, work * (1 - kErrorOfWork), std::max(without, work * (1 + kErrorOfWork))}, false);
      else
        add("load samples on more cores, or change them less: data.augment", rest, false);
    }
    if (job_ == nullptr || !job_->data.prefetch_threads || (cores > 0 && busy > kBusy)) return;
    const int64_t threads = std::min(kMostThreads, 2 * std::max<int64_t>(1, *job_->data.prefetch_threads));
    if (threads <= *job_->data.prefetch_threads) return;
    // a disk may not be faster if more threads read from it
    add("load samples with more threads", {std::max(without, 0.75), std::max(without, 0.5) * (1 - kErrorOfRest), 1},
        true, {"data.prefetch.threads=" + std::to_string(threads)});
  }

  // How much rarer something becomes that takes the `part` of the time now and should take `wanted` of it: a whole
  // number, and 1 if nothing should change. It still happens some times in the training.
  double rarer(double part, double wanted, const spec::Duration& interval) const {
    const spec::Duration& whole = job_->trainer.max_duration;
    double most = kRarest;
    if (interval.unit == spec::Duration::Unit::fraction) most = std::min(most, kRarestInTraining / interval.amount);
    if (interval.unit == whole.unit) most = std::min(most, kRarestInTraining * whole.amount / interval.amount);
    return std::max(1.0, std::floor(std::min(most, std::ceil(part / std::max(kLeastRest, 1 - part) / wanted))));
  }

  static std::string times(const spec::Duration& interval, double factor) {
    return to_string(spec::Duration{interval.amount * factor, interval.unit});
  }

  // A job that never saves at an interval saves its best states only, which no interval makes rarer.
  void of_checkpoints() {
    const double part = share(Limit::checkpoints);
    if (job_ == nullptr) {
      add("save less often", remains(1 - part));
      return;
    }
    const auto interval = spec::parse_duration(job_->checkpoint.interval);
    if (!interval || interval->amount <= 0) return;
    const double factor = rarer(part, kCheckpoints, *interval);
    if (factor > 1)
      add("save less often", remains(1 - part + part / factor), true,
          {"checkpoint.interval=" + times(*interval, factor)});
  }

  void of_evaluations() {
    const double part = record_.time[Stage::evaluation] / spent_.all;
    const spec::Duration& interval = job_->trainer.eval_interval;
    if (part < kManyEvaluations || interval.amount <= 0) return;
    const double factor = rarer(part, kEvaluations, interval);
    const bool decide = !job_->early_stopping.monitor.empty() || job_->objective;  // when the training ends
    if (factor > 1)
      add("evaluate less often", remains(1 - part + part / factor), !decide,
          {"trainer.eval_interval=" + times(interval, factor)});
  }

  // Returns whether cores are idle on which more lanes could compute.
  bool of_lanes() {
    if (!job_->trainer.shards) return false;
    const double idle = record_.resources.cores - record_.resources.cpu_seconds / record_.seconds();
    const int64_t shards = *job_->trainer.shards, cores = std::llround(std::floor(record_.resources.cores)),
                  idle_cores = std::llround(std::max(0.0, idle));
    const int64_t more = std::min({cores, shards, lanes_ + idle_cores});
    const double part = share(Limit::compute) + share(Limit::imbalance);
    if (more <= lanes_) return false;
    const double faster = rounds(shards, more) / rounds(shards, lanes_);
    const double expected = 1 - part + part * faster, most = 1 - part + part * std::min(1.0, faster / kWorstOfLane);
    Rest rest{(expected + most) / 2, expected * (1 - kErrorOfRest), most};
    // half of the lanes took `half` times as long, so twice the lanes will rarely gain more than that
    if (const auto half = ratio_of(record_, Condition::half_lanes); half && half->low > 1)
      rest.expected = std::clamp(1 / half->expected, rest.least, rest.most);
    return add("compute on all cores", rest, true, {kLanes + std::to_string(more)});
  }

  // In the last round of a step, some lanes have no shard.
  void of_shards() {
    if (!job_->trainer.shards || *job_->trainer.shards % lanes_ == 0) return;
    const auto full = static_cast<int64_t>(rounds(*job_->trainer.shards, lanes_)) * lanes_;
    if (full > job_->trainer.batch_size) return;  // a shard has at least one sample
    // a lane that works alone is faster than one beside others, and more shards are more work
    const double idle = share(Limit::imbalance);
    add("let all lanes work until the end of a step", {1 - 0.75 * idle, 1 - 1.2 * idle, 1 - idle / 5}, false,
        {"trainer.shards=" + std::to_string(full)});
  }

  void of_arithmetic() {
    const double part = computing();
    if (job_->trainer.precision != "fp32" || part < kMuchComputing) return;
    add("let Sinew measure which precision is the fastest",
        {1 - part + part * kOftenLeft, 1 - part + part * kLeastLeft, 1}, false, {"trainer.precision=fastest"});
  }

  void of_overhead() {
    const double part = share(Limit::overhead);
    if (job_->trainer.drop_last) return;  // an epoch may have no larger step
    add("make larger steps, which may need another optimizer.lr; of a sample", remains(1 - part / 2), false,
        {"trainer.batch_size=" + std::to_string(2 * job_->trainer.batch_size)});
  }

  // A training without early stopping whose evaluations got no better. One with early stopping has its patience
  // already.
  void of_early_end() {
    const forecast::Monitored& monitored = record_.monitored;
    if (!job_->early_stopping.monitor.empty() || record_.steps <= 0) return;
    const auto end = forecast::early_end(record_.evaluations, monitored);
    if (!end) return;
    const double done =
        static_cast<double>(record_.evaluations[end->evaluation].step) / static_cast<double>(record_.steps);
    if (done >= 1) return;
    const std::string epoch = rounded_text(std::round(100 * done * record_.epochs) / 100);
    if (add("stop after epoch " + epoch + ": 90 % likely that no better " + monitored.metric + " comes; saves " +
                saved_text((1 - done) * record_.seconds()),
            remains(done), false,
            {"early_stopping.monitor=" + monitored.metric,
             std::string("early_stopping.mode=") + (monitored.lower ? "min" : "max"),
             "early_stopping.patience=" + std::to_string(end->patience)}))
      found_.back().effect = "the best model stays the same, and becomes that of the run instead of the last one";
  }

  const Record& record_;
  const Spent& spent_;
  const std::vector<Part>& parts_;
  const spec::Job* job_;
  const int64_t lanes_;
  std::vector<Remedy> found_;
};

double rest_of(double gain) {
  return 1 / (1 + gain);
}

}  // namespace

std::vector<Remedy> to_apply(const Verdict& verdict, bool change_result) {
  std::vector<Remedy> found;
  for (const Remedy& remedy : verdict.remedies) {
    if (!remedy.options.empty() && (remedy.keeps_result || change_result)) found.push_back(remedy);
  }
  return found;
}

// Each remedy takes away a part of the time of its own, but more lanes make shorter what the others leave.
Estimate together(const std::vector<Remedy>& remedies) {
  Rest rest, of_lanes;
  for (const Remedy& remedy : remedies) {
    const Rest one{rest_of(remedy.gain.expected), rest_of(remedy.gain.high), rest_of(remedy.gain.low)};
    if (!remedy.options.empty() && remedy.options[0].starts_with(kLanes)) {
      of_lanes = one;
    } else {
      rest = {rest.expected - (1 - one.expected), rest.least - (1 - one.least), rest.most - (1 - one.most)};
    }
  }
  const auto both = [](double left, double lanes) { return std::max(kLeastRest, left) * lanes; };
  return gain_of(
      {both(rest.expected, of_lanes.expected), both(rest.least, of_lanes.least), both(rest.most, of_lanes.most)});
}

std::vector<Remedy> remedies_of(const Record& record, const Spent& spent, const std::vector<Part>& parts,
                                const spec::Job* job) {
  return Remedies(record, spent, parts, job).all();
}

}  // namespace sinew::advise
