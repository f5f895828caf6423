// One SQLite connection. Durable and shared by many processes:
//
// - The file is in WAL mode, set once, when it is made, under retry: several openers that set it at once are told
//   "locked" whatever their timeout.
// - A transaction that writes begins with BEGIN IMMEDIATE: one that reads first and writes later can fail with
//   SQLITE_BUSY_SNAPSHOT, for which there is no waiting. Whoever has to wait sleeps short, random times.
// - A commit appends to the WAL with synchronous=NORMAL, which lets the next writer in at once, and then syncs the WAL
//   itself before it returns. So no writer waits for another's disk, and the disk joins syncs that are asked for
//   together: a group commit across processes. Frames lie in the WAL in the order of commits, so what a transaction has
//   read is durable when it is. A checkpoint in between has synced both files.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <unordered_map>

#include "base/check.h"
#include "store/database.h"

namespace sinew::store {
namespace {

constexpr int kApplicationId = 0x53494e57;  // "SINW"

[[noreturn]] void fail(const std::string& path, const std::string& doing, int code, int system_code,
                       const std::string& message) {
  const std::string what = "store " + path + ": " + doing + ": " + message;
  const int kind = code & 0xff;
  if (kind == SQLITE_FULL || system_code == ENOSPC || system_code == EFBIG || system_code == EDQUOT) {
    throw Error("store " + path + ": " + doing + ": no space left",
                "free space on that disk; nothing that was acknowledged is lost");
  }
  switch (kind) {
    case SQLITE_CORRUPT:
      throw Error(what, "the file is damaged: keep a copy, then restore a backup or try `sqlite3 FILE .recover`");
    case SQLITE_NOTADB:
      throw Error("store " + path + ": this is not a database", "name another file, or move this one away");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Error("store " + path + ": " + doing + ": it can not be written (" + message + ")",
                  "give this user the right to write the file and its directory");
    case SQLITE_CANTOPEN:
      throw Error("store " + path + ": it can not be opened" +
                      (system_code != 0 ? ": " + std::string(std::strerror(system_code)) : ""),
                  "check that its directory exists and that this user may write there");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      throw Error(what + " by another process for too long", "see who has the file open (`fuser FILE`)");
    case SQLITE_IOERR:
      throw Error(what + (system_code != 0 ? " (" + std::string(std::strerror(system_code)) + ")" : ""),
                  "check the disk; what was acknowledged is in the file as far as the disk gives it back");
    default: throw Error(what, "");
  }
}

class SqliteRow final : public Row {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t integer(int column) const override { return sqlite3_column_int64(statement_, column); }
  double real(int column) const override { return sqlite3_column_double(statement_, column); }
  std::string_view text(int column) const override {
    const void* bytes = sqlite3_column_blob(statement_, column);  // of a TEXT its UTF-8
    return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
};

class Sqlite final : public Database {
 public:
  Sqlite(const std::string& path, const Options& options, Use use)
      : path_(path), clock_(*options.clock), patience_(options.patience_seconds), jitter_(std::random_device()()) {
    const bool fresh = use == Use::kWrite && ::access(path.c_str(), F_OK) != 0;
    const int code = sqlite3_open_v2(
        path.c_str(), &db_, SQLITE_OPEN_READWRITE | (use == Use::kWrite ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX,
        nullptr);
    try {
      if (code != SQLITE_OK) refuse("opening", code);
      sqlite3_extended_result_codes(db_, 1);
      sqlite3_busy_handler(db_, &Sqlite::on_busy, this);
      prepare_connection(use);
      if (fresh) sync_directory();
    } catch (...) {
      close();
      throw;
    }
  }
  ~Sqlite() override { close(); }

  void begin_write() override {
    if (wal_in_doubt_) settle_wal();
    patiently("waiting to write", [this] { return execute("BEGIN IMMEDIATE"); });
  }
  void begin_read() override {
    // The snapshot is taken by the first read, not by BEGIN: take it here, where it may be waited for.
    patiently("beginning to read", [this] {
      int code = execute("BEGIN");
      if (code == SQLITE_OK) code = execute("SELECT 1 FROM sqlite_master LIMIT 1");
      if (code != SQLITE_OK) roll_back();
      return code;
    });
  }
  void commit(Promise promise) override {
    const int code = execute("COMMIT");
    if (code != SQLITE_OK) refuse("committing", code);
    if (promise == Promise::kDurable) sync_wal();
  }
  void roll_back() noexcept override {
    if (sqlite3_get_autocommit(db_) == 0) execute("ROLLBACK");  // after some failures SQLite has done so itself
  }

  void run(std::string_view sql, std::initializer_list<Value> values) override {
    each(sql, values, [](const Row&) {});
  }
  void each(std::string_view sql, std::initializer_list<Value> values,
            const std::function<void(const Row&)>& take) override {
    sqlite3_stmt* statement = prepared(sql);
    int place = 0;
    for (const Value& value : values) bind(statement, ++place, value);
    const SqliteRow row(statement);
    struct Reset {
      sqlite3_stmt* statement;
      ~Reset() { sqlite3_reset(statement); }
    } reset{statement};
    int code = SQLITE_OK;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) take(row);
    if (code != SQLITE_DONE) refuse(sqlite3_get_autocommit(db_) != 0 ? "reading" : "writing", code);
  }

  // The machine's own clock, which all users of a file share, does not jump and begins anew with the machine.
  double now() override { return clock_.monotonic_seconds(); }
  bool has_table(std::string_view name) override {
    bool found = false;
    each("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1", {name}, [&](const Row&) { found = true; });
    return found;
  }
  std::vector<std::string> check() override {
    std::vector<std::string> found;
    each("PRAGMA integrity_check", {}, [&](const Row& row) {
      if (row.text(0) != "ok") found.emplace_back(row.text(0));
    });
    return found;
  }

 private:
  // Waits of 0.1 ms, growing to 5 ms, each halved or not at random, so that those who wait do not meet again.
  static int on_busy(void* self, int tries) {
    auto& me = *static_cast<Sqlite*>(self);
    if (tries == 0) me.busy_since_ = me.clock_.monotonic_seconds();
    return me.wait_a_little(tries, me.busy_since_) ? 1 : 0;
  }
  bool wait_a_little(int tries, double since) {
    if (clock_.monotonic_seconds() - since > patience_) return false;
    const double longest = std::min(0.005, 0.0001 * (1 << std::min(tries, 10)));
    clock_.sleep_seconds(longest * std::uniform_real_distribution(0.25, 1.0)(jitter_));
    return true;
  }
  // For what SQLite reports as busy without having waited: recovery, the last user's closing, a crowd at the gate.
  template <typename Try>
  void patiently(const std::string& doing, const Try& attempt) {
    const double since = clock_.monotonic_seconds();
    for (int tries = 0;; ++tries) {
      const int code = attempt();
      if (code == SQLITE_OK) return;
      const int kind = code & 0xff;
      const bool busy = kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_PROTOCOL;
      if (!busy || !wait_a_little(tries, since)) refuse(doing, code);
    }
  }
  int execute(const char* sql) { return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr); }
  [[noreturn]] void refuse(const std::string& doing, int code) {
    if (db_ == nullptr) fail(path_, doing, code, 0, sqlite3_errstr(code));
    const std::string message = sqlite3_errmsg(db_);
    int system_code = sqlite3_system_errno(db_);
    if (system_code == 0 && (code & 0xff) == SQLITE_IOERR) system_code = last_errno();
    fail(path_, doing, code, system_code, message);
  }
  // What the system said last of the WAL or the file: SQLite itself may have forgotten it while it cleaned up.
  int last_errno() {
    int found = 0;
    sqlite3_file* wal = nullptr;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&wal));
    if (wal != nullptr && wal->pMethods != nullptr) wal->pMethods->xFileControl(wal, SQLITE_FCNTL_LAST_ERRNO, &found);
    if (found == 0) sqlite3_file_control(db_, "main", SQLITE_FCNTL_LAST_ERRNO, &found);
    return found;
  }

  int64_t pragma(const char* sql) {
    int64_t value = 0;
    patiently("reading its header", [&] {
      return sqlite3_exec(
          db_, sql,
          [](void* out, int, char** columns, char**) {
            *static_cast<int64_t*>(out) = columns[0] == nullptr                 ? 0
                                          : std::strcmp(columns[0], "wal") == 0 ? -1
                                                                                : std::atoll(columns[0]);
            return 0;
          },
          &value, nullptr);
    });
    return value;
  }
  void prepare_connection(Use use) {
    const bool empty = pragma("SELECT count(*) FROM sqlite_master") == 0;
    const int64_t owner = pragma("PRAGMA application_id");
    if (owner != kApplicationId && !(owner == 0 && empty)) {
      throw Error("store " + path_ + ": this is the database of another program", "name another file");
    }
    if (sqlite3_db_readonly(db_, "main") == 1) refuse("opening", SQLITE_READONLY);
    if (pragma("PRAGMA journal_mode") != -1) {
      patiently("making it", [this] { return execute("PRAGMA journal_mode = WAL"); });
      if (pragma("PRAGMA journal_mode") != -1) {
        throw Error("store " + path_ + ": this file system has no shared memory for SQLite's WAL",
                    "put the store on a local disk");
      }
    }
    if (owner != kApplicationId)
      patiently("making it", [this] { return execute("PRAGMA application_id = 1397313111"); });
    for (const char* sql : {"PRAGMA synchronous = NORMAL", "PRAGMA wal_autocheckpoint = 4000",
                            "PRAGMA cache_size = -16000", "PRAGMA foreign_keys = OFF", "PRAGMA trusted_schema = OFF"}) {
      patiently("opening", [&] { return execute(sql); });
    }
    if (use == Use::kRead) patiently("opening", [this] { return execute("PRAGMA query_only = 1"); });
  }

  void sync_wal() {
    sqlite3_file* wal = nullptr;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&wal));
    if (wal == nullptr || wal->pMethods == nullptr) return;  // nobody has written since the last checkpoint
    const int code = wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    if (code == SQLITE_OK) return;
    wal_in_doubt_ = true;
    throw Unsettled(
        "store " + path_ + ": committing: the disk did not confirm what was written: " + std::strerror(errno),
        "check the disk and its free space; write it again under the same key");
  }
  // After a failed sync the kernel may count pages as written that are not, and the next sync of them proves nothing.
  // All that the WAL holds is copied to the file, synced there, and the WAL begun anew.
  void settle_wal() {
    patiently("settling what the disk did not confirm", [this] {
      int busy = 0;
      const int code = sqlite3_exec(
          db_, "PRAGMA wal_checkpoint(TRUNCATE)",
          [](void* out, int, char** columns, char**) {
            *static_cast<int*>(out) = std::atoi(columns[0]);
            return 0;
          },
          &busy, nullptr);
      return code == SQLITE_OK && busy != 0 ? SQLITE_BUSY : code;
    });
    wal_in_doubt_ = false;
  }
  void sync_directory() {
    const auto slash = path_.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return;
    ::fsync(directory);
    ::close(directory);
  }

  sqlite3_stmt* prepared(std::string_view sql) {
    const auto found = statements_.find(sql);
    if (found != statements_.end()) return found->second;
    sqlite3_stmt* statement = nullptr;
    patiently("reading its schema", [&] {
      return sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &statement,
                                nullptr);
    });
    return statements_[sql] = statement;
  }
  void bind(sqlite3_stmt* statement, int place, const Value& value) {
    int code = SQLITE_OK;
    if (const auto* integer = std::get_if<int64_t>(&value)) code = sqlite3_bind_int64(statement, place, *integer);
    if (const auto* real = std::get_if<double>(&value)) code = sqlite3_bind_double(statement, place, *real);
    if (const auto* text = std::get_if<std::string_view>(&value)) {
      const char* bytes = text->empty() ? "" : text->data();
      code = sqlite3_bind_text64(statement, place, bytes, text->size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    if (const auto* blob = std::get_if<Bytes>(&value)) {
      const char* bytes = blob->bytes.empty() ? "" : blob->bytes.data();
      code = sqlite3_bind_blob64(statement, place, bytes, blob->bytes.size(), SQLITE_STATIC);
    }
    SINEW_CHECK(code == SQLITE_OK, code, place, sqlite3_sql(statement));
  }
  void close() {
    for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }

  const std::string path_;
  Clock& clock_;
  const double patience_;
  std::minstd_rand jitter_;
  double busy_since_ = 0;
  bool wal_in_doubt_ = false;
  sqlite3* db_ = nullptr;
  std::unordered_map<std::string_view, sqlite3_stmt*> statements_;
};

}  // namespace

std::unique_ptr<Database> open_sqlite(const std::string& path, const Options& options, Use use) {
  return std::make_unique<Sqlite>(path, options, use);
}

}  // namespace sinew::store
