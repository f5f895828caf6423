// Inside store/: the tables, and the way from an older version of them to this one.
#pragma once

#include <span>
#include <vector>

#include "store/database.h"

namespace sinew::store {

// One step forward: what turns the tables of the version before into its own. Never changed once released.
struct Migration {
  int64_t version = 0;
  std::vector<std::string_view> statements;
};
std::span<const Migration> migrations();

// Brings the database to the last of `steps`, in one transaction, whoever else tries the same. Throws Error when it is
// newer than that.
void migrate(Database& database, std::span<const Migration> steps, int64_t at_ms, const std::string& where);

}  // namespace sinew::store
