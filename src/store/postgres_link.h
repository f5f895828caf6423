// Inside store/: a libpq connection in pipeline mode. Every wait has a timeout.
//
// send() queues a statement without waiting for the previous one. finish() waits for all queued statements. So a
// transaction costs one round trip for each query whose rows it reads, and not one for each statement. libpq's types
// stay inside postgres_link.cpp.
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
  // Throws ConnectionLost if another attempt may succeed, or else Error.
  PostgresLink(const std::string& url, double timeout_seconds);
  ~PostgresLink();
  PostgresLink(const PostgresLink&) = delete;
  PostgresLink& operator=(const PostgresLink&) = delete;

  void send(std::string_view sql, std::initializer_list<Value> values);
  // Waits for every statement that was sent. If a statement failed, throws its error; the server has then skipped all
  // statements after it. `take_rows_of_last` receives the rows of the last statement.
  void finish(const std::function<void(const Row&)>& take_rows_of_last = nullptr);
  // reads rows until take_rows_of_last returns false
  void finish_while(const std::function<bool(const Row&)>& take_rows_of_last);
  // Executes a text that may contain several statements. Call it only before the first send().
  void script(const std::string& sql);

 private:
  void await_readable();
  [[noreturn]] void fail(pg_result* result, const std::string& what);
  const std::string& name_of(std::string_view sql);

  pg_conn* connection_ = nullptr;
  const double timeout_seconds_;
  std::map<std::string_view, std::string> names_;  // names of prepared statements, by their SQL text
  std::vector<std::string_view> new_names_;        // statements that were prepared since the last finish()
  size_t sent_ = 0, names_given_ = 0;
};

}  // namespace sinew::store
