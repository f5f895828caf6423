// Inside store/: a store's session at a PostgreSQL server. It outlives its connections.
//
// - One advisory lock for each schema orders all writers. So the numbers of events have no gaps, and what a transaction
//   checks before it writes stays true.
// - A write transaction commits without waiting for the disk (synchronous_commit off), which releases the lock at once.
//   Then flush() commits a second, empty transaction with the server's own setting. A commit flushes everything that
//   was logged before it. So the first transaction is durable when the second returns, and the server merges the
//   flushes of several connections. A transaction that has read an unflushed commit is logged after it, so it flushes
//   both.
// - If the connection is lost during a commit, the new connection finds out whether the commit took place. Every write
//   transaction stores a growing mark in its session's row. The new connection reads the mark under the lock, which the
//   server releases only when the lost transaction has ended.
#pragma once

#include <memory>
#include <random>
#include <string>

#include "store/postgres_link.h"

namespace sinew::store {

class PostgresSession {
 public:
  // Connects without retries, so that a wrong URL fails at once.
  PostgresSession(const std::string& url, const Options& options, Access access);
  ~PostgresSession();
  PostgresSession(const PostgresSession&) = delete;
  PostgresSession& operator=(const PostgresSession&) = delete;

  bool connected() const { return link_ != nullptr; }
  PostgresLink& link() { return *link_; }
  void drop_link() { link_.reset(); }
  // Connects if there is no connection. Retries for at most `reconnect_seconds` (Options).
  void reconnect();
  // Calls `work` with the connection. Throws ConnectionLost if there is no connection, or if `work` throws it. In the
  // second case the session drops the connection.
  template <typename Work>
  void use(const Work& work) {
    if (link_ == nullptr) throw_lost();
    try {
      work(*link_);
    } catch (const ConnectionLost&) {
      link_.reset();
      throw;
    }
  }

  // Begins a write transaction: takes the lock, and stores the transaction's mark in the session's row (see the top of
  // this file).
  void begin_marked(PostgresLink& link);
  // Commits an empty transaction durably, and so makes everything durable that was logged before.
  void flush();
  // Call it if no response to a commit arrived. Returns whether the transaction was committed; if so, makes it durable.
  // Throws OutcomeUnknown if it cannot find out.
  bool was_committed();

  double now() const { return clock_.monotonic_seconds() + server_clock_offset_; }  // by the server's clock

 private:
  void connect();
  // Creates the session's row, which holds the mark of its newest write transaction. The row outlives a reconnection.
  void create_row(PostgresLink& link);
  [[noreturn]] void throw_lost() const;

  const std::string url_;
  const Options options_;
  Clock& clock_;
  const Access access_;
  std::minstd_rand jitter_;
  std::string id_, durable_ = "on";
  int64_t lock_ = 0, mark_ = 0;
  double server_clock_offset_ = 0;  // how far the server's clock is ahead of `clock_`
  std::unique_ptr<PostgresLink> link_;
};

}  // namespace sinew::store
