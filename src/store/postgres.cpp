// PostgreSQL behind the seam of database.h.
//
// - One advisory lock a schema orders all writers, which is what makes numbers gapless and every check a safe one.
// - The transaction itself commits without waiting for the disk (synchronous_commit off), which gives the lock back at
//   once. Then a second, empty one commits with the server's own setting: a commit flushes everything logged before it,
//   so the first is durable when it returns, and the server joins the flushes of several connections. Whoever acts on
//   what he has read of a commit that is not flushed yet logs behind it, and flushes it with his own.
// - A connection lost while it committed: the outcome is read from a mark that each transaction leaves, under the lock,
//   which the lost one holds until it has ended.
#include <algorithm>
#include <random>

#include "base/random.h"
#include "store/postgres_link.h"
#include "store/texts.h"

namespace sinew::store {
namespace {

// What a transaction reads under the lock is what the one before it left, whatever the database's default is.
constexpr std::string_view kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED";

class Postgres final : public Database {
 public:
  Postgres(const std::string& url, const Options& options, Use use)
      : url_(url), options_(options), clock_(*options.clock), use_(use), jitter_(std::random_device()()) {
    std::random_device device;
    session_ = std::to_string((static_cast<uint64_t>(device()) << 32U) | device());
    connect();  // once: a wrong URL should not take the whole patience to say
  }
  ~Postgres() override {
    if (link_ == nullptr || use_ == Use::kRead) return;
    try {
      link_->send("DELETE FROM postgres_session WHERE id = ?1", {session_});
      link_->finish();
    } catch (const Error&) {
      link_.reset();  // its row is removed when it is a day old
    }
  }

  void begin_write() override {
    reconnect();
    guarded([&] {
      link_->send(kBegin, {});
      link_->send("SELECT pg_advisory_xact_lock(?1)", {lock_});
      // Made anew if somebody took it for a dead one's: a row of which nothing was heard for a day is removed.
      link_->send(
          "INSERT INTO postgres_session(id, mark, at_ms) VALUES (?1, ?2, ?3) "
          "ON CONFLICT(id) DO UPDATE SET mark = excluded.mark, at_ms = excluded.at_ms",
          {session_, ++mark_, static_cast<int64_t>(clock_.wall_seconds() * 1000)});
    });
  }
  void begin_read() override {
    reconnect();
    guarded([&] { link_->send("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {}); });
  }
  void commit(Promise promise) override {
    try {
      link_->send("COMMIT", {});
      if (promise == Promise::kDurable) flush();
      link_->finish();
    } catch (const LostConnection&) {
      link_.reset();
      if (use_ == Use::kRead) return;
      if (!was_committed()) throw;
    } catch (const Error&) {
      if (use_ == Use::kRead) throw;
      link_.reset();  // what failed may lie before the commit, and may lie behind it
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
    guarded([&] { link_->send(sql, values); });
  }
  void each(std::string_view sql, std::initializer_list<Value> values,
            const std::function<void(const Row&)>& take) override {
    // What may not be kept is in no row, and the server would call the question itself an error.
    for (const Value& value : values) {
      const auto* text = std::get_if<std::string_view>(&value);
      if (text != nullptr && (!is_utf8(*text) || text->find('\0') != std::string_view::npos)) return;
    }
    guarded([&] {
      link_->send(sql, values);
      link_->finish(take);
    });
  }
  double now() override { return clock_.monotonic_seconds() + server_ahead_; }
  bool has_table(std::string_view name) override {
    bool found = false;
    each("SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?1", {name},
         [&](const Row&) { found = true; });
    return found;
  }
  std::vector<std::string> check() override { return {}; }  // the server minds its pages itself

 private:
  // An empty transaction behind the one that matters, durable with all before it.
  void flush() {
    link_->send(kBegin, {});
    link_->send("SELECT set_config('synchronous_commit', ?1, true), pg_logical_emit_message(true, 'sinew', '')",
                {durable_});
    link_->send("COMMIT", {});
  }
  template <typename Work>
  void guarded(const Work& work) {
    if (link_ == nullptr) throw LostConnection("store: the connection is gone", "check that the server runs");
    try {
      work();
    } catch (const LostConnection&) {
      link_.reset();
      throw;
    }
  }

  void connect() {
    auto link = std::make_unique<PostgresLink>(url_, options_.patience_seconds + 10);
    const auto milliseconds = std::to_string(static_cast<int64_t>(options_.patience_seconds * 1000) + 1);
    std::string durable = "on", schema;
    // Who stops between two statements (its machine lost, the process stopped) holds the lock that all writers wait
    // for. The server ends it before the others' patience does.
    const auto idle = std::to_string(static_cast<int64_t>(options_.patience_seconds * 1000 / 3) + 1);
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
      server_ahead_ = row.real(3) - clock_.monotonic_seconds();
    });
    if (schema.empty())
      throw Error("store " + without_password(url_) + ": the search path names no schema that exists",
                  "CREATE SCHEMA, or correct the URL");
    durable_ = durable;
    link->script("SET synchronous_commit = off");
    if (use_ == Use::kWrite) enter(*link);
    link_ = std::move(link);
  }
  // The row this connection leaves its marks in; it stays over reconnections.
  void enter(PostgresLink& link) {
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
      } catch (const LostConnection& lost) {
        if (clock_.monotonic_seconds() - since > options_.reconnect_seconds) throw Unsettled(lost.what(), lost.hint);
      }
      clock_.sleep_seconds(std::min(1.0, 0.02 * (1 << std::min(tries, 6))) *
                           std::uniform_real_distribution(0.5, 1.0)(jitter_));
    }
  }
  // Of the transaction whose commit nobody answered.
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
      } catch (const LostConnection& lost) {
        link_.reset();
        if (clock_.monotonic_seconds() - since > options_.reconnect_seconds) throw not_known(lost);
      } catch (const Unsettled& unsettled) {
        throw not_known(unsettled);
      } catch (const Error& error) {  // refused, or waited in vain for the lock: it says nothing of the commit
        link_.reset();
        throw not_known(error);
      }
    }
  }
  static Unsettled not_known(const Error& why) {
    return Unsettled(std::string(why.what()) + "; whether the last batch was written is not known",
                     "write it again under the same key");
  }

  const std::string url_;
  const Options options_;
  Clock& clock_;
  const Use use_;
  std::minstd_rand jitter_;
  std::string session_, durable_ = "on";
  int64_t lock_ = 0, mark_ = 0;
  double server_ahead_ = 0;
  std::unique_ptr<PostgresLink> link_;
};

}  // namespace

bool is_postgres(std::string_view where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

std::unique_ptr<Database> open_postgres(const std::string& url, const Options& options, Use use) {
  return std::make_unique<Postgres>(url, options, use);
}

}  // namespace sinew::store
