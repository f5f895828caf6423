#include "train/leader_reporter.h"

#include <algorithm>
#include <utility>

namespace sinew::train {
namespace {

// Longer than members continue without a coordinator, when no member may write (cluster::ClientOptions).
constexpr double kRememberedSeconds = 120;
constexpr int64_t kRememberedSteps = 64;  // minimum number of steps to remember, if steps take long

}  // namespace

LeaderReporter::LeaderReporter(report::ReporterOptions options, const std::map<std::string, std::string>& hparams,
                               const Members* members, Clock& clock)
    : options_(std::move(options)), hparams_(hparams), members_(members), clock_(clock) {
  if (members_ != nullptr) {
    options_.may_write = [this] { return members_->may_write(); };
    options_.takes_over = !members_->is_leader();
  }
  reports();
}

bool LeaderReporter::reports() {
  if (reporter_) return true;
  // Waits until this process may write: from then on the files hold everything that the previous leader wrote.
  if (members_ != nullptr && !(members_->is_leader() && members_->may_write())) return false;
  reporter_ = std::make_unique<report::Reporter>(options_, clock_);
  reporter_->hparams(hparams_);
  for (const Remembered& one : std::exchange(remembered_, {})) one.record(*reporter_);
  reporter_->flush();
  return true;
}

void LeaderReporter::remember(Step step, Record record) {
  const double now = clock_.monotonic_seconds();
  if (options_.takes_over) options_.resumed_at = std::max(options_.resumed_at.value_or(step), step);
  remembered_.push_back({now, step, std::move(record)});
  const auto is_old = [&](const Remembered& one) {
    return one.when + kRememberedSeconds < now && one.step.value + kRememberedSteps < step.value;
  };
  while (is_old(remembered_.front())) remembered_.pop_front();
}

void LeaderReporter::metrics(Step step, int64_t samples, const report::Metrics& values) {
  if (reports()) return reporter_->metrics(step, samples, values);
  remember(step, [=](report::Reporter& reporter) { reporter.metrics(step, samples, values); });
}

void LeaderReporter::ledger(Step step, Digest digest) {
  if (reports()) return reporter_->ledger(step, digest);
  remember(step, [=](report::Reporter& reporter) { reporter.ledger(step, digest); });
}

void LeaderReporter::say(report::Level level, const std::string& event, const std::string& text) {
  if (reports()) return reporter_->say(level, event, text);
  if (!members_->is_leader()) return;
  const Step step = remembered_.empty() ? Step(0) : remembered_.back().step;
  remember(step, [=](report::Reporter& reporter) { reporter.say(level, event, text); });
}

void LeaderReporter::progress(const report::Progress& progress) {
  if (reports()) reporter_->progress(progress);
}

void LeaderReporter::end_step() {
  if (members_ != nullptr) flush();
}

void LeaderReporter::finish(bool success) {
  if (reports()) reporter_->finish(success);
}

void LeaderReporter::flush() {
  if (!reports()) return;
  reporter_->flush();
  has_unwritten_ = reporter_->waits();
}

}  // namespace sinew::train
