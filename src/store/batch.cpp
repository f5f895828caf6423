// Applies a batch: checks its conditions, applies its changes atomically, and stores the answers under the batch's key.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/transaction.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;
using nlohmann::json;

std::optional<Receipt> receipt_of(Database& database, const std::string& key) {
  std::optional<Receipt> receipt;
  database.each("SELECT answers FROM receipt WHERE key = ?1", {std::string_view(key)}, [&](const Row& row) {
    const json kept = json::parse(row.text(0));
    receipt = Receipt{kept.at(0), true, {}};
    for (size_t i = 1; i + 1 < kept.size(); i += 2) receipt->answers.push_back({kept.at(i), kept.at(i + 1), true});
  });
  return receipt;
}

void keep_receipt(Transaction& transaction, const std::string& key, const Receipt& receipt) {
  json kept = json::array({receipt.seq});
  for (const Answer& answer : receipt.answers) {
    kept.push_back(answer.number);
    kept.push_back(answer.fence);
  }
  const std::string answers = kept.dump();
  transaction.database.run("INSERT INTO receipt(key, at_ms, answers) VALUES (?1, ?2, ?3)",
                           {std::string_view(key), transaction.at_ms, std::string_view(answers)});
}

std::optional<Refusal> inactive(Database& database, const Subject& subject) {
  std::optional<int64_t> hidden;
  std::string parent;
  database.each("SELECT hidden, parent FROM record WHERE kind = ?1 AND id = ?2 AND number = ?3",
                {static_cast<int64_t>(subject.kind), std::string_view(subject.id), subject.number},
                [&](const Row& row) {
                  hidden = row.integer(0);
                  parent = row.text(1);
                });
  if (!hidden) return not_found(subject).error();
  if (*hidden != 0)
    return Refusal{Reason::kHidden, in_words(subject) + " is deleted; it must be in the 'active' state"};
  if (subject.kind == Kind::kRun) return inactive(database, {Kind::kExperiment, parent});
  return std::nullopt;
}

std::optional<Refusal> broken_condition(Transaction& transaction, const Batch& batch) {
  for (const HeldLease& held : batch.held) {
    if (auto lost = lost_lease(transaction, held)) return lost;
  }
  for (const auto& [subject, seq] : batch.unchanged) {
    const int64_t newest = read_newest_event(transaction.database, subject);
    if (newest <= seq) continue;
    return Refusal{Reason::kConflict, in_words(subject) + " has changed: its newest event is " +
                                          std::to_string(newest) + ", the caller had read up to event " +
                                          std::to_string(seq)};
  }
  for (const Subject& subject : batch.active) {
    if (auto refusal = inactive(transaction.database, subject)) return refusal;
  }
  return std::nullopt;
}

// Saves the state of the transaction before a batch, and restores it if the batch is refused. A refused change has
// written nothing. So only a batch of several changes needs a savepoint in the database.
class Savepoint {
 public:
  Savepoint(Transaction& transaction, bool in_database)
      : transaction_(transaction),
        in_database_(in_database),
        seq_(transaction.seq),
        points_(transaction.points.size()),
        new_series_(transaction.new_series.size()) {
    if (in_database_) transaction_.database.run("SAVEPOINT batch", {});
  }
  void release() {
    if (in_database_) transaction_.database.run("RELEASE SAVEPOINT batch", {});
  }
  void roll_back() {
    if (in_database_) {
      transaction_.database.run("ROLLBACK TO SAVEPOINT batch", {});
      transaction_.database.run("RELEASE SAVEPOINT batch", {});
      undo_new_series(transaction_, new_series_);
      transaction_.series.clear();
    }
    transaction_.seq = seq_;
    transaction_.points.resize(points_);
  }
  int64_t seq() const { return seq_; }

 private:
  Transaction& transaction_;
  const bool in_database_;
  const int64_t seq_;
  const size_t points_, new_series_;
};

}  // namespace

Outcome apply(Transaction& transaction, const Batch& batch) {
  const auto malformed =
      Validator().name("the actor", batch.actor.name).name("the address", batch.actor.address).refusal();
  if (malformed) return std::unexpected(*malformed);
  transaction.actor = batch.actor;
  if (!batch.key.empty()) {
    if (const auto refusal = Validator().id("the batch's key", batch.key).refusal()) return std::unexpected(*refusal);
    if (auto receipt = receipt_of(transaction.database, batch.key)) return std::move(*receipt);
  }
  if (const auto broken = broken_condition(transaction, batch)) return std::unexpected(*broken);
  // DropPoints removes points from the transaction's list. A rollback of this batch only shortens the list, so it could
  // not put these points back. So write the points of earlier batches to the database first.
  const auto drops = [](const Change& change) { return std::holds_alternative<DropPoints>(change); };
  if (std::any_of(batch.changes.begin(), batch.changes.end(), drops)) flush_points(transaction);
  const size_t count = batch.changes.size();
  Savepoint savepoint(transaction, count > 1);
  Receipt receipt;
  receipt.answers.reserve(count);
  for (const Change& change : batch.changes) {
    const Applied applied = std::visit([&](const auto& one) { return apply(transaction, one); }, change);
    if (applied) {
      receipt.answers.push_back(*applied);
      continue;
    }
    savepoint.roll_back();
    Refusal refusal = applied.error();
    if (count > 1) {
      refusal.why =
          "change " + std::to_string(receipt.answers.size() + 1) + " of " + std::to_string(count) + ": " + refusal.why;
    }
    return std::unexpected(std::move(refusal));
  }
  savepoint.release();
  if (transaction.seq > savepoint.seq()) receipt.seq = transaction.seq;
  if (!batch.key.empty()) keep_receipt(transaction, batch.key, receipt);
  return receipt;
}

}  // namespace sinew::store
