// Inside store/: one SQLite connection that waits while other processes hold the file's locks, and that syncs the WAL
// itself. SQLite's types stay inside sqlite*.cpp.
#pragma once

#include <functional>
#include <random>
#include <string>

#include "store/database.h"

struct sqlite3;

namespace sinew::store {

class SqliteConnection {
 public:
  // Opens the file, creates it if `access` allows writing, and puts it into WAL mode. Throws Error when the file
  // belongs to another program or cannot be opened.
  SqliteConnection(const std::string& path, const Options& options, Access access);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  sqlite3* handle() const { return db_; }
  // Executes a statement without parameters and returns SQLite's result code.
  int execute(const char* sql);
  // Calls `attempt`, which returns a result code, again until SQLite is no longer busy. SQLite reports "busy" without
  // waiting during recovery, while the last user closes the file, and when many processes start at once. Throws Error
  // when `attempt` fails otherwise, or after the lock timeout; `doing` describes the action in the message.
  void retry_while_busy(const std::string& doing, const std::function<int()>& attempt);
  // Throws the Error for a result code.
  [[noreturn]] void fail(const std::string& doing, int code);

  // Reads the header of the file from the disk. Returns what is wrong with it, or "".
  std::string header_problem();

  // Syncs the WAL to the disk. Throws OutcomeUnknown when the disk does not confirm it.
  void sync_wal();
  // Does nothing if the last sync succeeded. Otherwise copies the WAL to the database file, syncs that file and starts
  // an empty WAL. After a failed sync the kernel may regard pages as written that are not, so a second sync of the same
  // WAL would prove nothing.
  void recover_unsynced_wal();

 private:
  static int on_busy(void* self, int tries);
  static int on_progress(void* self);
  bool wait_a_little(int tries, double since);
  int last_errno();
  int64_t pragma(const char* sql);
  void prepare(Access access);
  void refuse_foreign_wal();
  void sync_directory();

  const std::string path_;
  Clock& clock_;
  const double lock_timeout_seconds_;
  std::minstd_rand jitter_;
  double busy_since_ = 0;
  bool wal_unsynced_ = false;
  sqlite3* db_ = nullptr;
};

}  // namespace sinew::store
