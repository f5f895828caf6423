// What only a server can do to its clients: be away, come back, cut them off in the middle of a commit.
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

// Trials exactly as many as were acknowledged, each with its body, each told once.
void judge(Store& store, const std::set<std::string>& said) {
  std::multiset<std::string> told;
  const auto trials = store.trials("s");
  for (size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].number, static_cast<int64_t>(i));
    told.insert(trials[i].told_body);
  }
  EXPECT_EQ(trials.size(), said.size());
  for (const std::string& body : said) EXPECT_EQ(told.count(body), 1U) << body;
  EXPECT_THAT(store.check(), testing::IsEmpty());
}

void one_trial(Store& store, int i, std::set<std::string>& said) {
  const std::string body = std::to_string(i);
  const Answer trial = done(store, NewTrial{"s", "w", body, 3600});
  const Answer told = done(store, Tell{"s", trial.number, trial.fence, TrialState::kDone, body});
  EXPECT_FALSE(told.repeated);
  said.insert(body);
}

// Stands between the store and the server and cuts connections just after something was passed on, so that what was
// asked is done, or not, and nobody hears of it.
class CuttingProxy {
 public:
  CuttingProxy(std::string from, std::string to, uint64_t seed) : to_(std::move(to)), random_(random_key({seed})) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(from);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 16) != 0)
      throw Error("bind " + from);
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
  // Every answer of the server waits for a verdict: pass it on, or cut the connection instead.
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
  Place place{true};
};

TEST_F(Postgres, AConnectionCutInTheMiddleOfACommitIsSettled) {
  const Folder folder;
  CuttingProxy proxy(folder / ".s.PGSQL.5432", server.socket(), 1);
  std::string url = place.where();
  url.replace(url.find(server.folder()), server.folder().size(), folder.path());
  Store store(url);
  done(store, Create{{Kind::kStudy, "s"}});
  std::set<std::string> said;
  proxy.cutting = true;
  for (int i = 0; i < 60; ++i) one_trial(store, i, said);
  proxy.cutting = false;
  EXPECT_GT(proxy.cuts, 10);
  judge(store, said);
}

// The answer to a commit of several batches is lost, and then another process writes for longer than this one waits:
// whether they were written is not known, and nobody writes them once more.
TEST_F(Postgres, ACommitOfWhichNothingIsKnownIsNotDoneAgain) {
  const Folder folder;
  CuttingProxy proxy(folder / ".s.PGSQL.5432", server.socket(), 1);
  std::string url = place.where();
  url.replace(url.find(server.folder()), server.folder().size(), folder.path());
  Options options;
  options.patience_seconds = 0.3;
  Store store(url, options);
  done(store, Create{{Kind::kStudy, "s"}});
  PostgresLink other(place.where(), 30);
  const auto count = [&] {
    int64_t trials = 0;
    other.send("SELECT count(*) FROM trial", {});
    other.finish([&](const Row& row) { trials = row.integer(0); });
    return trials;
  };
  other.script("SELECT 1");
  std::atomic<int> unsettled = 0, written = 0, failed = 0;
  proxy.holding = true;
  for (int i = 0; i < 6; ++i) {
    store.submit(Batch{{NewTrial{"s", "w", std::to_string(i), 3600}}},
                 [&](const Outcome& outcome, std::exception_ptr trouble) {
                   try {
                     if (trouble) std::rethrow_exception(trouble);
                     ++(outcome.has_value() ? written : failed);
                   } catch (const Unsettled& error) {
                     EXPECT_THAT(error.what(), testing::HasSubstr("whether the last batch was written is not known"));
                     ++unsettled;
                   } catch (const Error&) {
                     ++failed;
                   }
                 });
  }
  int64_t before = 0, now = 0;
  for (int held = 1;; ++held) {
    while (proxy.held < held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = count();
    if (now - before > 1) break;  // several at once: committed, and the answer is here
    before = now;
    proxy.verdict = CuttingProxy::Verdict::pass;
  }
  other.script(
      "SELECT pg_advisory_lock((1397313111::bigint << 32) + oid::bigint) FROM pg_namespace WHERE nspname = "
      "current_schema()");
  proxy.holding = false;
  proxy.verdict = CuttingProxy::Verdict::cut;
  while (unsettled + failed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  other.script("SELECT pg_advisory_unlock_all()");
  while (unsettled + written + failed < 6) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(unsettled, now - before);
  EXPECT_EQ(failed, 0);
  std::multiset<std::string> bodies;
  for (const Trial& trial : store.trials("s")) bodies.insert(trial.asked_body);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(bodies.count(std::to_string(i)), 1U) << i;
}

TEST_F(Postgres, AServerThatDiesAndComesBackLosesNothing) {
  Store store(place.where());
  done(store, Create{{Kind::kStudy, "s"}});
  std::set<std::string> said;
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (int i = 0; !stop; ++i) one_trial(store, 100'000 * round + i, said);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server.stop(round == 0 ? SIGQUIT : SIGINT);  // without, and with, taking leave
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
    writer.join();
    judge(store, said);
  }
}

TEST_F(Postgres, AServerThatStaysAwayIsWaitedForWithABound) {
  Options options;
  options.reconnect_seconds = 0.3;
  Store store(place.where(), options);
  done(store, Create{{Kind::kStudy, "s"}});
  server.stop(SIGQUIT);
  EXPECT_NE(error_of([&] { store.write(NewTrial{"s", "w", "", 60}); }), "");
  EXPECT_NE(error_of([&] { store.trials("s"); }), "");
  EXPECT_NE(error_of([&] { Store another(place.where(), options); }), "");
  server.start();
  std::set<std::string> said;
  one_trial(store, 1, said);
  judge(store, said);
}

TEST_F(Postgres, AConnectionAnAdministratorEndsIsMadeAgain) {
  Store store(place.where());
  done(store, Create{{Kind::kStudy, "s"}});
  std::set<std::string> said;
  for (int i = 0; i < 10; ++i) {
    one_trial(store, i, said);
    EXPECT_EQ(store.trials("s").size(), said.size());
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = "
        "'sinew'");
  }
  judge(store, said);
}

TEST_F(Postgres, ATransactionThatHoldsTheLockForTooLongIsNotWaitedForForEver) {
  Options options;
  options.patience_seconds = 0.2;
  Store store(place.where(), options);
  PostgresLink other(place.where(), 10);
  int64_t lock = 0;
  other.script("SET client_min_messages = warning");
  other.send("BEGIN", {});
  other.send("SELECT (1397313111::bigint << 32) | oid::bigint FROM pg_namespace WHERE nspname = current_schema()", {});
  other.finish([&](const Row& row) { lock = row.integer(0); });
  other.send("SELECT pg_advisory_xact_lock(?1)", {lock});
  other.finish();
  EXPECT_THAT(error_of([&] {
                store.write(SetNote{"n", "1"});
              }),
              testing::HasSubstr("another process writes for too long"));
  other.send("COMMIT", {});
  other.finish();
  done(store, SetNote{"n", "2"});
  EXPECT_EQ(store.note("n"), "2");
}

// What fails behind the commit, here the flush, does not undo it: nobody writes it once more.
TEST_F(Postgres, AFailureBehindACommitIsNotTakenForOneBefore) {
  server.execute("CREATE FUNCTION " + place.schema() +
                 ".pg_logical_emit_message(boolean, text, text) RETURNS pg_lsn LANGUAGE plpgsql AS $$ BEGIN IF "
                 "to_regclass('" +
                 place.schema() + ".broken') IS NOT NULL THEN RAISE EXCEPTION 'broken'; END IF; RETURN NULL; END $$");
  std::string url = place.where();
  url.replace(url.find(place.schema()), place.schema().size(), place.schema() + "%2Cpg_catalog");
  Store store(url);
  done(store, Create{{Kind::kStudy, "s"}});
  server.execute("CREATE TABLE " + place.schema() + ".broken(x int)");
  std::atomic<int> unsettled = 0, others = 0;
  for (int i = 0; i < 6; ++i) {
    store.submit(Batch{{NewTrial{"s", "w", std::to_string(i), 3600}}},
                 [&](const Outcome&, const std::exception_ptr& trouble) {
                   try {
                     if (trouble) std::rethrow_exception(trouble);
                     ++others;
                   } catch (const Unsettled&) {
                     ++unsettled;
                   } catch (const Error&) {
                     ++others;
                   }
                 });
  }
  while (unsettled + others < 6) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(unsettled, 6);
  server.execute("DROP TABLE " + place.schema() + ".broken");
  EXPECT_EQ(store.trials("s").size(), 6U);
  done(store, SetNote{"n", "1"});
}

// A process that was stopped between two statements of its transaction: the others go on within their patience.
TEST_F(Postgres, AWriterThatStandsStillIsEndedByTheServer) {
  const Folder folder;
  CuttingProxy proxy(folder / ".s.PGSQL.5432", server.socket(), 1);
  std::string url = place.where();
  url.replace(url.find(server.folder()), server.folder().size(), folder.path());
  Options impatient;
  impatient.patience_seconds = 0.6;
  Store still(url, impatient), other(place.where());
  done(other, SetNote{"n", "1"});
  proxy.holding = true;
  std::thread writer([&] { done(still, SetNote{"n", "2"}); });
  // It has asked its first question, so it has the lock; the answer is held back.
  while (proxy.held < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  done(other, SetNote{"n", "3"});
  proxy.holding = false;
  proxy.verdict = CuttingProxy::Verdict::cut;
  writer.join();
  EXPECT_EQ(other.note("n"), "2");  // it tried again
}

TEST_F(Postgres, WrongAddressesAreSaid) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string url = place.where();
    url.replace(url.find(from), from.size(), to);
    return error_of([&] { Store store(url); });
  };
  EXPECT_THAT(with("/postgres?", "/nowhere?"), testing::HasSubstr("\"nowhere\" does not exist | check the URL"));
  EXPECT_THAT(with(place.schema(), "nothing"), testing::HasSubstr("the search path names no schema"));
  EXPECT_THAT(with(server.folder(), "/nowhere"), testing::HasSubstr("check that the server runs"));
  EXPECT_EQ(without_password("postgresql://me:secret@host:5/db?x=@"), "postgresql://me:***@host:5/db?x=@");
  EXPECT_EQ(without_password("postgresql://me@host/db"), "postgresql://me@host/db");
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

TEST(PostgresAddress, NoSentenceAboutAStoreHasItsPassword) {
  Options options;
  options.reconnect_seconds = 0;
  for (const char* url : {"postgresql://me:geheim@%2Fnowhere/db", "postgresql:///db?host=/nowhere&password=geheim"}) {
    const std::string said = error_of([&] { Store store(url, options); });
    EXPECT_NE(said, "");
    EXPECT_EQ(said.find("geheim"), std::string::npos) << said;
  }
}

TEST_F(Postgres, TablesOfOthersAreLeftAlone) {
  server.execute("CREATE TABLE " + place.schema() + ".event(x int)");
  EXPECT_THAT(error_of([&] { Store store(place.where()); }), testing::HasSubstr("tables of another program"));
}

// Commits do not wait for the disk while they hold the lock; the answer does.
TEST_F(Postgres, WhatIsAcknowledgedIsFlushed) {
  Store store(place.where());
  PostgresLink other(place.where(), 10);
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
    EXPECT_LE(behind, 4096) << "of the server's own housekeeping there may be a little";
  }
}

}  // namespace
}  // namespace sinew::store
