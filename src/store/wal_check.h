// Inside store/: finds out whether the WAL beside a SQLite store belongs to that store.
//
// SQLite applies every WAL that it finds beside a database. If a user restores the database from a backup and leaves
// the WAL of the lost database in place, SQLite mixes the two. Pure, apart from reading files.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::store {

// What the header of the database file says. The caller has read it, because opening the file again would release
// SQLite's locks.
struct DatabaseFile {
  int64_t page_bytes = 0;  // 0: the file is empty
  int64_t pages = 0;
};
// Returns why the WAL cannot belong to the database. Returns "" if it can, if there is no WAL, or if it holds no
// transaction.
std::string foreign_wal(const std::string& wal, const DatabaseFile& database);

// Returns whether a process uses the store: then it holds a lock on the file -shm.
bool is_in_use(const std::string& shm);

}  // namespace sinew::store
