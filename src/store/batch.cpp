// A batch: its conditions, its changes, all or none, and the answers kept under its key.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/texts.h"
#include "store/transaction.h"

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

std::optional<Refusal> broken_condition(Transaction& transaction, const Batch& batch) {
  for (const Held& held : batch.held) {
    if (auto lost = lost_lease(transaction, held)) return lost;
  }
  for (const auto& [subject, seq] : batch.unchanged) {
    const int64_t newest = read_newest_event(transaction.database, subject);
    if (newest <= seq) continue;
    return Refusal{Reason::kConflict, in_words(subject) + " has news: event " + std::to_string(newest) +
                                          ", and this was decided at " + std::to_string(seq)};
  }
  return std::nullopt;
}

}  // namespace

Outcome apply(Transaction& transaction, const Batch& batch) {
  Database& database = transaction.database;
  if (!batch.key.empty()) {
    if (const auto objection = TextJudge().id("the batch's key", batch.key).objection())
      return std::unexpected(*objection);
    if (auto receipt = receipt_of(database, batch.key)) return std::move(*receipt);
  }
  if (const auto broken = broken_condition(transaction, batch)) return std::unexpected(*broken);
  // Dropping goes through all points: those of the batches before this one are not its to take back.
  const auto drops = [](const Change& change) { return std::holds_alternative<DropPoints>(change); };
  if (std::any_of(batch.changes.begin(), batch.changes.end(), drops)) settle_points(transaction);
  const int64_t seq = transaction.seq;
  const size_t points = transaction.points.size(), named = transaction.named.size();
  // A change that is refused has written nothing, so one alone needs no way back.
  const bool nested = batch.changes.size() > 1;
  if (nested) database.run("SAVEPOINT batch", {});
  Receipt receipt;
  receipt.answers.reserve(batch.changes.size());
  for (const Change& change : batch.changes) {
    const Applied applied = std::visit([&](const auto& one) { return apply(transaction, one); }, change);
    if (applied) {
      receipt.answers.push_back(*applied);
      continue;
    }
    if (nested) {
      database.run("ROLLBACK TO SAVEPOINT batch", {});
      database.run("RELEASE SAVEPOINT batch", {});
      unname_series(transaction, named);
      transaction.series.forget();
    }
    transaction.seq = seq;
    transaction.points.resize(points);
    Refusal refusal = applied.error();
    if (nested)
      refusal.why = "change " + std::to_string(receipt.answers.size() + 1) + " of " +
                    std::to_string(batch.changes.size()) + ": " + refusal.why;
    return std::unexpected(std::move(refusal));
  }
  if (nested) database.run("RELEASE SAVEPOINT batch", {});
  if (transaction.seq > seq) receipt.seq = transaction.seq;
  if (!batch.key.empty()) keep_receipt(transaction, batch.key, receipt);
  return receipt;
}

}  // namespace sinew::store
