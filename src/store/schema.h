// Inside store/: creates the tables of a store, and upgrades the tables of an older store.
#pragma once

#include <span>
#include <vector>

#include "store/database.h"

namespace sinew::store {

// One upgrade step: the statements that turn the tables of the previous version into those of `version`. A step that
// was released never changes.
struct Migration {
  int64_t version = 0;
  std::vector<std::string_view> statements;
};
std::span<const Migration> migrations();

// Upgrades the database to the last of `steps` in one transaction. Several processes may call it at once. Throws Error
// (STORE_NEWER_VERSION) if the database is newer than the last step. `where` names the store in the message.
void migrate(Database& database, std::span<const Migration> steps, int64_t at_ms, const std::string& where);

}  // namespace sinew::store
