// Reads and moves the aliases of models. An alias is one row, so a promotion or a rollback is one write.
#include <nlohmann/json.hpp>

#include "store/transaction.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

Alias read_alias(Database& database, const std::string& model, const std::string& name) {
  Alias alias{name};
  database.each("SELECT version, previous FROM alias WHERE model = ?1 AND name = ?2",
                {std::string_view(model), std::string_view(name)}, [&](const Row& row) {
                  alias.version = row.integer(0);
                  alias.previous = row.integer(1);
                });
  return alias;
}

std::string target(int64_t version) {
  return version == 0 ? "no version" : "version " + std::to_string(version);
}

}  // namespace

// A removed alias keeps its row, with version 0, so that the store still knows its previous version.
Applied apply(Transaction& transaction, const SetAlias& change) {
  const auto refusal = Validator()
                           .id("the model's name", change.model)
                           .id("the alias", change.alias)
                           .require(change.version >= 0, "versions are numbered from 1")
                           .refusal();
  if (refusal) return std::unexpected(*refusal);
  Database& database = transaction.database;
  const Subject version{Kind::kVersion, change.model, change.version};
  if (change.version > 0 && record_seq(database, version) == 0) return not_found(version);
  const Alias current = read_alias(database, change.model, change.alias);
  if (change.expected && *change.expected != current.version) {
    return refused(Reason::kConflict, "alias \"" + change.alias + "\" of model \"" + change.model + "\" points at " +
                                          target(current.version) + ", not at " + target(*change.expected));
  }
  if (current.version == change.version) return Answer{change.version, 0, true};
  database.run(
      "INSERT INTO alias(model, name, version, previous) VALUES (?1, ?2, ?3, ?4) "
      "ON CONFLICT(model, name) DO UPDATE SET version = excluded.version, previous = excluded.previous",
      {std::string_view(change.model), std::string_view(change.alias), change.version, current.version});
  const nlohmann::json body{{"alias", change.alias}, {"from", current.version}, {"to", change.version}};
  add_event(transaction, "alias", {Kind::kModel, change.model}, body.dump());
  return Answer{change.version};
}

std::vector<Alias> read_aliases(Database& database, const std::string& model) {
  std::vector<Alias> aliases;
  database.each("SELECT name, version, previous FROM alias WHERE model = ?1 AND version > 0 ORDER BY name",
                {std::string_view(model)}, [&](const Row& row) {
                  aliases.push_back({std::string(row.text(0)), row.integer(1), row.integer(2)});
                });
  return aliases;
}

}  // namespace sinew::store
