#include "store/postgres_link.h"

#include <endian.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/cost_limit.h"
#include "store/libpq.h"

namespace sinew::store {
namespace {

struct Clear {
  void operator()(PGresult* result) const { libpq().clear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

class PostgresRow final : public Row {
 public:
  PostgresRow(const PGresult* result, int row) : result_(result), row_(row) {}
  int64_t integer(int column) const override {
    SINEW_CHECK(libpq().getlength(result_, row_, column) == 8, column);
    return static_cast<int64_t>(bits(column));
  }
  double real(int column) const override {
    SINEW_CHECK(libpq().getlength(result_, row_, column) == 8, column);
    return std::bit_cast<double>(bits(column));
  }
  std::string_view text(int column) const override {
    return {libpq().getvalue(result_, row_, column), static_cast<size_t>(libpq().getlength(result_, row_, column))};
  }

 private:
  uint64_t bits(int column) const {
    uint64_t value = 0;
    std::memcpy(&value, libpq().getvalue(result_, row_, column), sizeof value);
    return be64toh(value);
  }
  const PGresult* result_;
  int row_;
};

// Translates a statement from the dialect of database.h to PostgreSQL's.
std::string translated(std::string_view sql) {
  static constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
      {" STRICT", ""},     {", WITHOUT ROWID", ""},         {" INTEGER", " BIGINT"}, {" REAL", " DOUBLE PRECISION"},
      {" BLOB", " BYTEA"}, {" TEXT", " TEXT COLLATE \"C\""}};
  std::string text(sql);
  if (text.starts_with("CREATE") || text.starts_with("ALTER")) {
    for (const auto& [from, to] : kReplacements) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    }
  }
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] == '?' && text[at + 1] >= '1' && text[at + 1] <= '9') text[at] = '$';
  }
  return text;
}

std::string trimmed(const char* message) {
  std::string text = message == nullptr ? "" : message;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& letter : text) letter = letter == '\n' ? ' ' : letter;
  return text;
}

constexpr int64_t kLookAgainMs = 50;  // how often a wait checks the CostLimit of its request
constexpr const char* kCheckServer = "check that the server runs and can be reached";

// Returns whether this SQLSTATE means that the connection is lost, or that the server is starting or shutting down.
bool means_lost(std::string_view state) {
  return state.starts_with("08") || state.starts_with("57P") || state == "25P03";
}

// Throws the Error for an SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
[[noreturn]] void fail_with(std::string_view state, const std::string& what) {
  if (means_lost(state)) throw ConnectionLost("STORE_CONNECTION_LOST", what, kCheckServer);
  if (state == "53100")
    throw Error("STORE_NO_SPACE", what, "free space on the server's disk; no acknowledged write is lost");
  if (state == "25006")
    throw Error("STORE_NOT_WRITABLE", what, "the server is read-only (a standby?); name the primary server");
  if (state == "42501")
    throw Error("STORE_NOT_WRITABLE", what, "give this user the right to create and write tables in its schema");
  if (state == "55P03")
    throw Error("STORE_BUSY", what, "another process holds the lock for too long; pg_stat_activity shows which");
  if (state == "42P07") {
    throw Error("STORE_NOT_A_STORE", what,
                "the schema has tables of another program; give the store a schema or database of its own");
  }
  if (state.starts_with("XX")) throw Error("STORE_DAMAGED", what, "the server found damaged data; restore a backup");
  throw Error("STORE_DATABASE_ERROR", what, "see the server's log");
}

}  // namespace

bool has_password(const std::string& where) {
  return without_password(where) != where;
}

std::string without_password(const std::string& url) {
  constexpr auto kNone = std::string::npos;
  const auto scheme = url.find("://");
  if (scheme == kNone) return url;
  std::string shown = url;
  const auto begin = scheme + 3;
  // The user and the password end at the last '@' before the path. If no '@' comes before the first '/', the password
  // may contain that '/'. Then search up to the query.
  auto at = shown.rfind('@', shown.find('/', begin));
  if (at == kNone || at < begin) at = shown.rfind('@', shown.find('?', begin));
  const auto colon = shown.find(':', begin);
  if (at != kNone && at > begin && colon < at) shown.replace(colon + 1, at - colon - 1, "***");
  // Hide the values of password=, sslpassword= and every other parameter whose name contains "password" or "secret".
  for (auto start = shown.find('?', begin); start != kNone; start = shown.find('&', start + 1)) {
    const auto end = std::min(shown.find('&', start + 1), shown.size());
    const auto equals = shown.find('=', start);
    if (equals >= end) continue;
    const std::string key = shown.substr(start + 1, equals - start - 1);
    if (key.find("password") != kNone || key.find("secret") != kNone)
      shown.replace(equals + 1, end - equals - 1, "***");
  }
  return shown;
}

PostgresLink::PostgresLink(const std::string& url, double timeout_seconds) : timeout_seconds_(timeout_seconds) {
  const char* keys[] = {
      "dbname", "connect_timeout", "application_name", "client_encoding", "tcp_user_timeout", "keepalives_idle",
      nullptr};
  const char* values[] = {url.c_str(), "2", "sinew", "UTF8", "20000", "10", nullptr};
  connection_ = libpq().connectdbParams(keys, values, 1);
  if (libpq().status(connection_) == CONNECTION_OK) return;
  const std::string why = trimmed(libpq().errorMessage(connection_));
  libpq().finish(connection_);
  connection_ = nullptr;
  const std::string what = "store " + without_password(url) + ": " + why;
  // libpq's messages about a wrong URL or wrong credentials contain these words. Another attempt would fail as well.
  for (const char* permanent : {"password", "does not exist", "no pg_hba.conf entry", "invalid", "missing"}) {
    if (why.find(permanent) != std::string::npos)
      throw Error("STORE_BAD_URL", what, "check the URL: postgresql://user@host:port/database");
  }
  throw ConnectionLost("STORE_CONNECTION_LOST", what, kCheckServer);
}

PostgresLink::~PostgresLink() {
  libpq().finish(connection_);
}

void PostgresLink::script(const std::string& sql) {
  if (libpq().pipelineStatus(connection_) != PQ_PIPELINE_OFF) SINEW_CHECK(libpq().exitPipelineMode(connection_) == 1);
  SINEW_CHECK(libpq().setnonblocking(connection_, 1) == 0);
  if (libpq().sendQuery(connection_, sql.c_str()) != 1) fail(nullptr, trimmed(libpq().errorMessage(connection_)));
  Result failed(nullptr);
  while (true) {
    await_readable();
    Result result(libpq().getResult(connection_));
    if (result == nullptr) break;
    const auto status = libpq().resultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && failed == nullptr) failed = std::move(result);
  }
  if (failed != nullptr) fail(failed.get(), trimmed(libpq().resultErrorMessage(failed.get())));
  SINEW_CHECK(libpq().enterPipelineMode(connection_) == 1);
}

const std::string& PostgresLink::name_of(std::string_view sql) {
  const auto found = names_.find(sql);
  if (found != names_.end()) return found->second;
  std::string name = "s" + std::to_string(++names_given_);
  if (libpq().sendPrepare(connection_, name.c_str(), translated(sql).c_str(), 0, nullptr) != 1) {
    fail(nullptr, trimmed(libpq().errorMessage(connection_)));
  }
  ++sent_;
  new_names_.push_back(sql);
  return names_.emplace(sql, std::move(name)).first->second;
}

void PostgresLink::send(std::string_view sql, std::initializer_list<Value> values) {
  if (sent_ >= 500) finish();  // limits the memory of libpq's buffers
  const std::string& name = name_of(sql);
  std::vector<uint64_t> words(values.size());
  std::vector<const char*> bytes(values.size());
  std::vector<int> lengths(values.size()), formats(values.size(), 1);
  size_t index = 0;
  for (const Value& value : values) {
    if (const auto* integer = std::get_if<int64_t>(&value)) words[index] = htobe64(static_cast<uint64_t>(*integer));
    if (const auto* real = std::get_if<double>(&value)) words[index] = htobe64(std::bit_cast<uint64_t>(*real));
    bytes[index] = reinterpret_cast<const char*>(&words[index]);
    lengths[index] = sizeof words[index];
    const auto* text = std::get_if<std::string_view>(&value);
    if (const auto* blob = std::get_if<Bytes>(&value)) text = &blob->bytes;
    if (text != nullptr) {
      bytes[index] = text->empty() ? "" : text->data();
      lengths[index] = static_cast<int>(text->size());
    }
    ++index;
  }
  if (libpq().sendQueryPrepared(connection_, name.c_str(), static_cast<int>(index), bytes.data(), lengths.data(),
                                formats.data(), 1) != 1) {
    fail(nullptr, trimmed(libpq().errorMessage(connection_)));
  }
  ++sent_;
}

// Sends what libpq has buffered. Waits until libpq can return the next result without blocking.
void PostgresLink::await_readable() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_seconds_);
  while (libpq().isBusy(connection_) == 1) {
    const int unsent = libpq().flush(connection_);
    pollfd wait{libpq().socket(connection_), static_cast<short>(unsent == 1 ? POLLIN | POLLOUT : POLLIN), 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (unsent < 0 || wait.fd < 0)
      throw ConnectionLost("STORE_CONNECTION_LOST", trimmed(libpq().errorMessage(connection_)), kCheckServer);
    if (left.count() <= 0) {
      throw ConnectionLost("STORE_CONNECTION_LOST", "the PostgreSQL server has not answered within the timeout",
                           kCheckServer);
    }
    // If the request is over, this throws and the connection closes. The server then ends the statement.
    CostLimit::check_current();
    ::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left.count(), kLookAgainMs)));
    if (libpq().consumeInput(connection_) != 1)
      throw ConnectionLost("STORE_CONNECTION_LOST", trimmed(libpq().errorMessage(connection_)), kCheckServer);
  }
}

void PostgresLink::fail(pg_result* result, const std::string& what) {
  const char* state = result == nullptr ? nullptr : libpq().resultErrorField(result, PG_DIAG_SQLSTATE);
  const bool gone = libpq().status(connection_) != CONNECTION_OK;
  fail_with(gone ? "08006" : state == nullptr ? "" : state, "store: " + what);
}

void PostgresLink::finish(const std::function<void(const Row&)>& take_rows_of_last) {
  finish_while(take_rows_of_last ? every_row(take_rows_of_last) : nullptr);
}

void PostgresLink::finish_while(const std::function<bool(const Row&)>& take_rows_of_last) {
  if (libpq().pipelineSync(connection_) != 1) fail(nullptr, trimmed(libpq().errorMessage(connection_)));
  Result failed(nullptr), last(nullptr);
  for (int nulls = 0; nulls < 3;) {  // libpq returns null after the results of each statement
    await_readable();
    Result result(libpq().getResult(connection_));
    if (result == nullptr) {
      ++nulls;
      continue;
    }
    nulls = 0;
    const auto status = libpq().resultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_FATAL_ERROR && failed == nullptr)
      failed = std::move(result);
    else if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
      last = std::move(result);
    if (libpq().status(connection_) != CONNECTION_OK) break;
  }
  sent_ = 0;
  if (failed != nullptr || libpq().status(connection_) != CONNECTION_OK) {
    // The server may or may not have prepared the new statements, so their names are not used again.
    for (const std::string_view sql : new_names_) names_.erase(sql);
    new_names_.clear();
    fail(failed.get(),
         trimmed(failed == nullptr ? libpq().errorMessage(connection_) : libpq().resultErrorMessage(failed.get())));
  }
  new_names_.clear();
  if (!take_rows_of_last) return;
  for (int row = 0; row < libpq().ntuples(last.get()); ++row) {
    if (!take_rows_of_last(PostgresRow(last.get(), row))) return;
  }
}

}  // namespace sinew::store
