// Inside store/: finds out whether the WAL beside a SQLite store belongs to it.
//
// SQLite applies every WAL that it finds beside a database. If somebody has restored the database from a backup and has
// left the WAL of the lost one there, SQLite mixes the two. Pure, apart from reading files.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::store {

// The file of the database itself, whose header the caller has read (opening it again would release SQLite's locks).
struct DatabaseFile {
  int64_t page_bytes = 0;  // 0: the file is empty
  int64_t pages = 0;
};
// Returns why the WAL cannot belong to the database, or "" if it can, if there is none or if it holds no transaction.
std::string foreign_wal(const std::string& wal, const DatabaseFile& database);

// Returns whether a process uses the store: it holds a lock on the file -shm.
bool is_in_use(const std::string& shm);

}  // namespace sinew::store
