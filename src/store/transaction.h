// Inside store/: one transaction under way, and what can be done in it. Nobody else writes meanwhile, so what a
// function has checked stays true until the commit. Each checks everything before it writes anything.
#pragma once

#include <expected>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/database.h"
#include "store/packed.h"

namespace sinew::store {

using Applied = std::expected<Answer, Refusal>;

// Which number a series has in its run: read once, kept by whoever writes. Numbers are never given anew, so what is
// known stays true; forgotten as a whole when a transaction that may have added to it failed.
class SeriesNumbers {
 public:
  struct Run {
    int64_t run = 0;
    std::unordered_map<std::string, int64_t> numbers;
  };
  Run* find(const std::string& run) {
    const auto found = runs_.find(run);
    return found == runs_.end() ? nullptr : &found->second;
  }
  Run& add(const std::string& id, int64_t run) {
    if (runs_.size() >= kMostRuns) runs_.clear();
    return runs_[id] = {run, {}};
  }
  void forget() { runs_.clear(); }

 private:
  static constexpr size_t kMostRuns = 4096;
  std::unordered_map<std::string, Run> runs_;
};

struct Transaction {
  Database& database;
  SeriesNumbers& series;
  double now = 0;                      // by the clock of leases
  int64_t at_ms = 0;                   // for people
  int64_t seq = 0;                     // of the newest event
  std::vector<TailPoint> points = {};  // added, and not yet given to the database
  // Summaries of runs that were given new series, which the database has not yet; and of which run, one by one.
  std::unordered_map<int64_t, std::vector<SeriesSummary>> summaries = {};
  std::vector<int64_t> named = {};
};

std::unexpected<Refusal> refused(Refusal::Reason reason, const std::string& why);
std::string in_words(const Subject& subject);  // `run "a"`, `version 3 of model "m"`
int64_t add_event(Transaction& transaction, std::string_view what, const Subject& subject, std::string_view body);
// The record's place, 0 if there is none.
int64_t record_seq(Database& database, const Subject& subject);

Applied apply(Transaction& transaction, const Create& change);
Applied apply(Transaction& transaction, const Amend& change);
Applied apply(Transaction& transaction, const SetParams& change);
Applied apply(Transaction& transaction, const SetTags& change);
Applied apply(Transaction& transaction, const Move& change);
Applied apply(Transaction& transaction, const SetAlias& change);
Applied apply(Transaction& transaction, const AddPoints& change);
Applied apply(Transaction& transaction, const DropPoints& change);
Applied apply(Transaction& transaction, const Attach& change);
Applied apply(Transaction& transaction, const Detach& change);
Applied apply(Transaction& transaction, const Forget& change);
Applied apply(Transaction& transaction, const Link& change);
Applied apply(Transaction& transaction, const SetNote& change);
Applied apply(Transaction& transaction, const NewTrial& change);
Applied apply(Transaction& transaction, const TakeTrial& change);
Applied apply(Transaction& transaction, const Report& change);
Applied apply(Transaction& transaction, const Tell& change);
Applied apply(Transaction& transaction, const Acquire& change);
Applied apply(Transaction& transaction, const Renew& change);
Applied apply(Transaction& transaction, const Release& change);

// The whole batch, or nothing of it.
Outcome apply(Transaction& transaction, const Batch& batch);
// Before the commit: what was added goes to chunks, or to the tail.
void settle_points(Transaction& transaction);
// Takes new series back, down to the first so many.
void unname_series(Transaction& transaction, size_t named);

// A lease that is held no longer, as a refusal.
std::optional<Refusal> lost_lease(Transaction& transaction, const Held& held);

// ---- reads, in one instant -----------------------------------------------------------------------------------------

std::vector<std::optional<Record>> read_subjects(Database& database, std::span<const Subject> subjects);
std::vector<Record> read_records(Database& database, const Query& query);
std::vector<Alias> read_aliases(Database& database, const std::string& model);
std::vector<std::vector<Point>> read_history(Database& database, std::span<const Series> series, const Window& window);
std::vector<TailPoint> read_tail(Database& database);
std::vector<Attachment> read_attachments(Database& database, const Subject& subject, const std::string& below);
std::optional<Attachment> read_attachment(Database& database, const Subject& subject, const std::string& path);
std::vector<Content> read_contents(Database& database, bool loose);
std::vector<Link> read_links(Database& database, const Subject& subject);
std::string read_note(Database& database, const std::string& name);
std::vector<Event> read_events(Database& database, const EventQuery& query);
int64_t read_newest_event(Database& database, const Subject& subject);
std::vector<Trial> read_trials(Database& database, const std::string& study, double now);
Lease read_lease(Database& database, const std::string& name, double now);

}  // namespace sinew::store
