#include "train/voice.h"

#include <algorithm>
#include <utility>

namespace sinew::train {
namespace {

// Longer than members continue without a coordinator, when no member may write (cluster::ClientOptions).
constexpr double kRememberedSeconds = 120;
constexpr int64_t kRememberedSteps = 64;  // minimum number of steps to remember, if steps take long

}  // namespace

Voice::Voice(report::ReporterOptions options, const std::map<std::string, std::string>& hparams, const Members* members,
             Clock& clock)
    : options_(std::move(options)), hparams_(hparams), members_(members), clock_(clock) {
  if (members_ != nullptr) {
    options_.may_write = [this] { return members_->may_write(); };
    options_.takes_over = !members_->is_leader();
  }
  heard();
}

bool Voice::heard() {
  if (reporter_) return true;
  // Waits until this process may write: from then on the files hold everything that the previous leader wrote.
  if (members_ != nullptr && !(members_->is_leader() && members_->may_write())) return false;
  reporter_ = std::make_unique<report::Reporter>(options_, clock_);
  reporter_->hparams(hparams_);
  for (const Remembered& one : std::exchange(remembered_, {})) one.record(*reporter_);
  reporter_->flush();
  return true;
}

void Voice::keep(Step step, Record record) {
  const double now = clock_.monotonic_seconds();
  if (options_.takes_over) options_.resumed_at = std::max(options_.resumed_at.value_or(step), step);
  remembered_.push_back({now, step, std::move(record)});
  const auto is_old = [&](const Remembered& one) {
    return one.when + kRememberedSeconds < now && one.step.value + kRememberedSteps < step.value;
  };
  while (is_old(remembered_.front())) remembered_.pop_front();
}

void Voice::metrics(Step step, int64_t samples, const report::Metrics& values) {
  if (heard()) return reporter_->metrics(step, samples, values);
  keep(step, [=](report::Reporter& reporter) { reporter.metrics(step, samples, values); });
}

void Voice::ledger(Step step, Digest digest) {
  if (heard()) return reporter_->ledger(step, digest);
  keep(step, [=](report::Reporter& reporter) { reporter.ledger(step, digest); });
}

void Voice::say(report::Level level, const std::string& event, const std::string& text) {
  if (heard()) return reporter_->say(level, event, text);
  if (!members_->is_leader()) return;
  const Step step = remembered_.empty() ? Step(0) : remembered_.back().step;
  keep(step, [=](report::Reporter& reporter) { reporter.say(level, event, text); });
}

void Voice::progress(const report::Progress& progress) {
  if (heard()) reporter_->progress(progress);
}

void Voice::end_step() {
  if (members_ != nullptr) flush();
}

void Voice::finish(bool success) {
  if (heard()) reporter_->finish(success);
}

void Voice::flush() {
  if (!heard()) return;
  reporter_->flush();
  waits_ = reporter_->waits();
}

}  // namespace sinew::train
