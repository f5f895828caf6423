#include "store/sqlite_connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/cost_limit.h"
#include "store/wal_check.h"

namespace sinew::store {
namespace {

// SQLite checks the request's CostLimit each time its virtual machine has run this many steps
constexpr int kStepsPerLook = 10'000;
constexpr int kApplicationId = 0x53494e57;  // "SINW"

bool is_busy(int code) {
  const int kind = code & 0xff;
  return kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_PROTOCOL;
}

[[noreturn]] void throw_error(const std::string& path, const std::string& doing, int code, int system_code,
                              const std::string& message) {
  const std::string store = "store " + path + ": ", what = store + doing + ": " + message;
  const std::string system = system_code != 0 ? std::strerror(system_code) : "";
  const int kind = code & 0xff;
  if (kind == SQLITE_FULL || system_code == ENOSPC || system_code == EFBIG || system_code == EDQUOT) {
    throw Error("STORE_NO_SPACE", store + doing + ": no space left",
                "free space on that disk; no acknowledged write is lost");
  }
  if (is_busy(code)) {
    throw Error("STORE_BUSY", what + " by another process for too long",
                "find out which process has the file open: fuser " + path);
  }
  switch (kind) {
    case SQLITE_CORRUPT:
      throw Error("STORE_DAMAGED", what,
                  "keep a copy of the file, then restore a backup or try: sqlite3 " + path + " .recover");
    case SQLITE_NOTADB:
      throw Error("STORE_NOT_A_STORE", store + "this is not a database", "name another file, or move this one away");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw Error("STORE_NOT_WRITABLE", store + doing + ": the file cannot be written (" + message + ")",
                  "give this user the right to write the file and its directory");
    case SQLITE_CANTOPEN:
      throw Error("STORE_CANNOT_OPEN", store + "the file cannot be opened" + (system.empty() ? "" : ": " + system),
                  "check that the directory exists and that this user may write in it");
    case SQLITE_IOERR:
      throw Error("STORE_DISK_ERROR", what + (system.empty() ? "" : " (" + system + ")"),
                  "check the disk; acknowledged writes are in the file unless the disk itself lost them");
    default: throw Error("STORE_DATABASE_ERROR", what, "");
  }
}

// Returns the file as SQLite has it open, or null if there is none. This process must not open the file again to read
// it: closing it would release SQLite's locks (POSIX).
sqlite3_file* database_file(sqlite3* db) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
  return file != nullptr && file->pMethods != nullptr ? file : nullptr;
}

using Header = std::array<unsigned char, 100>;

// Returns nullopt if the file is shorter than a header, or cannot be read.
std::optional<Header> read_header(sqlite3_file* file) {
  Header header{};
  if (file == nullptr || file->pMethods->xRead(file, header.data(), sizeof header, 0) != SQLITE_OK) return std::nullopt;
  return header;
}

int64_t page_bytes_in(const Header& header) {
  const int64_t bytes = header[16] << 8U | header[17];
  return bytes == 1 ? 65536 : bytes;
}

sqlite3_file* wal_file(sqlite3* db) {
  sqlite3_file* wal = nullptr;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&wal));
  return wal != nullptr && wal->pMethods != nullptr ? wal : nullptr;
}

}  // namespace

SqliteConnection::SqliteConnection(const std::string& path, const Options& options, Access access)
    : path_(path),
      clock_(*options.clock),
      lock_timeout_seconds_(options.lock_timeout_seconds),
      jitter_(std::random_device()()) {
  const bool write = access == Access::kWrite, is_new = write && ::access(path.c_str(), F_OK) != 0;
  const int code = sqlite3_open_v2(
      path.c_str(), &db_, SQLITE_OPEN_READWRITE | (write ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX, nullptr);
  try {
    if (code != SQLITE_OK) fail("opening", code);
    sqlite3_extended_result_codes(db_, 1);
    sqlite3_busy_handler(db_, &SqliteConnection::on_busy, this);
    sqlite3_progress_handler(db_, kStepsPerLook, &SqliteConnection::on_progress, this);
    if (write && !is_new) refuse_foreign_wal();
    prepare(access);
    if (is_new) sync_directory();
  } catch (...) {
    // When the last connection closes, SQLite would move the WAL into the file. A file that was refused must stay as it
    // is.
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_close(db_);
    throw;
  }
}

SqliteConnection::~SqliteConnection() {
  sqlite3_close(db_);
}

int SqliteConnection::execute(const char* sql) {
  return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
}

int SqliteConnection::on_busy(void* self, int tries) {
  auto& me = *static_cast<SqliteConnection*>(self);
  if (tries == 0) me.busy_since_ = me.clock_.monotonic_seconds();
  return me.wait_a_little(tries, me.busy_since_) ? 1 : 0;
}

// Returns 1, which interrupts the statement, if the statement's request is over.
int SqliteConnection::on_progress(void*) {
  const CostLimit* limit = CostLimit::current();
  return limit != nullptr && limit->is_over() ? 1 : 0;
}

// Sleeps 0.1 ms at the first try and up to 5 ms later. A random factor keeps waiting processes from waking up together.
// Returns false if the lock timeout has passed or the request is over.
bool SqliteConnection::wait_a_little(int tries, double since) {
  if (clock_.monotonic_seconds() - since > lock_timeout_seconds_ || on_progress(this) != 0) return false;
  const double longest = std::min(0.005, 0.0001 * (1 << std::min(tries, 10)));
  clock_.sleep_seconds(longest * std::uniform_real_distribution(0.25, 1.0)(jitter_));
  return true;
}

void SqliteConnection::retry_while_busy(const std::string& doing, const std::function<int()>& attempt) {
  const double since = clock_.monotonic_seconds();
  for (int tries = 0;; ++tries) {
    const int code = attempt();
    if (code == SQLITE_OK) return;
    if (!is_busy(code) || !wait_a_little(tries, since)) fail(doing, code);
  }
}

void SqliteConnection::fail(const std::string& doing, int code) {
  if (code == SQLITE_INTERRUPT || is_busy(code)) CostLimit::check_current();
  if (db_ == nullptr) throw_error(path_, doing, code, 0, sqlite3_errstr(code));
  const std::string message = sqlite3_errmsg(db_);
  int system_code = sqlite3_system_errno(db_);
  if (system_code == 0 && (code & 0xff) == SQLITE_IOERR) system_code = last_errno();
  throw_error(path_, doing, code, system_code, message);
}

// Returns the last errno of the WAL, or else of the database file. It reads them from the files, because SQLite's
// cleanup after a failure may have overwritten the errno of the connection.
int SqliteConnection::last_errno() {
  int found = 0;
  if (sqlite3_file* wal = wal_file(db_)) wal->pMethods->xFileControl(wal, SQLITE_FCNTL_LAST_ERRNO, &found);
  if (found == 0) sqlite3_file_control(db_, "main", SQLITE_FCNTL_LAST_ERRNO, &found);
  return found;
}

// Executes a query with one result and returns it as a number: 0 for NULL, -1 for the text "wal".
int64_t SqliteConnection::pragma(const char* sql) {
  int64_t value = 0;
  retry_while_busy("reading the file's header", [&] {
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

// Only the first user of a store can find a WAL that does not belong to the store. If other processes use the store,
// its files change while this function reads them.
void SqliteConnection::refuse_foreign_wal() {
  if (is_in_use(path_ + "-shm")) return;
  sqlite3_file* const file = database_file(db_);
  sqlite3_int64 bytes = 0;
  if (file == nullptr || file->pMethods->xFileSize(file, &bytes) != SQLITE_OK) return;
  const Header header = read_header(file).value_or(Header{});
  DatabaseFile database;
  database.page_bytes = page_bytes_in(header);
  if (database.page_bytes != 0) database.pages = bytes / database.page_bytes;
  const std::string why = foreign_wal(path_ + "-wal", database);
  if (why.empty()) return;
  throw Error("STORE_FOREIGN_WAL", "store " + path_ + ": the file " + path_ + "-wal does not belong to it: " + why,
              "if the store was restored from a backup, move " + path_ + "-wal and " + path_ +
                  "-shm away; otherwise restore all files of one backup");
}

void SqliteConnection::prepare(Access access) {
  const bool empty = pragma("SELECT count(*) FROM sqlite_master") == 0;
  const int64_t owner = pragma("PRAGMA application_id");
  if (owner != kApplicationId && !(owner == 0 && empty)) {
    throw Error("STORE_NOT_A_STORE", "store " + path_ + ": the file is another program's database",
                "name another file");
  }
  if (sqlite3_db_readonly(db_, "main") == 1) fail("opening", SQLITE_READONLY);
  if (pragma("PRAGMA journal_mode") != -1) {
    // If several processes set the mode at the same time, some get "locked" immediately, whatever the busy timeout is.
    retry_while_busy("creating the file", [this] { return execute("PRAGMA journal_mode = WAL"); });
    if (pragma("PRAGMA journal_mode") != -1) {
      throw Error("STORE_UNSUITABLE_DISK",
                  "store " + path_ + ": this file system lacks the shared memory that SQLite's WAL needs",
                  "put the store on a local disk");
    }
  }
  if (owner != kApplicationId)
    retry_while_busy("creating the file", [this] { return execute("PRAGMA application_id = 1397313111"); });
  for (const char* sql : {"PRAGMA synchronous = NORMAL", "PRAGMA wal_autocheckpoint = 4000",
                          "PRAGMA cache_size = -16000", "PRAGMA foreign_keys = OFF", "PRAGMA trusted_schema = OFF"}) {
    retry_while_busy("opening", [&] { return execute(sql); });
  }
  if (access == Access::kRead) retry_while_busy("opening", [this] { return execute("PRAGMA query_only = 1"); });
}

std::string SqliteConnection::header_problem() {
  constexpr std::string_view kMagic("SQLite format 3", 16);
  constexpr int kApplicationIdAt = 68;
  const auto header = read_header(database_file(db_));
  if (!header) return "the file's header cannot be read";
  if (std::memcmp(header->data(), kMagic.data(), kMagic.size()) != 0) return "the file's header was overwritten";
  uint32_t owner = 0;
  for (int i = 0; i < 4; ++i) owner = owner << 8U | (*header)[kApplicationIdAt + i];
  // Until the first checkpoint, only the WAL may have the application's id.
  return owner == 0 || owner == kApplicationId ? "" : "the file was overwritten with another program's database";
}

int64_t SqliteConnection::bytes_in_header() {
  constexpr int kPagesAt = 28;
  const Header header = read_header(database_file(db_)).value_or(Header{});
  int64_t pages = 0;
  for (int i = 0; i < 4; ++i) pages = pages << 8 | header[kPagesAt + i];
  return pages * page_bytes_in(header);
}

void SqliteConnection::sync_wal() {
  sqlite3_file* wal = wal_file(db_);
  if (wal == nullptr) return;  // no process has written since the last checkpoint
  const int code = wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
  if (code == SQLITE_OK) return;
  wal_unsynced_ = true;
  throw OutcomeUnknown("STORE_OUTCOME_UNKNOWN",
                       "store " + path_ + ": committing: the disk did not confirm the write: " + std::strerror(errno),
                       "check the disk and its free space, then write the batch again under the same key");
}

void SqliteConnection::recover_unsynced_wal() {
  if (!wal_unsynced_) return;
  retry_while_busy("recovering from a failed sync", [this] {
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
  wal_unsynced_ = false;
}

void SqliteConnection::sync_directory() {
  const auto slash = path_.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

}  // namespace sinew::store
