#include "store/schema.h"

namespace sinew::store {
namespace {

// The statements use SQLite's types and clauses (STRICT, WITHOUT ROWID); postgres_link.cpp translates them.
const std::vector<Migration>& all_migrations() {
  static const std::vector<Migration> steps = {
      {1,
       {
           // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): some statements span several literals
           "CREATE TABLE event(seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, what TEXT NOT NULL, kind INTEGER NOT "
           "NULL, "
           "id TEXT NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL) STRICT",
           "CREATE INDEX event_of ON event(kind, id, seq)",
           "CREATE TABLE record(seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, id TEXT NOT NULL, number INTEGER NOT "
           "NULL, "
           "parent TEXT NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL, "
           "begun_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, hidden INTEGER NOT NULL, body TEXT NOT NULL, "
           "params BLOB NOT NULL, tags BLOB NOT NULL) STRICT",
           "CREATE UNIQUE INDEX record_of ON record(kind, id, number)",
           "CREATE INDEX record_below ON record(kind, parent, seq)",
           "CREATE INDEX record_called ON record(kind, name, seq)",
           "CREATE INDEX record_made ON record(kind, seq)",
           "CREATE TABLE summary(run INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",
           "CREATE TABLE chunk(run INTEGER NOT NULL, series INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT "
           "NULL, "
           "PRIMARY KEY(run, series, part)) STRICT, WITHOUT ROWID",
           "CREATE TABLE tail(id INTEGER PRIMARY KEY, total INTEGER NOT NULL, data BLOB NOT NULL) STRICT",
           "CREATE TABLE alias(model TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, previous INTEGER NOT "
           "NULL, "
           "PRIMARY KEY(model, name)) STRICT, WITHOUT ROWID",
           "CREATE TABLE content(digest TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY(digest)) STRICT, WITHOUT "
           "ROWID",
           "CREATE TABLE attachment(kind INTEGER NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, path TEXT NOT "
           "NULL, "
           "digest TEXT NOT NULL, PRIMARY KEY(kind, id, number, path)) STRICT, WITHOUT ROWID",
           "CREATE INDEX attachment_of ON attachment(digest)",
           "CREATE TABLE link(kind INTEGER NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, role TEXT NOT NULL, "
           "to_kind INTEGER NOT NULL, to_id TEXT NOT NULL, to_number INTEGER NOT NULL, "
           "PRIMARY KEY(kind, id, number, role, to_kind, to_id, to_number)) STRICT, WITHOUT ROWID",
           "CREATE INDEX link_to ON link(to_kind, to_id, to_number)",
           "CREATE TABLE note(name TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY(name)) STRICT, WITHOUT ROWID",
           "CREATE TABLE trial(study TEXT NOT NULL, number INTEGER NOT NULL, state INTEGER NOT NULL, worker TEXT NOT "
           "NULL, "
           "fence INTEGER NOT NULL, until REAL NOT NULL, asked INTEGER NOT NULL, told INTEGER NOT NULL, "
           "PRIMARY KEY(study, number)) STRICT, WITHOUT ROWID",
           "CREATE INDEX trial_open ON trial(study, state, number) WHERE state < 3",
           "CREATE TABLE lease(name TEXT NOT NULL, holder TEXT NOT NULL, fence INTEGER NOT NULL, until REAL NOT NULL, "
           "PRIMARY KEY(name)) STRICT, WITHOUT ROWID",
           "CREATE TABLE receipt(key TEXT NOT NULL, at_ms INTEGER NOT NULL, answers TEXT NOT NULL, PRIMARY KEY(key)) "
           "STRICT, WITHOUT ROWID",
           "CREATE INDEX receipt_at ON receipt(at_ms)",
           "CREATE TABLE machine(id INTEGER PRIMARY KEY, boot TEXT NOT NULL) STRICT",
       }},
      {2, {"DROP TABLE trial"}},
      {3,
       {
           "ALTER TABLE record ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
           "ALTER TABLE record ADD COLUMN hidden_by TEXT NOT NULL DEFAULT ''",
           "ALTER TABLE event ADD COLUMN actor TEXT NOT NULL DEFAULT ''",
           "ALTER TABLE event ADD COLUMN address TEXT NOT NULL DEFAULT ''",
       }},
  };
  return steps;
}

int64_t version_of(Database& database) {
  int64_t version = 0;
  if (!database.has_table("migration")) return version;
  database.each("SELECT coalesce(max(version), 0) FROM migration", {},
                [&](const Row& row) { version = row.integer(0); });
  return version;
}

}  // namespace

std::span<const Migration> migrations() {
  return all_migrations();
}

void migrate(Database& database, std::span<const Migration> steps, int64_t at_ms, const std::string& where) {
  const int64_t newest = steps.empty() ? 0 : steps.back().version;
  database.begin_write();
  try {
    const int64_t version = version_of(database);
    if (version > newest) {
      throw Error("STORE_NEWER_VERSION",
                  "store " + where + " has version " + std::to_string(version) +
                      "; this program supports versions up to " + std::to_string(newest),
                  "use the newer program that upgraded it, or name another store");
    }
    if (version == 0 && newest > 0 && !database.has_table("migration")) {
      database.run("CREATE TABLE migration(version INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT", {});
    }
    for (const Migration& step : steps) {
      if (step.version <= version) continue;
      for (const std::string_view statement : step.statements) database.run(statement, {});
      database.run("INSERT INTO migration(version, at_ms) VALUES (?1, ?2)", {step.version, at_ms});
    }
    database.commit(Database::Durability::kDurable);
  } catch (...) {
    database.roll_back();
    throw;
  }
}

}  // namespace sinew::store
