// Processes that are killed at any instant, and crowds of them: nothing that was acknowledged is lost, nothing is done
// twice, nothing is half done, and nobody is told "locked".
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

// Writes for ever: a run with all that belongs to it in one batch, points, a trial. Says each number when it is
// written.
void work(const std::string& where, int64_t life, const Child::Say& say) {
  Store store(where);
  say("ready");
  for (int64_t i = 0;; ++i) {
    const std::string id = std::to_string(life) + "-" + std::to_string(i);
    const auto made = store.write(
        Batch{{Create{{Kind::kRun, id}, "e", "", "", {{"i", id}}}, SetTags{{Kind::kRun, id}, {{"t", id}}},
               AddPoints{id, "k", {{i, i, 1.5}}}, Attach{{Kind::kRun, id}, "p", id, 1}, NewTrial{"s", "w", id, 3600}}});
    if (!made.has_value()) throw Error("refused: " + made.error().why);
    say("run " + id);
    const Answer trial = made->answers.back();
    for (int twice = 0; twice < 2; ++twice) {
      const auto told = store.write(Tell{"s", trial.number, trial.fence, TrialState::kDone, id});
      if (!told.has_value()) throw Error("refused: " + told.error().why);
    }
    say("told " + id);
    if (i % 3 == 0) {
      if (!store.write(Move{id, RunState::kFinished}).has_value()) throw Error("not finished");
      say("over " + id);
    }
  }
}

// All that the child was told is done is there, and what it was not told is there as a whole or not at all.
void judge(Store& store, const std::set<std::string>& said) {
  std::set<std::string> runs, told;
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
  const auto trials = store.trials("s");
  EXPECT_EQ(trials.size(), runs.size());
  for (size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].number, static_cast<int64_t>(i));
    EXPECT_TRUE(runs.contains(trials[i].asked_body));
    if (trials[i].state != TrialState::kDone) continue;
    EXPECT_EQ(trials[i].told_body, trials[i].asked_body);
    EXPECT_TRUE(told.insert(trials[i].told_body).second) << "told twice";
  }
  for (const std::string& line : said) {
    const std::string id = line.substr(line.find(' ') + 1);
    EXPECT_TRUE(line.starts_with("told") ? told.contains(id) : runs.contains(id))
        << line << " was acknowledged and is lost";
  }
  EXPECT_TRUE(store.check().empty()) << store.check().front();
}

void kill_often(const std::string& where, int kills, uint64_t seed) {
  {
    Store store(where);
    done(store, Create{{Kind::kExperiment, "e"}});
    done(store, Create{{Kind::kStudy, "s"}});
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
  judge(store, said);
}

TEST_P(Crash, NothingAcknowledgedIsLost) {
  kill_often(place.where(), 12, 1);
}

TEST_P(LongCrash, NothingAcknowledgedIsLostInHundredsOfKills) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  kill_often(place.where(), 500, 2);
}

// From nothing: they make the store together, then all write to it; some are killed.
TEST_P(Crowd, ThirtyTwoProcessesShareAStore) {
  constexpr int kProcesses = 32, kTrials = 12;
  const std::string where = place.where();
  std::vector<Child> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.emplace_back([&, p](const Child::Say& say) {
      Options options;
      options.patience_seconds = 120;
      Store store(where, options);
      if (p == 0) store.write(Create{{Kind::kStudy, "s"}});
      while (!store.find({Kind::kStudy, "s"})) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (int i = 0; i < kTrials || p % 8 == 7; ++i) {
        const std::string body = std::to_string(p) + "-" + std::to_string(i);
        const auto trial = store.write(NewTrial{"s", std::to_string(p), body, 3600});
        if (!trial.has_value()) throw Error("refused: " + trial.error().why);
        const auto told = store.write(Tell{"s", trial->answers[0].number, 1, TrialState::kDone, body});
        if (!told.has_value()) throw Error("refused: " + told.error().why);
        say(body);
        store.trials("none");  // readers come and go too
      }
    });
  }
  std::set<std::string> said;
  for (int p = 0; p < kProcesses; ++p) {
    int count = 0;
    for (std::string line = children[p].line(); !line.empty(); line = children[p].line()) {
      ASSERT_FALSE(line.starts_with("error")) << line;
      said.insert(line);
      if (++count == kTrials && p % 8 == 7) children[p].kill();
    }
  }
  Store store(where);
  std::set<std::string> there;
  const auto trials = store.trials("s");
  for (size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].number, static_cast<int64_t>(i));
    if (trials[i].state == TrialState::kDone) {
      EXPECT_TRUE(there.insert(trials[i].told_body).second);
    }
  }
  EXPECT_GE(said.size(), static_cast<size_t>(kProcesses * kTrials));
  for (const std::string& body : said) EXPECT_TRUE(there.contains(body)) << body;
  EXPECT_TRUE(store.check().empty());
}

// Many threads of one process and of another, and submitted batches among them.
TEST_P(Crowd, ThreadsShareCommits) {
  auto store = open(), other = open();
  make_run(*store);
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      Store& mine = t % 4 == 0 ? *other : *store;
      for (int i = 0; i < 25; ++i) {
        const Batch batch{{AddPoints{"r", "k" + std::to_string(t % 5), {{i, t, 1}}}}};
        if (t % 2 == 0) {
          answered += mine.write(batch).has_value() ? 1 : 0;
        } else {
          mine.submit(batch, [&](const Outcome& outcome, const std::exception_ptr&) {
            answered += outcome.has_value() ? 1 : 0;
          });
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  other.reset();
  store = open();
  EXPECT_EQ(answered, 16 * 25);
  int64_t points = 0;
  const auto run = store->find({Kind::kRun, "r"});
  for (const auto& [key, metric] : run->metrics) points += metric.count;
  EXPECT_EQ(points, 16 * 25);
}

}  // namespace
}  // namespace sinew::store
