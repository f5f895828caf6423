// Inside store/: one connection to a database, SQLite or PostgreSQL, in one small dialect of SQL.
//
// The dialect: types INTEGER, REAL, TEXT, BLOB; parameters ?1, ?2, ...; every parameter has the type of its column. A
// statement is prepared once and known by its text, so texts are literals. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

// Valid during the call it is given to.
class Row {
 public:
  virtual ~Row() = default;
  virtual int64_t integer(int column) const = 0;
  virtual double real(int column) const = 0;
  virtual std::string_view text(int column) const = 0;  // of a BLOB its bytes
};

// The connection is gone; what the transaction did is undone. It can be begun again.
struct LostConnection : Error {
  using Error::Error;
};

// A commit of which nobody knows what became of it, or a connection that was not to be had in time: doing it again may
// do it twice.
struct Unsettled : Error {
  using Error::Error;
};

class Database {
 public:
  virtual ~Database() = default;
  // From here to commit no other connection writes. Throws Error after the store's patience.
  virtual void begin_write() = 0;
  // What is read until commit is of one instant.
  virtual void begin_read() = 0;
  // kDurable: what was written, and what was read to promise something, is on the disk when it returns. A transaction
  // that promises nothing (it read, or it refused) need not wait for the disk.
  enum class Promise { kNothing, kDurable };
  virtual void commit(Promise promise) = 0;
  virtual void roll_back() noexcept = 0;
  // May be carried out later, up to commit, and then fails there.
  virtual void run(std::string_view sql, std::initializer_list<Value> values) = 0;
  virtual void each(std::string_view sql, std::initializer_list<Value> values,
                    const std::function<void(const Row&)>& take) = 0;
  // Seconds by the clock that leases are told in: the same for all users of the store.
  virtual double now() = 0;
  virtual bool has_table(std::string_view name) = 0;
  virtual std::vector<std::string> check() = 0;
};

enum class Use { kWrite, kRead };
std::unique_ptr<Database> open_sqlite(const std::string& path, const Options& options, Use use);
std::unique_ptr<Database> open_postgres(const std::string& url, const Options& options, Use use);
bool is_postgres(std::string_view where);
// "postgresql://user:***@host/db": where a store is, fit to be shown and logged.
std::string without_password(const std::string& where);

}  // namespace sinew::store
