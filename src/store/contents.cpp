// Writes and reads what belongs to records: contents by digest and their attachments, links of lineage, and notes.
#include <nlohmann/json.hpp>

#include "base/cost_limit.h"
#include "store/transaction.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;
using nlohmann::json;

// Returns the digest of the content that the record has at this path, or "" if it has none.
std::string attached(Database& database, const Subject& subject, const std::string& path) {
  std::string digest;
  database.each(
      "SELECT digest FROM attachment WHERE kind = ?1 AND id = ?2 AND number = ?3 AND path = ?4",
      {static_cast<int64_t>(subject.kind), std::string_view(subject.id), subject.number, std::string_view(path)},
      [&](const Row& row) { digest = row.text(0); });
  return digest;
}

}  // namespace

Applied apply(Transaction& transaction, const Attach& change) {
  const auto refusal = Validator()
                           .id("the path", change.path)
                           .id("the digest", change.digest)
                           .require(change.bytes >= 0, "the size must not be negative")
                           .refusal();
  if (refusal) return std::unexpected(*refusal);
  Database& database = transaction.database;
  if (record_seq(database, change.subject) == 0) return not_found(change.subject);
  if (attached(database, change.subject, change.path) == change.digest) return Answer{0, 0, true};
  database.run("INSERT INTO content(digest, bytes) VALUES (?1, ?2) ON CONFLICT(digest) DO NOTHING",
               {std::string_view(change.digest), change.bytes});
  database.run(
      "INSERT INTO attachment(kind, id, number, path, digest) VALUES (?1, ?2, ?3, ?4, ?5) "
      "ON CONFLICT(kind, id, number, path) DO UPDATE SET digest = excluded.digest",
      {static_cast<int64_t>(change.subject.kind), std::string_view(change.subject.id), change.subject.number,
       std::string_view(change.path), std::string_view(change.digest)});
  add_event(transaction, "attach", change.subject, json{{"path", change.path}, {"digest", change.digest}}.dump());
  return Answer{};
}

Applied apply(Transaction& transaction, const Detach& change) {
  if (const auto refusal = Validator().id("the path", change.path).refusal()) return std::unexpected(*refusal);
  const std::string digest = attached(transaction.database, change.subject, change.path);
  if (digest.empty()) return Answer{0, 0, true};
  transaction.database.run("DELETE FROM attachment WHERE kind = ?1 AND id = ?2 AND number = ?3 AND path = ?4",
                           {static_cast<int64_t>(change.subject.kind), std::string_view(change.subject.id),
                            change.subject.number, std::string_view(change.path)});
  add_event(transaction, "detach", change.subject, json{{"path", change.path}, {"digest", digest}}.dump());
  return Answer{};
}

Applied apply(Transaction& transaction, const ForgetContent& change) {
  if (const auto refusal = Validator().id("the digest", change.digest).refusal()) return std::unexpected(*refusal);
  Database& database = transaction.database;
  bool known = false, referred = false;
  database.each("SELECT 1 FROM content WHERE digest = ?1", {std::string_view(change.digest)},
                [&](const Row&) { known = true; });
  if (!known) return Answer{0, 0, true};
  database.each("SELECT 1 FROM attachment WHERE digest = ?1 LIMIT 1", {std::string_view(change.digest)},
                [&](const Row&) { referred = true; });
  if (referred) return refused(Reason::kConflict, "content " + change.digest + " is still attached to a record");
  database.run("DELETE FROM content WHERE digest = ?1", {std::string_view(change.digest)});
  add_event(transaction, "forget", {Kind::kContent, change.digest}, "");
  return Answer{};
}

Applied apply(Transaction& transaction, const Link& change) {
  const auto refusal =
      Validator().id("the role", change.role).id("the id", change.from.id).id("the id", change.to.id).refusal();
  if (refusal) return std::unexpected(*refusal);
  Database& database = transaction.database;
  if (record_seq(database, change.from) == 0) return not_found(change.from);
  const auto from_kind = static_cast<int64_t>(change.from.kind), to_kind = static_cast<int64_t>(change.to.kind);
  bool there = false;
  database.each(
      "SELECT 1 FROM link WHERE kind = ?1 AND id = ?2 AND number = ?3 AND role = ?4 AND to_kind = ?5 AND to_id = ?6 "
      "AND to_number = ?7",
      {from_kind, std::string_view(change.from.id), change.from.number, std::string_view(change.role), to_kind,
       std::string_view(change.to.id), change.to.number},
      [&](const Row&) { there = true; });
  if (there) return Answer{0, 0, true};
  database.run(
      "INSERT INTO link(kind, id, number, role, to_kind, to_id, to_number) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
      {from_kind, std::string_view(change.from.id), change.from.number, std::string_view(change.role), to_kind,
       std::string_view(change.to.id), change.to.number});
  const json body{
      {"role", change.role}, {"kind", to_string(change.to.kind)}, {"id", change.to.id}, {"number", change.to.number}};
  add_event(transaction, "link", change.from, body.dump());
  return Answer{};
}

Applied apply(Transaction& transaction, const SetNote& change) {
  const auto refusal = Validator().id("the note's name", change.name).body("the note", change.text).refusal();
  if (refusal) return std::unexpected(*refusal);
  transaction.database.run(
      "INSERT INTO note(name, text) VALUES (?1, ?2) ON CONFLICT(name) DO UPDATE SET text = excluded.text",
      {std::string_view(change.name), std::string_view(change.text)});
  return Answer{};
}

// All paths in a folder begin with the folder's name and '/'. The character after '/' is '0'. So the paths in folder F
// form the range from "F/" up to "F0", which the index of the primary key finds.
std::vector<Attachment> read_attachments(Database& database, const Subject& subject, const std::string& folder) {
  static_assert('/' + 1 == '0');
  std::vector<Attachment> found;
  const auto take = [&](const Row& row) {
    found.push_back({std::string(row.text(0)), std::string(row.text(1)), row.integer(2)});
    CostLimit::hold_current(static_cast<int64_t>(sizeof(Attachment) + row.text(0).size() + row.text(1).size()));
  };
  const auto kind = static_cast<int64_t>(subject.kind);
  if (folder.empty()) {
    database.each(
        "SELECT path, attachment.digest, bytes FROM attachment JOIN content ON content.digest = attachment.digest "
        "WHERE kind = ?1 AND id = ?2 AND number = ?3 ORDER BY path",
        {kind, std::string_view(subject.id), subject.number}, take);
    return found;
  }
  const std::string first = folder + "/", end = folder + "0";
  database.each(
      "SELECT path, attachment.digest, bytes FROM attachment JOIN content ON content.digest = attachment.digest "
      "WHERE kind = ?1 AND id = ?2 AND number = ?3 AND path >= ?4 AND path < ?5 ORDER BY path",
      {kind, std::string_view(subject.id), subject.number, std::string_view(first), std::string_view(end)}, take);
  return found;
}

std::optional<Attachment> read_attachment(Database& database, const Subject& subject, const std::string& path) {
  std::optional<Attachment> found;
  database.each(
      "SELECT path, attachment.digest, bytes FROM attachment JOIN content ON content.digest = attachment.digest "
      "WHERE kind = ?1 AND id = ?2 AND number = ?3 AND path = ?4",
      {static_cast<int64_t>(subject.kind), std::string_view(subject.id), subject.number, std::string_view(path)},
      [&](const Row& row) {
        found = {std::string(row.text(0)), std::string(row.text(1)), row.integer(2)};
      });
  return found;
}

std::vector<Content> read_contents(Database& database, bool referenced) {
  std::vector<Content> found;
  database.each(
      referenced ? "SELECT digest, bytes FROM content WHERE EXISTS (SELECT 1 FROM attachment WHERE attachment.digest = "
                   "content.digest) ORDER BY digest"
                 : "SELECT digest, bytes FROM content WHERE NOT EXISTS (SELECT 1 FROM attachment WHERE "
                   "attachment.digest = content.digest) ORDER BY digest",
      {}, [&](const Row& row) {
        found.push_back({std::string(row.text(0)), row.integer(1)});
      });
  return found;
}

std::vector<Link> read_links(Database& database, const Subject& subject) {
  std::vector<Link> found;
  const auto take = [&](const Row& row) {
    found.push_back({{static_cast<Kind>(row.integer(0)), std::string(row.text(1)), row.integer(2)},
                     std::string(row.text(3)),
                     {static_cast<Kind>(row.integer(4)), std::string(row.text(5)), row.integer(6)}});
  };
  const auto kind = static_cast<int64_t>(subject.kind);
  database.each(
      "SELECT kind, id, number, role, to_kind, to_id, to_number FROM link WHERE kind = ?1 AND id = ?2 AND number = ?3 "
      "ORDER BY role, to_kind, to_id, to_number",
      {kind, std::string_view(subject.id), subject.number}, take);
  database.each(
      "SELECT kind, id, number, role, to_kind, to_id, to_number FROM link WHERE to_kind = ?1 AND to_id = ?2 AND "
      "to_number = ?3 "
      "ORDER BY kind, id, number, role",
      {kind, std::string_view(subject.id), subject.number}, take);
  return found;
}

std::string read_note(Database& database, const std::string& name) {
  std::string text;
  database.each("SELECT text FROM note WHERE name = ?1", {std::string_view(name)},
                [&](const Row& row) { text = row.text(0); });
  return text;
}

}  // namespace sinew::store
