// Inside store/: an open write transaction, and the functions that apply changes within it.
//
// The transaction holds the writers' lock, so what a function has checked stays true until the commit. Every apply()
// finishes its checks before its first write, so a refused change has written nothing.
#pragma once

#include <expected>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/database.h"
#include "store/packed.h"

namespace sinew::store {

using Applied = std::expected<Answer, Refusal>;

// A cache of the numbers of series within their runs. The writer keeps it across transactions, which is safe because a
// number is never assigned twice. If a transaction fails, the writer clears the cache, because the transaction may have
// added to it.
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
    if (runs_.size() >= kMaxRuns) runs_.clear();
    return runs_[id] = {run, {}};
  }
  void clear() { runs_.clear(); }

 private:
  static constexpr size_t kMaxRuns = 4096;
  std::unordered_map<std::string, Run> runs_;
};

struct Transaction {
  Database& database;
  SeriesNumbers& series;
  double now = 0;                      // seconds on the clock of leases
  int64_t at_ms = 0;                   // wall time, for events
  int64_t seq = 0;                     // number of the newest event
  Actor actor = {};                    // the actor of the batch that is being applied
  std::vector<TailPoint> points = {};  // points that were added and are not written to the database yet
  // The summaries of the runs that got new series in this transaction; they are not written to the database yet.
  // new_series has the run of each new series, in order of creation.
  std::unordered_map<int64_t, std::vector<SeriesSummary>> summaries = {};
  std::vector<int64_t> new_series = {};
};

std::unexpected<Refusal> refused(Refusal::Reason reason, const std::string& why);
std::unexpected<Refusal> not_found(const Subject& subject);
std::string in_words(const Subject& subject);  // `run "a"`, `version 3 of model "m"`
int64_t add_event(Transaction& transaction, std::string_view what, const Subject& subject, std::string_view body);
// Returns the `seq` of the record, or 0 if there is no such record.
int64_t record_seq(Database& database, const Subject& subject);

Applied apply(Transaction& transaction, const Create& change);
Applied apply(Transaction& transaction, const Update& change);
Applied apply(Transaction& transaction, const SetParams& change);
Applied apply(Transaction& transaction, const SetTags& change);
Applied apply(Transaction& transaction, const SetRunState& change);
Applied apply(Transaction& transaction, const SetAlias& change);
Applied apply(Transaction& transaction, const AddPoints& change);
Applied apply(Transaction& transaction, const DropPoints& change);
Applied apply(Transaction& transaction, const Attach& change);
Applied apply(Transaction& transaction, const Detach& change);
Applied apply(Transaction& transaction, const ForgetContent& change);
Applied apply(Transaction& transaction, const Link& change);
Applied apply(Transaction& transaction, const SetNote& change);
Applied apply(Transaction& transaction, const Acquire& change);
Applied apply(Transaction& transaction, const Renew& change);
Applied apply(Transaction& transaction, const Release& change);

// Applies the whole batch or nothing of it.
Outcome apply(Transaction& transaction, const Batch& batch);
// Writes the transaction's points and new series to the database. Call it before the commit, and before a batch that
// drops points.
void flush_points(Transaction& transaction);
// Removes the newest of the transaction's new series until `count` of them are left.
void undo_new_series(Transaction& transaction, size_t count);

// Returns a refusal if the caller no longer holds the lease. An expired lease counts as held until the next Acquire.
std::optional<Refusal> lost_lease(Transaction& transaction, const HeldLease& held);

// ---- reads, all from the transaction's snapshot --------------------------------------------------------------------

// Reads the subjects in order until their records have at least `max_bytes`.
std::vector<std::optional<Record>> read_subjects(Database& database, std::span<const Subject> subjects,
                                                 int64_t max_bytes);
RecordPage read_records(Database& database, const Query& query);
std::vector<Alias> read_aliases(Database& database, const std::string& model);
std::vector<std::vector<Point>> read_history(Database& database, std::span<const Series> series, const Window& window);
std::vector<TailPoint> read_tail(Database& database);
std::vector<Attachment> read_attachments(Database& database, const Subject& subject, const std::string& folder);
std::optional<Attachment> read_attachment(Database& database, const Subject& subject, const std::string& path);
std::vector<Content> read_contents(Database& database, bool referenced);
std::vector<Link> read_links(Database& database, const Subject& subject);
std::string read_note(Database& database, const std::string& name);
std::vector<Event> read_events(Database& database, const EventQuery& query);
int64_t read_newest_event(Database& database, const Subject& subject);
Lease read_lease(Database& database, const std::string& name, double now);

}  // namespace sinew::store
