// PostgreSQL behind the interface of database.h.
//
// - One advisory lock for each schema orders all writers. It makes the numbers of events gapless and every check before
//   a write safe.
// - A write transaction commits without waiting for the disk (synchronous_commit off), which releases the lock at once.
//   Then a second, empty transaction commits with the server's own setting. A commit flushes everything that was logged
//   before it, so the first transaction is durable when the second returns, and the server merges the flushes of
//   several connections. A transaction that has read an unflushed commit logs after it and flushes it together with its
//   own.
// - If the connection is lost during a commit, the new connection finds out whether the commit took place. Every write
//   transaction stores a growing mark in its session's row. The new connection reads the mark under the lock, which the
//   server releases only when the lost transaction has ended.
#include <algorithm>
#include <random>

#include "base/random.h"
#include "store/postgres_link.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

// READ COMMITTED, whatever the database's default is: under the lock a transaction must see what the previous one
// wrote.
constexpr std::string_view kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED";

OutcomeUnknown outcome_unknown(const Error& why) {
  return OutcomeUnknown("STORE_OUTCOME_UNKNOWN",
                        std::string(why.what()) + "; it is unknown whether the last batch was written",
                        "write the batch again under the same key");
}

class Postgres final : public Database {
 public:
  Postgres(const std::string& url, const Options& options, Access access)
      : url_(url), options_(options), clock_(*options.clock), access_(access), jitter_(std::random_device()()) {
    std::random_device device;
    session_ = std::to_string((static_cast<uint64_t>(device()) << 32U) | device());
    connect();  // without retries, so that a wrong URL is reported at once
  }
  ~Postgres() override {
    if (link_ == nullptr || access_ == Access::kRead) return;
    try {
      link_->send("DELETE FROM postgres_session WHERE id = ?1", {session_});
      link_->finish();
    } catch (const Error&) {
      link_.reset();  // another session deletes the row when it is a day old
    }
  }

  void begin_write() override {
    reconnect();
    drop_link_if_lost([&] {
      link_->send(kBegin, {});
      link_->send("SELECT pg_advisory_xact_lock(?1)", {lock_});
      // Creates the row again if another session deleted it: sessions delete rows that are idle for a day.
      link_->send(
          "INSERT INTO postgres_session(id, mark, at_ms) VALUES (?1, ?2, ?3) "
          "ON CONFLICT(id) DO UPDATE SET mark = excluded.mark, at_ms = excluded.at_ms",
          {session_, ++mark_, static_cast<int64_t>(clock_.wall_seconds() * 1000)});
    });
  }
  void begin_read() override {
    reconnect();
    drop_link_if_lost([&] { link_->send("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {}); });
  }
  void commit(Durability durability) override {
    try {
      link_->send("COMMIT", {});
      if (durability == Durability::kDurable) flush();
      link_->finish();
    } catch (const ConnectionLost&) {
      link_.reset();
      if (access_ == Access::kRead) return;
      if (!was_committed()) throw;
    } catch (const Error&) {
      if (access_ == Access::kRead) throw;
      link_.reset();  // the statement that failed may stand before the commit or after it
      if (!was_committed()) throw;
    }
  }
  void roll_back() noexcept override {
    if (link_ == nullptr) return;
    try {
      link_->send("ROLLBACK", {});
      link_->finish();
    } catch (const Error&) {
      link_.reset();
    }
  }

  void run(std::string_view sql, std::initializer_list<Value> values) override {
    drop_link_if_lost([&] { link_->send(sql, values); });
  }
  void each(std::string_view sql, std::initializer_list<Value> values,
            const std::function<void(const Row&)>& take) override {
    // The store holds no invalid text, so no row can match one; the server would reject such a query as an error.
    for (const Value& value : values) {
      const auto* text = std::get_if<std::string_view>(&value);
      if (text != nullptr && (!is_utf8(*text) || text->find('\0') != std::string_view::npos)) return;
    }
    drop_link_if_lost([&] {
      link_->send(sql, values);
      link_->finish(take);
    });
  }
  double now() override { return clock_.monotonic_seconds() + server_clock_offset_; }
  bool has_table(std::string_view name) override {
    bool found = false;
    each("SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?1", {name},
         [&](const Row&) { found = true; });
    return found;
  }
  std::vector<std::string> check() override { return {}; }  // the server checks its pages itself

 private:
  // Commits an empty transaction durably, and with it everything that was logged before.
  void flush() {
    link_->send(kBegin, {});
    link_->send("SELECT set_config('synchronous_commit', ?1, true), pg_logical_emit_message(true, 'sinew', '')",
                {durable_});
    link_->send("COMMIT", {});
  }
  template <typename Work>
  void drop_link_if_lost(const Work& work) {
    if (link_ == nullptr)
      throw ConnectionLost("STORE_CONNECTION_LOST", "store " + without_password(url_) + ": the connection was lost",
                           "check that the server runs");
    try {
      work();
    } catch (const ConnectionLost&) {
      link_.reset();
      throw;
    }
  }

  void connect() {
    auto link = std::make_unique<PostgresLink>(url_, options_.lock_timeout_seconds + 10);
    const auto milliseconds = std::to_string(static_cast<int64_t>(options_.lock_timeout_seconds * 1000) + 1);
    std::string durable = "on", schema;
    // A process that stops between two statements (its machine is lost, or the process is suspended) keeps the lock
    // that all writers wait for. The server ends such a session before the writers' lock timeout passes.
    const auto idle = std::to_string(static_cast<int64_t>(options_.lock_timeout_seconds * 1000 / 3) + 1);
    link->script("SET client_min_messages = warning; SET lock_timeout = " + milliseconds +
                 "; SET idle_in_transaction_session_timeout = " + idle);
    link->send(
        "SELECT current_setting('synchronous_commit'), coalesce(current_schema(), ''), "
        "coalesce((SELECT oid::bigint FROM pg_namespace WHERE nspname = current_schema()), 0), "
        "extract(epoch FROM clock_timestamp())::float8",
        {});
    link->finish([&](const Row& row) {
      if (row.text(0) != "off") durable = row.text(0);
      schema = row.text(1);
      lock_ = (int64_t{0x53494e57} << 32U) | row.integer(2);
      server_clock_offset_ = row.real(3) - clock_.monotonic_seconds();
    });
    if (schema.empty()) {
      throw Error("STORE_NO_SCHEMA",
                  "store " + without_password(url_) + ": no schema in the connection's search_path exists",
                  "create the schema (CREATE SCHEMA), or correct the URL");
    }
    durable_ = durable;
    link->script("SET synchronous_commit = off");
    if (access_ == Access::kWrite) create_session_row(*link);
    link_ = std::move(link);
  }
  // Creates the row that holds the mark of this store. The row outlives a reconnection.
  void create_session_row(PostgresLink& link) {
    link.send(kBegin, {});
    link.send("SELECT pg_advisory_xact_lock(?1)", {lock_});
    link.send(
        "CREATE TABLE IF NOT EXISTS postgres_session(id TEXT NOT NULL PRIMARY KEY, mark INTEGER NOT NULL, at_ms "
        "INTEGER NOT NULL)",
        {});
    const auto at_ms = static_cast<int64_t>(clock_.wall_seconds() * 1000);
    link.send("DELETE FROM postgres_session WHERE at_ms < ?1", {at_ms - 86'400'000});
    link.send(
        "INSERT INTO postgres_session(id, mark, at_ms) VALUES (?1, 0, ?2) ON CONFLICT(id) DO UPDATE SET at_ms = ?2",
        {session_, at_ms});
    link.send("COMMIT", {});
    link.finish();
  }
  void reconnect() {
    if (link_ != nullptr) return;
    const double since = clock_.monotonic_seconds();
    for (int tries = 0;; ++tries) {
      try {
        return connect();
      } catch (const ConnectionLost& lost) {
        if (clock_.monotonic_seconds() - since > options_.reconnect_seconds)
          throw OutcomeUnknown("STORE_CONNECTION_LOST", lost.what(), lost.hint);
      }
      clock_.sleep_seconds(std::min(1.0, 0.02 * (1 << std::min(tries, 6))) *
                           std::uniform_real_distribution(0.5, 1.0)(jitter_));
    }
  }
  // Did the transaction take place whose commit was not answered? Makes it durable if so.
  bool was_committed() {
    const double since = clock_.monotonic_seconds();
    for (;;) {
      try {
        reconnect();
        int64_t mark = 0;
        link_->send(kBegin, {});
        link_->send("SELECT pg_advisory_xact_lock(?1)", {lock_});
        link_->send("SELECT mark FROM postgres_session WHERE id = ?1", {session_});
        link_->finish([&](const Row& row) { mark = row.integer(0); });
        link_->send("COMMIT", {});
        if (mark == mark_) flush();
        link_->finish();
        return mark == mark_;
      } catch (const ConnectionLost& lost) {
        link_.reset();
        if (clock_.monotonic_seconds() - since > options_.reconnect_seconds) throw outcome_unknown(lost);
      } catch (const OutcomeUnknown& unknown) {
        throw outcome_unknown(unknown);
      } catch (const Error& error) {  // for example a lock timeout, which says nothing about the commit
        link_.reset();
        throw outcome_unknown(error);
      }
    }
  }

  const std::string url_;
  const Options options_;
  Clock& clock_;
  const Access access_;
  std::minstd_rand jitter_;
  std::string session_, durable_ = "on";
  int64_t lock_ = 0, mark_ = 0;
  double server_clock_offset_ = 0;  // how far the server's clock is ahead of `clock_`
  std::unique_ptr<PostgresLink> link_;
};

}  // namespace

bool is_postgres(std::string_view where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

std::unique_ptr<Database> open_postgres(const std::string& url, const Options& options, Access access) {
  return std::make_unique<Postgres>(url, options, access);
}

}  // namespace sinew::store
