// Inside store/: one connection to a database, SQLite or PostgreSQL, with one small dialect of SQL for both.
//
// The dialect has the types INTEGER, REAL, TEXT and BLOB, and the parameters ?1, ?2, ...; a parameter has the type of
// its column. A connection prepares each statement once. It remembers the statement by its text without copying the
// text, so callers must pass string literals. One thread at a time may use a connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "store/store.h"

namespace sinew::store {

struct Bytes {
  std::string_view bytes;
};
using Value = std::variant<int64_t, double, std::string_view, Bytes>;

// A row of a result. It is valid only during the callback that receives it.
class Row {
 public:
  virtual ~Row() = default;
  virtual int64_t integer(int column) const = 0;
  virtual double real(int column) const = 0;
  virtual std::string_view text(int column) const = 0;  // also returns the bytes of a BLOB
};

// Returns a callback that passes every row to `take`, which must outlive it.
inline std::function<bool(const Row&)> every_row(const std::function<void(const Row&)>& take) {
  return [&take](const Row& row) {
    take(row);
    return true;
  };
}

// The connection was lost. The database has undone the transaction, so the caller can run it again.
struct ConnectionLost : Error {
  using Error::Error;
};

// It is unknown whether a commit took place, so repeating the transaction could apply it twice. Also thrown if a
// connection cannot be restored in time.
struct OutcomeUnknown : Error {
  using Error::Error;
};

class Database {
 public:
  virtual ~Database() = default;
  // Starts a write transaction. No other connection can write until it ends. Throws Error (STORE_BUSY) if it cannot
  // start within the store's lock timeout.
  virtual void begin_write() = 0;
  // Starts a read transaction: all its reads see one snapshot.
  virtual void begin_read() = 0;
  // kDurable: `commit` returns once the transaction's writes, and all earlier writes that it has read, are on the disk.
  // kNone: `commit` does not wait for the disk. The caller uses kNone if it wrote nothing that must last.
  enum class Durability { kNone, kDurable };
  virtual void commit(Durability durability) = 0;
  virtual void roll_back() noexcept = 0;
  // Executes a statement. The connection may delay the statement until the commit, which then reports its failure.
  virtual void run(std::string_view sql, std::initializer_list<Value> values) = 0;
  // Reads rows until `take` returns false. If the thread has a CostLimit and exceeds it, throws the limit's Error.
  virtual void each_while(std::string_view sql, std::initializer_list<Value> values,
                          const std::function<bool(const Row&)>& take) = 0;
  void each(std::string_view sql, std::initializer_list<Value> values, const std::function<void(const Row&)>& take) {
    each_while(sql, values, every_row(take));
  }
  // Returns the seconds on the clock that measures leases. All users of a store share this clock.
  virtual double now() = 0;
  virtual bool has_table(std::string_view name) = 0;
  virtual std::vector<std::string> check() = 0;
  // Looks for damage that is cheap to find, within a read transaction. `shrunk_to` is the present size of the file if
  // the file has shrunk: it was cut, or another process has compacted it. Returns a message, or "" if it finds no
  // damage.
  virtual std::string damage(std::optional<int64_t> shrunk_to) = 0;
  // Checks all pages now and then, unless that takes too long. Returns a message, or "" if it finds no damage.
  virtual std::string quick_check() = 0;
};

enum class Access { kWrite, kRead };
std::unique_ptr<Database> open_sqlite(const std::string& path, const Options& options, Access access);
std::unique_ptr<Database> open_postgres(const std::string& url, const Options& options, Access access);
bool is_postgres(std::string_view where);
// Returns the location of a store without its password, for messages: "postgresql://user:***@host/db".
std::string without_password(const std::string& where);

}  // namespace sinew::store
