// Inside store/: one connection of libpq in pipeline mode, every wait with a bound.
//
// Statements are sent without waiting for one another; `finish` waits for all that were sent. So a transaction costs as
// many round trips as it has questions, not statements. libpq's types stay inside.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.h"

struct pg_conn;
struct pg_result;

namespace sinew::store {

class PostgresLink {
 public:
  // Throws LostConnection where trying again may help, else Error.
  PostgresLink(const std::string& url, double patience_seconds);
  ~PostgresLink();
  PostgresLink(const PostgresLink&) = delete;
  PostgresLink& operator=(const PostgresLink&) = delete;

  void send(std::string_view sql, std::initializer_list<Value> values);
  // Waits for everything sent. Throws for the first statement that failed; those behind it were not carried out.
  void finish(const std::function<void(const Row&)>& take_rows_of_last = nullptr);
  // One text of several statements, before the first send.
  void script(const std::string& sql);

 private:
  void await_readable();
  [[noreturn]] void fail(pg_result* result, const std::string& what);
  const std::string& name_of(std::string_view sql);

  pg_conn* connection_ = nullptr;
  const double patience_seconds_;
  std::map<std::string_view, std::string> names_;  // of statements the server knows, by their text
  std::vector<std::string_view> new_names_;        // asked for since the last finish
  size_t sent_ = 0, names_given_ = 0;
};

}  // namespace sinew::store
