#include "store/postgres_session.h"

#include <algorithm>

namespace sinew::store {
namespace {

// Under the lock a transaction must see what the previous one wrote. READ COMMITTED ensures this, whatever the
// database's default isolation level is.
constexpr std::string_view kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED";

OutcomeUnknown outcome_unknown(const Error& why) {
  return OutcomeUnknown("STORE_OUTCOME_UNKNOWN",
                        std::string(why.what()) + "; it is unknown whether the last batch was written",
                        "write the batch again under the same key");
}

}  // namespace

PostgresSession::PostgresSession(const std::string& url, const Options& options, Access access)
    : url_(url), options_(options), clock_(*options.clock), access_(access), jitter_(std::random_device()()) {
  std::random_device device;
  id_ = std::to_string((static_cast<uint64_t>(device()) << 32U) | device());
  connect();
}

PostgresSession::~PostgresSession() {
  if (link_ == nullptr || access_ == Access::kRead) return;
  try {
    link_->send("DELETE FROM postgres_session WHERE id = ?1", {id_});
    link_->finish();
  } catch (const Error&) {
    link_.reset();  // another session deletes the row when it is a day old
  }
}

void PostgresSession::reconnect() {
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

void PostgresSession::begin_marked(PostgresLink& link) {
  link.send(kBegin, {});
  link.send("SELECT pg_advisory_xact_lock(?1)", {lock_});
  // Creates the row again if another session has deleted it: sessions delete rows that were idle for a day.
  link.send(
      "INSERT INTO postgres_session(id, mark, at_ms) VALUES (?1, ?2, ?3) "
      "ON CONFLICT(id) DO UPDATE SET mark = excluded.mark, at_ms = excluded.at_ms",
      {id_, ++mark_, static_cast<int64_t>(clock_.wall_seconds() * 1000)});
}

void PostgresSession::flush() {
  link_->send(kBegin, {});
  link_->send("SELECT set_config('synchronous_commit', ?1, true), pg_logical_emit_message(true, 'sinew', '')",
              {durable_});
  link_->send("COMMIT", {});
}

bool PostgresSession::was_committed() {
  const double since = clock_.monotonic_seconds();
  for (;;) {
    try {
      reconnect();
      int64_t mark = 0;
      link_->send(kBegin, {});
      link_->send("SELECT pg_advisory_xact_lock(?1)", {lock_});
      link_->send("SELECT mark FROM postgres_session WHERE id = ?1", {id_});
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
    } catch (const Error& error) {  // for example a lock timeout; it stays unknown whether the commit took place
      link_.reset();
      throw outcome_unknown(error);
    }
  }
}

void PostgresSession::connect() {
  auto link = std::make_unique<PostgresLink>(url_, options_.lock_timeout_seconds + 10);
  const auto milliseconds = std::to_string(static_cast<int64_t>(options_.lock_timeout_seconds * 1000) + 1);
  std::string durable = "on", schema;
  // If a process stops between two statements (its machine is lost, or it is suspended), it keeps the lock that all
  // writers wait for. The server ends such a session before the writers' lock timeout passes.
  const auto idle = std::to_string(static_cast<int64_t>(options_.lock_timeout_seconds * 1000 / 3) + 1);
  link->script("SET client_min_messages = warning; SET lock_timeout = " + milliseconds +
               "; SET idle_in_transaction_session_timeout = " + idle);
  // A request that is over closes its connection. Servers from version 14 on then end its statement within a second.
  link->send("SELECT set_config(name, '1000', false) FROM pg_settings WHERE name = 'client_connection_check_interval'",
             {});
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
  if (access_ == Access::kWrite) create_row(*link);
  link_ = std::move(link);
}

void PostgresSession::create_row(PostgresLink& link) {
  link.send(kBegin, {});
  link.send("SELECT pg_advisory_xact_lock(?1)", {lock_});
  link.send(
      "CREATE TABLE IF NOT EXISTS postgres_session(id TEXT NOT NULL PRIMARY KEY, mark INTEGER NOT NULL, at_ms "
      "INTEGER NOT NULL)",
      {});
  const auto at_ms = static_cast<int64_t>(clock_.wall_seconds() * 1000);
  link.send("DELETE FROM postgres_session WHERE at_ms < ?1", {at_ms - 86'400'000});
  link.send("INSERT INTO postgres_session(id, mark, at_ms) VALUES (?1, 0, ?2) ON CONFLICT(id) DO UPDATE SET at_ms = ?2",
            {id_, at_ms});
  link.send("COMMIT", {});
  link.finish();
}

void PostgresSession::throw_lost() const {
  throw ConnectionLost("STORE_CONNECTION_LOST", "store " + without_password(url_) + ": the connection was lost",
                       "check that the server runs");
}

}  // namespace sinew::store
