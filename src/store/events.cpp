// Implements the log of events. The numbers of events have no gaps: a transaction assigns them while it holds the
// writers' lock. If the transaction fails, the next one assigns the same numbers again.
#include "store/transaction.h"

namespace sinew::store {

std::unexpected<Refusal> refused(Refusal::Reason reason, const std::string& why) {
  return std::unexpected(Refusal{reason, why});
}

std::unexpected<Refusal> not_found(const Subject& subject) {
  return refused(Refusal::Reason::kNotFound, "there is no " + in_words(subject));
}

std::string in_words(const Subject& subject) {
  const std::string quoted = "\"" + subject.id + "\"";
  if (subject.kind != Kind::kVersion) return std::string(to_string(subject.kind)) + " " + quoted;
  return "version " + std::to_string(subject.number) + " of model " + quoted;
}

int64_t add_event(Transaction& transaction, std::string_view what, const Subject& subject, std::string_view body) {
  transaction.database.run(
      "INSERT INTO event(seq, at_ms, what, kind, id, number, body, actor, address) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
      {++transaction.seq, transaction.at_ms, what, static_cast<int64_t>(subject.kind), std::string_view(subject.id),
       subject.number, body, std::string_view(transaction.actor.name), std::string_view(transaction.actor.address)});
  return transaction.seq;
}

std::vector<Event> read_events(Database& database, const EventQuery& query) {
  std::vector<Event> events;
  int64_t bytes = 0;
  const auto take = [&](const Row& row) {
    events.push_back({row.integer(0),
                      row.integer(1),
                      std::string(row.text(2)),
                      {static_cast<Kind>(row.integer(3)), std::string(row.text(4)), row.integer(5)},
                      std::string(row.text(6)),
                      {std::string(row.text(7)), std::string(row.text(8))}});
    bytes += static_cast<int64_t>(events.back().body.size());
    return bytes < query.bytes;
  };
  if (query.subject) {
    database.each_while(
        "SELECT seq, at_ms, what, kind, id, number, body, actor, address FROM event "
        "WHERE kind = ?1 AND id = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4",
        {static_cast<int64_t>(query.subject->kind), std::string_view(query.subject->id), query.after, query.limit},
        take);
  } else {
    database.each_while(
        "SELECT seq, at_ms, what, kind, id, number, body, actor, address FROM event WHERE seq > ?1 "
        "ORDER BY seq LIMIT ?2",
        {query.after, query.limit}, take);
  }
  return events;
}

int64_t read_newest_event(Database& database, const Subject& subject) {
  int64_t newest = 0;
  database.each("SELECT coalesce(max(seq), 0) FROM event WHERE kind = ?1 AND id = ?2",
                {static_cast<int64_t>(subject.kind), std::string_view(subject.id)},
                [&](const Row& row) { newest = row.integer(0); });
  return newest;
}

}  // namespace sinew::store
