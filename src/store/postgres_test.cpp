// Tests faults that only a PostgreSQL server has: it stops, comes back, and loses connections during a commit.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <set>

#include "base/random.h"
#include "store/postgres_link.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

std::vector<Record> versions_of(Store& store) {
  return store.all({.kind = Kind::kVersion});
}

// Checks that the model has one version for each acknowledged body, that the numbers of the versions have no gap, and
// that each version was tagged once.
void check_versions(Store& store, const std::set<std::string>& said) {
  std::multiset<std::string> tagged;
  const auto versions = versions_of(store);  // newest first
  for (size_t i = 0; i < versions.size(); ++i) {
    EXPECT_EQ(versions[i].subject.number, static_cast<int64_t>(versions.size() - i));
    tagged.insert(versions[i].tags.at("body"));
  }
  EXPECT_EQ(versions.size(), said.size());
  for (const std::string& body : said) EXPECT_EQ(tagged.count(body), 1U) << body;
  EXPECT_THAT(store.check(), testing::IsEmpty());
}

// Creates a version in one write and tags it in a second one.
void write_version(Store& store, int i, std::set<std::string>& said) {
  const std::string body = std::to_string(i);
  const Answer version = done(store, Create{{Kind::kVersion, "m"}, "", "", body});
  const Answer tagged = done(store, SetTags{{Kind::kVersion, "m", version.number}, {{"body", body}}});
  EXPECT_FALSE(tagged.repeated);
  said.insert(body);
}

std::vector<Batch> six_versions() {
  std::vector<Batch> batches;
  for (int i = 0; i < 6; ++i) batches.push_back({{Create{{Kind::kVersion, "m"}, "", "", std::to_string(i)}}});
  return batches;
}

// Counts the results of concurrent writes.
struct Counts {
  std::atomic<int> written = 0, unknown = 0, failed = 0;
  int finished() const { return written + unknown + failed; }
  void count(const Outcome& outcome, const std::exception_ptr& error) {
    try {
      if (error) std::rethrow_exception(error);
      ++(outcome.has_value() ? written : failed);
    } catch (const OutcomeUnknown& unknown_outcome) {
      EXPECT_EQ(unknown_outcome.code, ErrorCode("STORE_OUTCOME_UNKNOWN"));
      ++unknown;
    } catch (const Error&) {
      ++failed;
    }
  }
};

// Forwards bytes between the store and the server, and sometimes cuts a connection just after it has forwarded some. So
// the server may have executed a statement whose response the store never receives.
class CuttingProxy {
 public:
  CuttingProxy(std::string from, std::string to, uint64_t seed) : to_(std::move(to)), random_(random_key({seed})) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(from);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 16) != 0)
      throw TestError("bind " + from);
    thread_ = std::thread([this] { serve(); });
  }
  ~CuttingProxy() {
    stop_ = true;
    thread_.join();
    for (const auto& [client, server] : pairs_) ::close(client), ::close(server);
    ::close(listener_);
  }
  std::atomic<bool> cutting = false;
  std::atomic<int> cuts = 0;
  // While `holding` is true, the proxy holds back every response of the server until the test sets `verdict`: to pass
  // the response on, or to cut the connection.
  enum class Verdict { none, pass, cut };
  std::atomic<bool> holding = false;
  std::atomic<int> held = 0;
  std::atomic<Verdict> verdict = Verdict::none;

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  void serve() {
    while (!stop_) {
      std::vector<pollfd> waits{{listener_, POLLIN, 0}};
      for (const auto& [client, server] : pairs_)
        waits.push_back({client, POLLIN, 0}), waits.push_back({server, POLLIN, 0});
      ::poll(waits.data(), waits.size(), 20);
      std::vector<std::pair<int, int>> kept;
      for (size_t i = 0; i < pairs_.size(); ++i) {
        if (pass_on(pairs_[i], waits[1 + 2 * i].revents != 0, waits[2 + 2 * i].revents != 0))
          kept.push_back(pairs_[i]);
        else
          ::close(pairs_[i].first), ::close(pairs_[i].second);
      }
      pairs_ = std::move(kept);
      if (waits[0].revents != 0) accept();
    }
  }
  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC),
              server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(to_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      pairs_.emplace_back(client, server);
    else
      ::close(client), ::close(server);
  }
  bool pass_on(const std::pair<int, int>& pair, bool from_client, bool from_server) {
    char bytes[65536];
    if (from_client) {
      const ssize_t size = ::read(pair.first, bytes, sizeof bytes);
      if (size <= 0 || ::send(pair.second, bytes, static_cast<size_t>(size), MSG_NOSIGNAL) != size) return false;
      if (cutting && random_.below(12) == 0) {
        ++cuts;
        if (random_.below(2) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random_.below(10)));
        return false;
      }
    }
    if (from_server) {
      const ssize_t size = ::read(pair.second, bytes, sizeof bytes);
      if (holding && size > 0 && !may_pass()) return false;
      if (size <= 0 || ::send(pair.first, bytes, static_cast<size_t>(size), MSG_NOSIGNAL) != size) return false;
    }
    return true;
  }
  bool may_pass() {
    ++held;
    while (verdict == Verdict::none && !stop_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return verdict.exchange(Verdict::none) == Verdict::pass;
  }
  const std::string to_;
  RandomStream random_;
  int listener_ = -1;
  std::vector<std::pair<int, int>> pairs_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class Postgres : public testing::Test {
 protected:
  PostgresServer& server = PostgresServer::one();
  Location location{true};
};

TEST_F(Postgres, SettlesCommitsWhoseConnectionIsCut) {
  const Folder folder;
  CuttingProxy proxy(folder / ".s.PGSQL.5432", server.socket(), 1);
  std::string url = location.where();
  url.replace(url.find(server.folder()), server.folder().size(), folder.path());
  Store store(url);
  done(store, Create{{Kind::kModel, "m"}});
  std::set<std::string> said;
  proxy.cutting = true;
  for (int i = 0; i < 60; ++i) write_version(store, i, said);
  proxy.cutting = false;
  EXPECT_GT(proxy.cuts, 10);
  check_versions(store, said);
}

// The response to a commit of several batches is lost. Then another process holds the lock for longer than the store
// waits. So the store cannot know whether the batches were written, and must not write them again.
TEST_F(Postgres, DoesNotRepeatACommitWithAnUnknownOutcome) {
  const Folder folder;
  CuttingProxy proxy(folder / ".s.PGSQL.5432", server.socket(), 1);
  std::string url = location.where();
  url.replace(url.find(server.folder()), server.folder().size(), folder.path());
  Options options;
  options.lock_timeout_seconds = 0.3;
  Store store(url, options);
  done(store, Create{{Kind::kModel, "m"}});
  PostgresLink other(location.where(), 30);
  const auto count = [&] {
    int64_t versions = 0;
    other.send("SELECT count(*) FROM record WHERE kind = 4", {});
    other.finish([&](const Row& row) { versions = row.integer(0); });
    return versions;
  };
  other.script("SELECT 1");
  Counts counts;
  proxy.holding = true;
  ConcurrentWrites writes(store, six_versions(), [&](const Outcome& outcome, const std::exception_ptr& error) {
    counts.count(outcome, error);
  });
  int64_t before = 0, now = 0;
  for (int held = 1;; ++held) {
    while (proxy.held < held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = count();
    if (now - before > 1) break;  // the store has committed several batches at once, and the proxy holds the response
    before = now;
    proxy.verdict = CuttingProxy::Verdict::pass;
  }
  other.script(
      "SELECT pg_advisory_lock((1397313111::bigint << 32) + oid::bigint) FROM pg_namespace WHERE nspname = "
      "current_schema()");
  proxy.holding = false;
  proxy.verdict = CuttingProxy::Verdict::cut;
  while (counts.unknown + counts.failed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  other.script("SELECT pg_advisory_unlock_all()");
  while (counts.finished() < 6) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(counts.unknown, now - before);
  EXPECT_EQ(counts.failed, 0);
  std::multiset<std::string> bodies;
  for (const Record& version : versions_of(store)) bodies.insert(version.body);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(bodies.count(std::to_string(i)), 1U) << i;
}

TEST_F(Postgres, LosesNothingWhenTheServerDiesAndComesBack) {
  Store store(location.where());
  done(store, Create{{Kind::kModel, "m"}});
  std::set<std::string> said;
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (int i = 0; !stop; ++i) write_version(store, 100'000 * round + i, said);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server.stop(round == 0 ? SIGQUIT : SIGINT);  // SIGQUIT stops the server at once; SIGINT lets it notify its clients
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
    writer.join();
    check_versions(store, said);
  }
}

TEST_F(Postgres, WaitsALimitedTimeForAServerThatStaysDown) {
  Options options;
  options.reconnect_seconds = 0.3;
  Store store(location.where(), options);
  done(store, Create{{Kind::kModel, "m"}});
  server.stop(SIGQUIT);
  EXPECT_EQ(code_of([&] { store.write(Create{{Kind::kVersion, "m"}}); }), "STORE_CONNECTION_LOST");
  EXPECT_EQ(code_of([&] { versions_of(store); }), "STORE_CONNECTION_LOST");
  EXPECT_EQ(code_of([&] { Store another(location.where(), options); }), "STORE_CONNECTION_LOST");
  server.start();
  std::set<std::string> said;
  write_version(store, 1, said);
  check_versions(store, said);
}

TEST_F(Postgres, ReconnectsAfterAnAdministratorEndsTheConnection) {
  Store store(location.where());
  done(store, Create{{Kind::kModel, "m"}});
  std::set<std::string> said;
  for (int i = 0; i < 10; ++i) {
    write_version(store, i, said);
    EXPECT_EQ(versions_of(store).size(), said.size());
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = "
        "'sinew'");
  }
  check_versions(store, said);
}

TEST_F(Postgres, ThrowsWhenAnotherTransactionHoldsTheLockTooLong) {
  Options options;
  options.lock_timeout_seconds = 0.2;
  Store store(location.where(), options);
  PostgresLink other(location.where(), 10);
  int64_t lock = 0;
  other.script("SET client_min_messages = warning");
  other.send("BEGIN", {});
  other.send("SELECT (1397313111::bigint << 32) | oid::bigint FROM pg_namespace WHERE nspname = current_schema()", {});
  other.finish([&](const Row& row) { lock = row.integer(0); });
  other.send("SELECT pg_advisory_xact_lock(?1)", {lock});
  other.finish();
  EXPECT_EQ(code_of([&] { store.write(SetNote{"n", "1"}); }), "STORE_BUSY");
  other.send("COMMIT", {});
  other.finish();
  done(store, SetNote{"n", "2"});
  EXPECT_EQ(store.note("n"), "2");
}

// A failure after the commit (in this test, a failure of the flush) does not undo the commit. The store must not write
// the batches again.
TEST_F(Postgres, DoesNotRepeatACommitAfterALaterFailure) {
  server.execute("CREATE FUNCTION " + location.schema() +
                 ".pg_logical_emit_message(boolean, text, text) RETURNS pg_lsn LANGUAGE plpgsql AS $$ BEGIN IF "
                 "to_regclass('" +
                 location.schema() +
                 ".broken') IS NOT NULL THEN RAISE EXCEPTION 'broken'; END IF; RETURN NULL; END $$");
  std::string url = location.where();
  url.replace(url.find(location.schema()), location.schema().size(), location.schema() + "%2Cpg_catalog");
  Store store(url);
  done(store, Create{{Kind::kModel, "m"}});
  server.execute("CREATE TABLE " + location.schema() + ".broken(x int)");
  Counts counts;
  {
    ConcurrentWrites writes(store, six_versions(), [&](const Outcome& outcome, const std::exception_ptr& error) {
      counts.count(outcome, error);
    });
  }
  EXPECT_EQ(counts.unknown, 6);
  server.execute("DROP TABLE " + location.schema() + ".broken");
  EXPECT_EQ(versions_of(store).size(), 6U);
  done(store, SetNote{"n", "1"});
}

// A process is suspended between two statements of its transaction. The other processes must be able to write again
// before their lock timeout passes.
TEST_F(Postgres, TheServerEndsTheTransactionOfASuspendedWriter) {
  const Folder folder;
  CuttingProxy proxy(folder / ".s.PGSQL.5432", server.socket(), 1);
  std::string url = location.where();
  url.replace(url.find(server.folder()), server.folder().size(), folder.path());
  Options short_timeout;
  short_timeout.lock_timeout_seconds = 0.6;
  Store suspended(url, short_timeout), other(location.where());
  done(other, SetNote{"n", "1"});
  proxy.holding = true;
  std::thread writer([&] { done(suspended, SetNote{"n", "2"}); });
  // The writer has sent its first query, so it has the lock. The proxy holds the response back.
  while (proxy.held < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  done(other, SetNote{"n", "3"});
  proxy.holding = false;
  proxy.verdict = CuttingProxy::Verdict::cut;
  writer.join();
  EXPECT_EQ(other.note("n"), "2");  // the writer has tried again
}

TEST_F(Postgres, ReportsWrongAddresses) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string url = location.where();
    url.replace(url.find(from), from.size(), to);
    return code_of([&] { Store store(url); });
  };
  EXPECT_EQ(with("/postgres?", "/nowhere?"), "STORE_BAD_URL");
  EXPECT_EQ(with(location.schema(), "nothing"), "STORE_NO_SCHEMA");
  EXPECT_EQ(with(server.folder(), "/nowhere"), "STORE_CONNECTION_LOST");
  EXPECT_EQ(without_password("postgresql://me:secret@host:5/db?x=@"), "postgresql://me:***@host:5/db?x=@");
  EXPECT_EQ(without_password("postgresql://me@host/db"), "postgresql://me@host/db");
  for (const char* visible : {"postgresql://me:secret@host/db", "postgresql://me@host/db?password=secret"})
    EXPECT_TRUE(has_password(visible)) << visible;
  for (const char* hidden : {"postgresql://me@host/db", "runs/.sinew/store.db", "a:b@c"})
    EXPECT_FALSE(has_password(hidden)) << hidden;
  EXPECT_EQ(without_password("postgresql:///db?host=a@b"), "postgresql:///db?host=a@b");
}

TEST(PostgresAddress, IsShownWithoutItsPassword) {
  const std::pair<const char*, const char*> shown[] = {
      {"postgresql://me:secret@host:5/db?x=@", "postgresql://me:***@host:5/db?x=@"},
      {"postgresql://me:se@cret@host/db", "postgresql://me:***@host/db"},
      {"postgresql://me:se/cret@host/db", "postgresql://me:***@host/db"},
      {"postgresql://me:se?cret@host/db", "postgresql://me:***@host/db"},
      {"postgresql://host:5/db?user=x&password=secret", "postgresql://host:5/db?user=x&password=***"},
      {"postgresql:///db?password=secret&sslpassword=&host=h", "postgresql:///db?password=***&sslpassword=***&host=h"},
      {"runs/.sinew/store.db", "runs/.sinew/store.db"}};
  for (const auto& [url, expected] : shown) EXPECT_EQ(without_password(url), expected);
}

TEST(PostgresAddress, NoErrorMessageContainsThePassword) {
  Options options;
  options.reconnect_seconds = 0;
  for (const char* url : {"postgresql://me:geheim@%2Fnowhere/db", "postgresql:///db?host=/nowhere&password=geheim"}) {
    const std::string said = error_of([&] { Store store(url, options); });
    EXPECT_NE(said, "");
    EXPECT_EQ(said.find("geheim"), std::string::npos) << said;
  }
}

TEST_F(Postgres, RefusesTablesOfOtherPrograms) {
  server.execute("CREATE TABLE " + location.schema() + ".event(x int)");
  EXPECT_EQ(code_of([&] { Store store(location.where()); }), "STORE_NOT_A_STORE");
}

// The store does not wait for the disk while it holds the lock, but it does so before write() returns.
TEST_F(Postgres, FlushesEveryAcknowledgedWrite) {
  Store store(location.where());
  PostgresLink other(location.where(), 10);
  other.script("SET client_min_messages = warning");
  for (int i = 0; i < 20; ++i) {
    int64_t behind = -1, inserted = 0;
    done(store, SetNote{"n", std::to_string(i)});
    other.send(
        "SELECT (pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn())::bigint, "
        "(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint",
        {});
    other.finish([&](const Row& row) {
      behind = row.integer(0);
      inserted = row.integer(1);
    });
    EXPECT_GT(inserted, 0);
    EXPECT_LE(behind, 4096) << "only the server's own housekeeping may be unflushed";
  }
}

}  // namespace
}  // namespace sinew::store
