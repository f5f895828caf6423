// Creates and changes experiments, runs, models, versions and studies. All of them are rows of one table.
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "store/run_states.h"
#include "store/transaction.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;
using nlohmann::json;

struct StoredRecord {
  int64_t seq = 0;
  std::string name, body;
  RunState state = RunState::kRunning;
  int64_t attempt = 0, ended_ms = 0, hidden = 0;
  Labels params, tags;
  std::string hidden_by;
};

// Returns the value as an event has it. Events are never removed, so a long value is only named there, by its digest.
json value_in_event(const std::string& value) {
  constexpr size_t kMaxBytes = 4096;
  if (value.size() <= kMaxBytes) return value;
  return {{"sha256", sha256_hex(value)}, {"bytes", value.size()}};
}

std::optional<StoredRecord> find_record(Database& database, const Subject& subject) {
  std::optional<StoredRecord> found;
  database.each(
      "SELECT seq, name, body, state, attempt, ended_ms, hidden, params, tags, hidden_by FROM record "
      "WHERE kind = ?1 AND id = ?2 AND number = ?3",
      {static_cast<int64_t>(subject.kind), std::string_view(subject.id), subject.number}, [&](const Row& row) {
        found = StoredRecord{row.integer(0),
                             std::string(row.text(1)),
                             std::string(row.text(2)),
                             static_cast<RunState>(row.integer(3)),
                             row.integer(4),
                             row.integer(5),
                             row.integer(6),
                             unpack_labels(row.text(7)),
                             unpack_labels(row.text(8)),
                             std::string(row.text(9))};
      });
  return found;
}

bool name_is_taken(Database& database, const Subject& subject, const std::string& name) {
  if (subject.kind != Kind::kExperiment && subject.kind != Kind::kStudy) return false;
  bool taken = false;
  database.each("SELECT id FROM record WHERE kind = ?1 AND name = ?2",
                {static_cast<int64_t>(subject.kind), std::string_view(name)},
                [&](const Row& row) { taken |= row.text(0) != subject.id; });
  return taken;
}

std::unexpected<Refusal> name_taken(const Subject& subject, const std::string& name) {
  return refused(Reason::kExists,
                 std::string("another ") + to_string(subject.kind) + " already has the name \"" + name + "\"");
}

int64_t next_version(Database& database, const std::string& model) {
  int64_t number = 0;
  database.each("SELECT coalesce(max(number), 0) FROM record WHERE kind = ?1 AND id = ?2",
                {static_cast<int64_t>(Kind::kVersion), std::string_view(model)},
                [&](const Row& row) { number = row.integer(0); });
  return number + 1;
}

// Returns a refusal if the record's parent does not exist: the experiment of a run, or the model of a version.
std::optional<Refusal> missing_parent(Database& database, const Create& change) {
  Subject parent{Kind::kExperiment, change.parent};
  if (change.subject.kind == Kind::kVersion)
    parent = {Kind::kModel, change.subject.id};
  else if (change.subject.kind != Kind::kRun)
    return std::nullopt;
  if (record_seq(database, parent) != 0) return std::nullopt;
  return not_found(parent).error();
}

std::optional<Refusal> validate(const Create& change) {
  const Kind kind = change.subject.kind;
  const bool known = kind >= Kind::kExperiment && kind <= Kind::kStudy;
  return Validator()
      .require(known, "only experiments, runs, models, versions and studies can be created")
      .require(change.subject.number == 0, "the number of a new record must be 0: the store numbers versions")
      .require(change.state >= RunState::kQueued && !is_over(change.state),
               "a new run must be queued, running or paused")
      .id("the id", change.subject.id)
      .name("the parent", change.parent)
      .name("the name", change.name)
      .body("the body", change.body)
      .labels("parameter", change.params)
      .labels("tag", change.tags)
      .refusal();
}

std::string dump(const json& value) {
  return value.dump();
}

}  // namespace

int64_t record_seq(Database& database, const Subject& subject) {
  int64_t seq = 0;
  database.each("SELECT seq FROM record WHERE kind = ?1 AND id = ?2 AND number = ?3",
                {static_cast<int64_t>(subject.kind), std::string_view(subject.id), subject.number},
                [&](const Row& row) { seq = row.integer(0); });
  return seq;
}

Applied apply(Transaction& transaction, const Create& change) {
  Database& database = transaction.database;
  if (const auto refusal = validate(change)) return std::unexpected(*refusal);
  Subject subject = change.subject;
  const std::string& name = change.name.empty() ? subject.id : change.name;
  if (const auto refusal = missing_parent(database, change)) return std::unexpected(*refusal);
  if (subject.kind == Kind::kVersion)
    subject.number = next_version(database, subject.id);
  else if (record_seq(database, subject) != 0)
    return refused(Reason::kExists, in_words(subject) + " already exists");
  if (name_is_taken(database, subject, name)) return name_taken(subject, name);
  const int64_t seq = add_event(transaction, "create", subject, dump({{"name", name}, {"parent", change.parent}}));
  const bool is_run = subject.kind == Kind::kRun;
  const std::string params = pack_labels(change.params), tags = pack_labels(change.tags);
  database.run(
      "INSERT INTO record(seq, kind, id, number, parent, name, state, attempt, begun_ms, ended_ms, hidden, body, "
      "params, tags, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, 0, 0, ?9, ?10, ?11, ?12)",
      {seq, static_cast<int64_t>(subject.kind), std::string_view(subject.id), subject.number,
       std::string_view(change.parent), std::string_view(name), is_run ? static_cast<int64_t>(change.state) : 0,
       change.begun_ms == 0 ? transaction.at_ms : change.begun_ms, std::string_view(change.body), Bytes{params},
       Bytes{tags}, std::string_view(transaction.actor.name)});
  return Answer{subject.number};
}

Applied apply(Transaction& transaction, const Update& change) {
  const auto refusal = Validator()
                           .name("the name", change.name.value_or(""))
                           .require(!change.name || !change.name->empty(), "the name must not be empty")
                           .body("the body", change.body.value_or(""))
                           .refusal();
  if (refusal) return std::unexpected(*refusal);
  const auto found = find_record(transaction.database, change.subject);
  if (!found) return not_found(change.subject);
  const std::string& name = change.name ? *change.name : found->name;
  const std::string& body = change.body ? *change.body : found->body;
  const int64_t hidden = change.hidden ? static_cast<int64_t>(*change.hidden) : found->hidden;
  std::string hidden_by = hidden == 0 ? "" : found->hidden_by;
  // If a program without an actor hides a record again, hidden_by keeps its actor. Example: the index hides the run of
  // a directory that is gone. Otherwise a run that a user has hidden would come back with its directory.
  if (change.hidden.value_or(false) && !transaction.actor.name.empty()) hidden_by = transaction.actor.name;
  if (name == found->name && body == found->body && hidden == found->hidden && hidden_by == found->hidden_by)
    return Answer{0, 0, true};
  if (name != found->name && name_is_taken(transaction.database, change.subject, name)) {
    return name_taken(change.subject, name);
  }
  transaction.database.run(
      "UPDATE record SET name = ?1, body = ?2, hidden = ?3, hidden_by = ?4 WHERE seq = ?5",
      {std::string_view(name), std::string_view(body), hidden, std::string_view(hidden_by), found->seq});
  add_event(transaction, "amend", change.subject, dump({{"name", name}, {"hidden", hidden != 0}}));
  return Answer{};
}

Applied apply(Transaction& transaction, const SetParams& change) {
  if (const auto refusal = Validator().labels("parameter", change.params).refusal()) return std::unexpected(*refusal);
  auto found = find_record(transaction.database, change.subject);
  if (!found) return not_found(change.subject);
  const size_t before = found->params.size();
  json event = json::object();
  for (const auto& [key, value] : change.params) {
    event[key] = value_in_event(value);
    const auto [place, added] = found->params.emplace(key, value);
    if (!added && place->second != value) {
      return refused(Reason::kConflict, "parameter \"" + key + "\" of " + in_words(change.subject) + " is \"" +
                                            place->second + "\"; a parameter cannot be changed");
    }
  }
  if (found->params.size() == before) return Answer{0, 0, true};
  if (const auto refusal = Validator().labels("parameter", found->params).refusal()) return std::unexpected(*refusal);
  const std::string params = pack_labels(found->params);
  transaction.database.run("UPDATE record SET params = ?1 WHERE seq = ?2", {Bytes{params}, found->seq});
  add_event(transaction, "params", change.subject, dump(event));
  return Answer{};
}

Applied apply(Transaction& transaction, const SetTags& change) {
  Labels given;
  json event;
  for (const auto& [key, value] : change.tags) given[key] = value.value_or("");
  if (const auto refusal = Validator().labels("tag", given).refusal()) return std::unexpected(*refusal);
  auto found = find_record(transaction.database, change.subject);
  if (!found) return not_found(change.subject);
  const Labels before = found->tags;
  for (const auto& [key, value] : change.tags) {
    if (value)
      found->tags[key] = *value;
    else
      found->tags.erase(key);
    event[key] = value ? value_in_event(*value) : json();
  }
  if (found->tags == before) return Answer{0, 0, true};
  if (const auto refusal = Validator().labels("tag", found->tags).refusal()) return std::unexpected(*refusal);
  const std::string tags = pack_labels(found->tags);
  transaction.database.run("UPDATE record SET tags = ?1 WHERE seq = ?2", {Bytes{tags}, found->seq});
  add_event(transaction, "tags", change.subject, dump(event));
  return Answer{};
}

Applied apply(Transaction& transaction, const SetRunState& change) {
  const bool known = change.to >= RunState::kQueued && change.to <= RunState::kStopped;
  const auto refusal = Validator().require(known, "a run has no such state").body("the reason", change.why).refusal();
  if (refusal) return std::unexpected(*refusal);
  const Subject run{Kind::kRun, change.run};
  const auto found = find_record(transaction.database, run);
  if (!found) return not_found(run);
  const Transition transition = judge_transition(found->state, change.to, change.reopen);
  if (transition.verdict == Transition::kRepeated) return Answer{found->attempt, 0, true};
  if (transition.verdict == Transition::kRefused) return refused(Reason::kConflict, in_words(run) + transition.why);
  const int64_t attempt = found->attempt + (transition.verdict == Transition::kNewAttempt ? 1 : 0);
  const int64_t at_ms = change.at_ms == 0 ? transaction.at_ms : change.at_ms;
  transaction.database.run("UPDATE record SET state = ?1, attempt = ?2, ended_ms = ?3 WHERE seq = ?4",
                           {static_cast<int64_t>(change.to), attempt, is_over(change.to) ? at_ms : 0, found->seq});
  add_event(transaction, to_string(change.to), run,
            dump({{"was", to_string(found->state)}, {"attempt", attempt}, {"why", change.why}}));
  return Answer{attempt};
}

}  // namespace sinew::store
