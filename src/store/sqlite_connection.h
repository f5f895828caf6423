// Inside store/: an SQLite connection that waits while other processes hold the file's locks, and that syncs the WAL
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
  // Opens the file and puts it into WAL mode. Creates it if `access` allows writing. Throws Error if the file belongs
  // to another program or cannot be opened.
  SqliteConnection(const std::string& path, const Options& options, Access access);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  sqlite3* handle() const { return db_; }
  // Executes a statement without parameters and returns SQLite's result code.
  int execute(const char* sql);
  // Calls `attempt` again until it returns another result code than "busy". SQLite reports "busy" without waiting
  // during recovery, while the last user closes the file, and when many processes start at once. Throws Error if
  // `attempt` fails in another way, or after the lock timeout. `doing` describes the action in the message.
  void retry_while_busy(const std::string& doing, const std::function<int()>& attempt);
  // Throws the Error that describes SQLite's result code.
  [[noreturn]] void fail(const std::string& doing, int code);

  // Reads the header of the file from the disk. Returns what is wrong with it, or "" if nothing is.
  std::string header_problem();
  // Returns the size that the header of the file says the file has. Pages that are only in the WAL are not in it.
  int64_t bytes_in_header();

  // Syncs the WAL to the disk. Throws OutcomeUnknown if the disk does not confirm the sync.
  void sync_wal();
  // Does nothing if the last sync succeeded. Otherwise copies the WAL to the database file, syncs this file and starts
  // an empty WAL. A second sync of the same WAL would prove nothing: after a failed sync the kernel may treat pages as
  // written although they are not.
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
