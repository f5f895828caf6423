#include "loop/leader_reporter.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/fenced_disk.h"
#include "base/json_text.h"
#include "loop/exact_json.h"

namespace sinew::loop {
namespace {

// A member remembers its records for this time. It is longer than the time for which members continue without a
// coordinator (cluster::ClientOptions), because no member may write during that time.
constexpr double kRememberedSeconds = 120;
constexpr int64_t kRememberedSteps = 64;  // minimum number of steps to remember, if steps take long

}  // namespace

LeaderReporter::LeaderReporter(report::ReporterOptions options, const std::map<std::string, std::string>& hparams,
                               const Members* members, WriteFence& disk, Clock& clock)
    : options_(std::move(options)), hparams_(hparams), members_(members), disk_(disk), clock_(clock) {
  if (members_ != nullptr) {
    options_.may_write = [this, also = std::move(options_.may_write)] {
      return (leads_alone_ || members_->may_write()) && (!also || also());
    };
    options_.takes_over = !members_->is_leader();
  }
  reports();
}

// Ends the right to write of all earlier leaders. Returns false if this process must not write, or if the takeover
// fails because of the disk. The records then wait for a later call.
bool LeaderReporter::takes_over() {
  if (!options_.may_write()) return false;
  try {
    disk_.take_over();
    trouble_.clear();
    return true;
  } catch (const MayNotWrite&) {
    return false;
  } catch (const DiskError& error) {
    trouble_ = text_with_hint(error);
    return false;
  }
}

bool LeaderReporter::reports() {
  if (reporter_) return true;
  // The reporter opens the files only once this process may write. The previous leader may still believe that it leads.
  if (members_ == nullptr) {
    disk_.take_over();
  } else if ((!leads_alone_ && !members_->is_leader()) || !takes_over()) {
    return false;
  }
  auto reporter = std::make_unique<report::Reporter>(options_, disk_, clock_);
  // The lease ended meanwhile; the next call begins again.
  if (members_ != nullptr && reporter->waits_to_begin()) return false;
  reporter_ = std::move(reporter);
  reporter_->hparams(hparams_);
  for (const Record& record : remembered_) write(*reporter_, record);
  flush();
  return true;
}

void LeaderReporter::write(report::Reporter& reporter, const Record& record) {
  switch (record.kind) {
    case Record::Kind::metrics: return reporter.metrics(record.step, record.samples, record.values);
    case Record::Kind::ledger: return reporter.ledger(record.step, record.digest);
    case Record::Kind::message: return reporter.say(record.level, record.event, record.text, record.values);
  }
}

void LeaderReporter::take(Record record) {
  newest_ = std::max(newest_, record.step);
  if (reports()) {
    write(*reporter_, record);
    if (members_ != nullptr) keep(std::move(record));
    return;
  }
  remember(std::move(record));
}

void LeaderReporter::remember(Record record) {
  if (options_.takes_over) options_.resumed_at = std::max(options_.resumed_at.value_or(record.step), record.step);
  keep(std::move(record));
}

void LeaderReporter::keep(Record record) {
  record.remembered_at = clock_.monotonic_seconds();
  remembered_.push_back(std::move(record));
  if (!has_unwritten_ || !reporter_) forget_old();
}

void LeaderReporter::forget_old() {
  const Record& newest = remembered_.back();
  const auto is_old = [&](const Record& one) {
    return one.remembered_at + kRememberedSeconds < newest.remembered_at &&
           one.step.value + kRememberedSteps < newest.step.value;
  };
  while (is_old(remembered_.front())) remembered_.pop_front();
}

void LeaderReporter::metrics(Step step, int64_t samples, const report::Metrics& values) {
  take({.kind = Record::Kind::metrics, .step = step, .samples = samples, .values = values});
}

void LeaderReporter::ledger(Step step, Digest digest) {
  take({.kind = Record::Kind::ledger, .step = step, .digest = digest});
}

void LeaderReporter::say(report::Level level, const std::string& event, const std::string& text,
                         const report::Metrics& metrics) {
  if (!reports() && !members_->is_leader()) return;
  const Step step = remembered_.empty() ? Step(0) : remembered_.back().step;
  take({.kind = Record::Kind::message, .step = step, .values = metrics, .level = level, .event = event, .text = text});
}

// Leaves messages out: no run depends on them, and the joiner would write those again that are already in the files.
std::string LeaderReporter::records() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Record& record : remembered_) {
    if (record.kind == Record::Kind::metrics)
      list.push_back({record.step.value, record.samples, exact_json(record.values)});
    if (record.kind == Record::Kind::ledger) list.push_back({record.step.value, to_hex(record.digest)});
  }
  return list.empty() ? "" : dump_json(list);
}

void LeaderReporter::adopt(const std::string& records) {
  if (records.empty()) return;
  try {
    for (const auto& one : nlohmann::json::parse(records)) {
      Record record{.kind = one.size() == 2 ? Record::Kind::ledger : Record::Kind::metrics, .step = Step(one.at(0))};
      if (record.kind == Record::Kind::metrics) {
        record.samples = one.at(1);
        record.values = exact_metrics(one.at(2));
      } else if (!from_hex(one.at(1).get<std::string>(), record.digest)) {
        throw Error("CHECKPOINT_UNREADABLE", "a record has no digest", "");
      }
      remember(std::move(record));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error("CHECKPOINT_UNREADABLE", std::string("the records of a state cannot be read: ") + error.what(),
                "another version of Sinew made them: use one version for all workers");
  }
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

std::string LeaderReporter::trouble() const {
  return reporter_ ? reporter_->trouble() : trouble_;
}

// If `anew`, makes a new reporter: it reads from the files what another member has written meanwhile, and adds the
// remembered records.
void LeaderReporter::lead_alone(bool anew) {
  if (anew && reporter_) {
    options_.takes_over = true;
    options_.resumed_at = newest_;
    reporter_.reset();  // without the lease it writes nothing
  }
  leads_alone_ = true;
  flush();
}

void LeaderReporter::flush() {
  if (!reports()) {
    has_unwritten_ = !remembered_.empty();
    return;
  }
  reporter_->flush();
  has_unwritten_ = reporter_->waits_for_permission();
  if (has_unwritten_ || members_ == nullptr) return;
  if (members_->has_run_directory()) return remembered_.clear();
  // What a worker with a directory of its own has written is not in the files of the run. The next leader may need it.
  std::erase_if(remembered_, [](const Record& one) { return one.kind == Record::Kind::message; });
}

}  // namespace sinew::loop
