// Implements the interface of database.h on SQLite. The file is durable, and several processes may share it:
//
// - The file is in WAL mode.
// - A write transaction starts with BEGIN IMMEDIATE. Otherwise a transaction that reads first and writes later could
//   fail with SQLITE_BUSY_SNAPSHOT, and waiting would not help.
// - A commit appends to the WAL with synchronous=NORMAL, so that the next writer can start at once. Then the committing
//   thread syncs the WAL itself before it returns. So no writer waits for the sync of another, and the disk merges
//   syncs that overlap: a group commit across processes. The WAL keeps the order of commits. So when a transaction is
//   durable, everything that it has read is durable, too. If SQLite checkpoints the WAL between the commit and the
//   sync, the checkpoint syncs both files.
#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/check.h"
#include "base/cost_limit.h"
#include "store/database.h"
#include "store/sqlite_connection.h"

namespace sinew::store {
namespace {

class SqliteRow final : public Row {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t integer(int column) const override { return sqlite3_column_int64(statement_, column); }
  double real(int column) const override { return sqlite3_column_double(statement_, column); }
  std::string_view text(int column) const override {
    const void* bytes = sqlite3_column_blob(statement_, column);  // for a TEXT column, its UTF-8 bytes
    return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
};

class Sqlite final : public Database {
 public:
  Sqlite(const std::string& path, const Options& options, Access access)
      : clock_(*options.clock), connection_(path, options, access) {}
  ~Sqlite() override {
    for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  }

  void begin_write() override {
    connection_.recover_unsynced_wal();
    connection_.retry_while_busy("waiting to write", [this] { return connection_.execute("BEGIN IMMEDIATE"); });
  }
  void begin_read() override {
    // BEGIN takes no snapshot; the first read does. So read now: if the file is busy, the connection waits at this
    // point.
    connection_.retry_while_busy("beginning to read", [this] {
      int code = connection_.execute("BEGIN");
      if (code == SQLITE_OK) code = connection_.execute("SELECT 1 FROM sqlite_master LIMIT 1");
      if (code != SQLITE_OK) roll_back();
      return code;
    });
  }
  void commit(Durability durability) override {
    const int code = connection_.execute("COMMIT");
    if (code != SQLITE_OK) connection_.fail("committing", code);
    if (durability == Durability::kDurable) connection_.sync_wal();
  }
  void roll_back() noexcept override {
    // After some failures SQLite has rolled back already.
    if (sqlite3_get_autocommit(connection_.handle()) == 0) connection_.execute("ROLLBACK");
  }

  void run(std::string_view sql, std::initializer_list<Value> values) override {
    each(sql, values, [](const Row&) {});
  }
  void each_while(std::string_view sql, std::initializer_list<Value> values,
                  const std::function<bool(const Row&)>& take) override {
    sqlite3_stmt* statement = prepared(sql);
    int index = 0;
    for (const Value& value : values) bind(statement, ++index, value);
    const SqliteRow row(statement);
    struct Reset {
      sqlite3_stmt* statement;
      ~Reset() { sqlite3_reset(statement); }
    } reset{statement};
    int code = SQLITE_OK;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      if (!take(row)) return;
    }
    if (code != SQLITE_DONE)
      connection_.fail(sqlite3_get_autocommit(connection_.handle()) != 0 ? "reading" : "writing", code);
  }

  // All users of a file are processes of one machine, so they share its monotonic clock. This clock does not jump, but
  // restarts when the machine boots.
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
  std::string damage(std::optional<int64_t> shrunk_to) override {
    if (std::string problem = connection_.header_problem(); !problem.empty()) return problem;
    if (!shrunk_to) return "";
    // The number of pages in a read transaction does not help: it counts pages that are only in the WAL.
    if (const int64_t bytes = connection_.bytes_in_header(); *shrunk_to < bytes)
      return "the file was cut to " + std::to_string(*shrunk_to) + " bytes; the store has " + std::to_string(bytes);
    return "";
  }
  // Takes at most half a second at a time, and a hundredth of all time. Never tries again if half a second is not
  // enough.
  std::string quick_check() override {
    constexpr double kMaxSeconds = 0.5, kPause = 5, kPauseFactor = 100;
    const double begun = system_clock().monotonic_seconds();
    if (begun < next_check_) return "";
    std::string problem;
    CostLimit limit(system_clock(), begun + kMaxSeconds, std::numeric_limits<int64_t>::max());
    const CostLimit::Scope scope(&limit);
    try {
      sqlite3_db_release_memory(connection_.handle());  // makes SQLite read the pages from the disk again
      each("PRAGMA quick_check(1)", {}, [&](const Row& row) {
        if (row.text(0) != "ok") problem = "the database is damaged: " + std::string(row.text(0));
      });
    } catch (const Error& error) {
      if (error.code != ErrorCode("REQUEST_TOO_LONG")) throw;
      next_check_ = std::numeric_limits<double>::infinity();  // the store is too large for this check
      return "";
    }
    const double end = system_clock().monotonic_seconds();
    next_check_ = end + std::max(kPause, kPauseFactor * (end - begun));
    return problem;
  }

 private:
  sqlite3_stmt* prepared(std::string_view sql) {
    const auto found = statements_.find(sql);
    if (found != statements_.end()) return found->second;
    sqlite3_stmt* statement = nullptr;
    connection_.retry_while_busy("reading the schema", [&] {
      return sqlite3_prepare_v3(connection_.handle(), sql.data(), static_cast<int>(sql.size()),
                                SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    });
    return statements_[sql] = statement;
  }
  void bind(sqlite3_stmt* statement, int index, const Value& value) {
    int code = SQLITE_OK;
    if (const auto* integer = std::get_if<int64_t>(&value)) code = sqlite3_bind_int64(statement, index, *integer);
    if (const auto* real = std::get_if<double>(&value)) code = sqlite3_bind_double(statement, index, *real);
    if (const auto* text = std::get_if<std::string_view>(&value)) {
      const char* bytes = text->empty() ? "" : text->data();
      code = sqlite3_bind_text64(statement, index, bytes, text->size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    if (const auto* blob = std::get_if<Bytes>(&value)) {
      const char* bytes = blob->bytes.empty() ? "" : blob->bytes.data();
      code = sqlite3_bind_blob64(statement, index, bytes, blob->bytes.size(), SQLITE_STATIC);
    }
    SINEW_CHECK(code == SQLITE_OK, code, index, sqlite3_sql(statement));
  }

  double next_check_ = 0;
  Clock& clock_;
  SqliteConnection connection_;
  std::unordered_map<std::string_view, sqlite3_stmt*> statements_;
};

}  // namespace

std::unique_ptr<Database> open_sqlite(const std::string& path, const Options& options, Access access) {
  return std::make_unique<Sqlite>(path, options, access);
}

}  // namespace sinew::store
