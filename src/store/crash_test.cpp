// Tests with processes that are killed at any moment, and with many processes that write at once. No acknowledged write
// may be lost, no write may happen twice, no batch may be half written, and no process may get the error "locked".
#include <atomic>
#include <cstdlib>
#include <set>

#include "base/random.h"
#include "store/children.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

class Crash : public OnBoth {};
ON_BOTH(Crash);
class LongCrash : public OnBoth {};
ON_BOTH(LongCrash);
class Crowd : public OnBoth {};
ON_BOTH(Crowd);

// Writes for ever. One batch creates a run with everything that belongs to it, and a version of the model "m" from this
// run; a second write tags the version. Passes an id to `say` once its write is acknowledged.
void work(const std::string& where, int64_t life, const Child::Say& say) {
  Store store(where);
  say("ready");
  for (int64_t i = 0;; ++i) {
    const std::string id = std::to_string(life) + "-" + std::to_string(i);
    const auto made = store.write(Batch{{Create{{Kind::kRun, id}, "e", "", "", {{"i", id}}},
                                         SetTags{{Kind::kRun, id}, {{"t", id}}}, AddPoints{id, "k", {{i, i, 1.5}}},
                                         Attach{{Kind::kRun, id}, "p", id, 1}, Create{{Kind::kVersion, "m"}, id}}});
    if (!made.has_value()) throw TestError("refused: " + made.error().why);
    say("run " + id);
    const Subject version{Kind::kVersion, "m", made->answers.back().number};
    for (int twice = 0; twice < 2; ++twice) {
      const auto tagged = store.write(SetTags{version, {{"run", id}}});
      if (!tagged.has_value()) throw TestError("refused: " + tagged.error().why);
      if (tagged->answers[0].repeated != (twice == 1)) throw TestError("the first tag was not the first");
    }
    say("tagged " + id);
    if (i % 3 == 0) {
      if (!store.write(SetRunState{id, RunState::kFinished}).has_value()) throw TestError("not finished");
      say("over " + id);
    }
  }
}

// Checks that the store has every acknowledged write, and that it has every other batch as a whole or not at all.
void check_all(Store& store, const std::set<std::string>& said) {
  std::set<std::string> runs, tagged;
  for (const Record& run : store.list({.kind = Kind::kRun, .limit = 1'000'000})) {
    const std::string& id = run.subject.id;
    runs.insert(id);
    EXPECT_EQ(run.params, (Labels{{"i", id}}));
    EXPECT_EQ(run.tags, (Labels{{"t", id}}));
    EXPECT_EQ(run.metrics.size(), 1U);
    EXPECT_EQ(store.attachments(run.subject).size(), 1U);
    if (said.contains("over " + id)) {
      EXPECT_EQ(run.state, RunState::kFinished);
    }
  }
  const auto versions = store.list({.kind = Kind::kVersion, .limit = 1'000'000});  // newest first
  EXPECT_EQ(versions.size(), runs.size());
  for (size_t i = 0; i < versions.size(); ++i) {
    EXPECT_EQ(versions[i].subject.number, static_cast<int64_t>(versions.size() - i));
    EXPECT_TRUE(runs.contains(versions[i].parent));
    if (!versions[i].tags.contains("run")) continue;
    EXPECT_EQ(versions[i].tags.at("run"), versions[i].parent);
    EXPECT_TRUE(tagged.insert(versions[i].parent).second) << "two versions of one run";
  }
  for (const std::string& line : said) {
    const std::string id = line.substr(line.find(' ') + 1);
    EXPECT_TRUE(line.starts_with("tagged") ? tagged.contains(id) : runs.contains(id))
        << line << " was acknowledged and is lost";
  }
  EXPECT_TRUE(store.check().empty()) << store.check().front();
}

void kill_often(const std::string& where, int kills, uint64_t seed) {
  {
    Store store(where);
    done(store, Create{{Kind::kExperiment, "e"}});
    done(store, Create{{Kind::kModel, "m"}});
  }
  RandomStream random(random_key({seed}));
  std::set<std::string> said;
  for (int life = 0; life < kills; ++life) {
    Child child([&](const Child::Say& say) { work(where, life, say); });
    ASSERT_EQ(child.line(), "ready");
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(60'000)));
    child.kill();
    for (std::string line = child.line(); !line.empty(); line = child.line()) {
      ASSERT_FALSE(line.starts_with("error")) << line;
      said.insert(line);
    }
  }
  EXPECT_FALSE(said.empty());
  Store store(where);
  check_all(store, said);
}

TEST_P(Crash, NothingAcknowledgedIsLost) {
  kill_often(location.where(), 12, 1);
}

TEST_P(LongCrash, NothingAcknowledgedIsLostInHundredsOfKills) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  kill_often(location.where(), 500, 2);
}

// All processes create the store at the same time and then write to it. Some of them are killed.
TEST_P(Crowd, ThirtyTwoProcessesShareAStore) {
  constexpr int kProcesses = 32, kVersions = 12;
  const std::string where = location.where();
  std::vector<Child> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.emplace_back([&, p](const Child::Say& say) {
      Options options;
      options.lock_timeout_seconds = 120;
      Store store(where, options);
      if (p == 0) store.write(Create{{Kind::kModel, "m"}});
      while (!store.find({Kind::kModel, "m"})) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (int i = 0; i < kVersions || p % 8 == 7; ++i) {
        const std::string body = std::to_string(p) + "-" + std::to_string(i);
        const auto made = store.write(Create{{Kind::kVersion, "m"}, "", "", body});
        if (!made.has_value()) throw TestError("refused: " + made.error().why);
        const auto tagged = store.write(SetTags{{Kind::kVersion, "m", made->answers[0].number}, {{"body", body}}});
        if (!tagged.has_value()) throw TestError("refused: " + tagged.error().why);
        say(body);
        store.list({.kind = Kind::kRun});  // opens a connection for reading
      }
    });
  }
  std::set<std::string> said;
  for (int p = 0; p < kProcesses; ++p) {
    int count = 0;
    for (std::string line = children[p].line(); !line.empty(); line = children[p].line()) {
      ASSERT_FALSE(line.starts_with("error")) << line;
      said.insert(line);
      if (++count == kVersions && p % 8 == 7) children[p].kill();
    }
  }
  Store store(where);
  std::set<std::string> there;
  const auto versions = store.list({.kind = Kind::kVersion, .limit = 1'000'000});
  for (size_t i = 0; i < versions.size(); ++i) {
    EXPECT_EQ(versions[i].subject.number, static_cast<int64_t>(versions.size() - i));
    if (!versions[i].tags.empty()) {
      EXPECT_EQ(versions[i].tags.at("body"), versions[i].body);
      EXPECT_TRUE(there.insert(versions[i].body).second);
    }
  }
  EXPECT_GE(said.size(), static_cast<size_t>(kProcesses * kVersions));
  for (const std::string& body : said) EXPECT_TRUE(there.contains(body)) << body;
  EXPECT_TRUE(store.check().empty());
}

// Many threads write at once. Some of them use a second Store, which competes with the first as another process would.
TEST_P(Crowd, ThreadsShareCommits) {
  auto store = open(), other = open();
  make_run(*store);
  std::vector<std::thread> threads;
  std::atomic<int> accepted = 0;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      Store& mine = t % 4 == 0 ? *other : *store;
      for (int i = 0; i < 25; ++i)
        accepted += mine.write(AddPoints{"r", "k" + std::to_string(t % 5), {{i, t, 1}}}).has_value() ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  other.reset();
  store = open();
  EXPECT_EQ(accepted, 16 * 25);
  int64_t points = 0;
  const auto run = store->find({Kind::kRun, "r"});
  for (const auto& [key, metric] : run->metrics) points += metric.count;
  EXPECT_EQ(points, 16 * 25);
}

}  // namespace
}  // namespace sinew::store
