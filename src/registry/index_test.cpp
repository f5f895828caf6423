#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <bit>
#include <climits>
#include <nlohmann/json.hpp>

#include "base/lease_holder.h"
#include "base/process.h"
#include "registry/fake_run.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

using store::Kind;
using store::RunState;

// Returns all that the store has about the visible runs, by directory. Includes the times at which they ended if
// `times`.
std::map<std::string, std::string> picture_of(store::Store& store) {
  std::map<std::string, std::string> picture;
  for (const store::Record& run : store.list({.kind = Kind::kRun})) {
    std::ostringstream text;
    text << run.subject.id << " " << run.parent << " " << run.name << " " << to_string(run.state) << " attempt "
         << run.attempt << " " << run.begun_ms << "-" << run.ended_ms << "\n"
         << run.body << "\n";
    for (const auto& [key, value] : run.params) text << key << "=" << value << "\n";
    for (const auto& [key, value] : run.tags) text << key << "=" << value << "\n";
    for (const auto& [key, metric] : run.metrics) {
      const store::Series series{run.subject.id, key};
      text << key;
      const auto history = store.history(std::span(&series, 1));
      for (const store::Point& point : history[0])
        text << " " << point.step << "," << point.time_ms << "," << std::bit_cast<uint64_t>(point.value);
      text << "\n";
    }
    EXPECT_TRUE(picture.emplace(run.tags.at(kTagDirectory), text.str()).second) << "twice";
  }
  return picture;
}

void index_all(store::Store& store, const std::string& root, int64_t piece_bytes = 1 << 20) {
  Index index(store, {.root = root, .holder = "test", .piece_bytes = piece_bytes});
  while (index.pass().unfinished) {
  }
}

store::Record only_run(store::Store& store) {
  const auto runs = store.list({.kind = Kind::kRun});
  EXPECT_EQ(runs.size(), 1u);
  return runs.empty() ? store::Record() : runs[0];
}

class IndexWorld {
 public:
  IndexWorld(uint64_t seed) : random_(RandomKey{seed}) { std::filesystem::create_directories(root()); }
  std::string root() const { return folder_ / "runs"; }
  std::string in(const std::string& name) const { return folder_ / name; }
  RandomStream& random() { return random_; }

  // Makes a random change to one of the runs, or begins a new one.
  void happen() {
    if (runs_.empty() || (runs_.size() < 5 && random_.below(4) == 0)) return begin();
    FakeRun& run = *runs_[random_.below(runs_.size())];
    if (!run.alive()) return revive(run);
    switch (random_.below(8)) {
      case 0: run.tear(), run.die(); break;
      case 1: run.die(); break;
      case 2: run.end(random_.below(2) == 0 ? "done" : "stopped"); break;
      default: run.grow(static_cast<int64_t>(1 + random_.below(30)));
    }
  }

 private:
  void begin() { runs_.push_back(std::make_unique<FakeRun>(root(), new_path(), random_)); }
  std::string new_path() {
    ++made_;
    return "job" + std::to_string(random_.below(2)) + "/20261121T0315" + std::to_string(10 + made_ % 50) + "Z-" +
           std::to_string(made_);
  }
  void revive(FakeRun& run) {
    switch (random_.below(6)) {
      case 0: return forget(run);
      case 1: return run.move_to(root(), new_path());
      case 2: return replace(run);
      default: run.resume_at(static_cast<int64_t>(random_.below(static_cast<uint64_t>(run.step()) + 1)));
    }
  }
  void forget(FakeRun& run) {
    run.remove();
    std::erase_if(runs_, [&](const auto& other) { return other.get() == &run; });
  }
  void replace(FakeRun& run) {
    const std::string path = run.path();
    forget(run);
    runs_.push_back(std::make_unique<FakeRun>(root(), path, random_));
  }

  RandomStream random_;
  Folder folder_;
  std::vector<std::unique_ptr<FakeRun>> runs_;
  int made_ = 0;
};

TEST(Index, ManyPassesGiveTheSameAsOnePass) {
  for (uint64_t seed = 0; seed < 12 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    IndexWorld world(seed);
    store::Store bit_by_bit(world.in("a.db"));
    auto index = std::make_unique<Index>(bit_by_bit, IndexOptions{.root = world.root(), .piece_bytes = 300});
    for (int turn = 0; turn < 40; ++turn) {
      for (uint64_t events = world.random().below(5); events > 0; --events) world.happen();
      if (world.random().below(8) == 0) {  // another process continues the indexing
        index.reset();
        index = std::make_unique<Index>(bit_by_bit, IndexOptions{.root = world.root(), .piece_bytes = 300});
      }
      const PassReport report = index->pass();
      EXPECT_EQ(report.held_by, "");
      EXPECT_TRUE(report.problems.empty()) << report.problems[0];
    }
    while (index->pass().unfinished) {
    }
    store::Store at_once(world.in("b.db"));
    index_all(at_once, world.root());
    EXPECT_EQ(picture_of(bit_by_bit), picture_of(at_once));
  }
}

// The indexing process is killed at random moments while the runs go on.
TEST(Index, KillsOfTheIndexingProcessLoseAndRepeatNothing) {
  IndexWorld world(77);
  for (int life = 0; life < 25; ++life) {
    for (int events = 0; events < 12; ++events) world.happen();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        store::Store store(world.in("a.db"));
        while (true) {
          // Release the lease if the process that was killed before still holds it.
          const auto lease = store.lease("registry.index");
          if (!lease.holder.empty()) store.write(store::Release{"registry.index", lease.fence});
          index_all(store, world.root(), 500);
        }
      } catch (...) {
      }
      ::_exit(1);
    }
    ::usleep(static_cast<useconds_t>(1000 + world.random().below(60'000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
  }
  store::Store store(world.in("a.db")), at_once(world.in("b.db"));
  const auto lease = store.lease("registry.index");
  if (!lease.holder.empty()) store.write(store::Release{"registry.index", lease.fence});
  index_all(store, world.root());
  index_all(at_once, world.root());
  EXPECT_EQ(picture_of(store), picture_of(at_once));
}

TEST(Index, TheFilesOfARunDecideItsState) {
  Folder folder;
  RandomStream random(RandomKey{1});
  store::Store store(folder / "s.db");
  FakeRun run(folder / "runs", "mnist/20261121T031502Z-1a2b", random);
  Index index(store, {.root = folder / "runs"});
  run.grow(5);
  EXPECT_EQ(index.pass().added, 1);
  store::Record record = only_run(store);
  EXPECT_EQ(record.state, RunState::kRunning);
  EXPECT_EQ(record.name, "20261121T031502Z-1a2b");
  EXPECT_EQ(store.find({Kind::kExperiment, record.parent})->name, "mnist");
  EXPECT_EQ(record.begun_ms, 1'795'230'902'000);
  EXPECT_EQ(record.params.at("trainer.lanes"), "auto");
  EXPECT_EQ(record.metrics.at("train/loss").last.step, 5);

  run.die();
  index.pass();
  record = only_run(store);
  EXPECT_EQ(record.state, RunState::kFailed);
  EXPECT_EQ(record.tags.at(kTagStatus), "interrupted");

  run.resume_at(2);
  run.grow(1);
  index.pass();
  record = only_run(store);
  EXPECT_EQ(record.state, RunState::kRunning);
  EXPECT_EQ(record.attempt, 2);
  EXPECT_EQ(record.metrics.at("train/loss").last.step, 3);
  EXPECT_EQ(record.metrics.at("train/loss").count, 3);

  run.end("done");
  index.pass();
  record = only_run(store);
  EXPECT_EQ(record.state, RunState::kFinished);
  EXPECT_EQ(record.attempt, 2);
  EXPECT_EQ(record.tags.at(kTagDigest).size(), 32u);
  int64_t ends = 0;
  for (const store::Event& event : store.events({.after = 0, .limit = 1000, .subject = record.subject}))
    ends += event.what == "failed" || event.what == "finished" || event.what == "stopped";
  EXPECT_EQ(ends, 2);  // one per attempt
}

TEST(Index, AnUnchangedRunIsCheckedButNotWritten) {
  Folder folder;
  RandomStream random(RandomKey{2});
  store::Store store(folder / "s.db");
  std::vector<std::unique_ptr<FakeRun>> runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back(std::make_unique<FakeRun>(folder / "runs", "j/20261121T031502Z-" + std::to_string(i), random));
    runs.back()->grow(3);
    if (i % 3 == 0) runs.back()->end("done");
    if (i % 3 == 1) runs.back()->die();
  }
  Index index(store, {.root = folder / "runs"});
  EXPECT_EQ(index.pass().changed, 20);
  const auto before = store.events({.after = 0, .limit = 100'000}).back().seq;
  const PassReport again = index.pass();
  EXPECT_EQ(again.runs, 20);
  EXPECT_EQ(again.changed, 0);
  EXPECT_EQ(again.points, 0);
  EXPECT_EQ(store.events({.after = 0, .limit = 100'000}).back().seq, before);
}

TEST(Index, AStoppedPassLeavesTheRestToTheNext) {
  Folder folder;
  RandomStream random(RandomKey{5});
  store::Store store(folder / "s.db");
  std::vector<std::unique_ptr<FakeRun>> runs;
  for (int i = 0; i < 5; ++i) {
    runs.push_back(std::make_unique<FakeRun>(folder / "runs", "j/20261121T031502Z-" + std::to_string(i), random));
    runs.back()->grow(100);
  }
  int looks = 0, most = 2;
  Index index(store, {.root = folder / "runs", .piece_bytes = 300, .should_stop = [&] { return ++looks > most; }});
  const PassReport cut = index.pass();
  EXPECT_TRUE(cut.unfinished);
  EXPECT_LT(cut.points, 200);  // the pass has stopped after a piece or two of the first run
  most = INT_MAX;
  while (index.pass().unfinished) continue;
  EXPECT_EQ(store.list({.kind = Kind::kRun}).size(), 5u);
  looks = most = 0;
  EXPECT_EQ(index.pass().hidden, 0);  // a directory that the pass did not reach does not count as gone
  EXPECT_EQ(store.list({.kind = Kind::kRun}).size(), 5u);
  for (const auto& run : runs) {
    EXPECT_EQ(find_run(store, run->path(), folder / "runs").metrics.at("train/loss").count, 100);
  }
}

TEST(Index, OneProcessIndexesAStore) {
  Folder folder;
  std::filesystem::create_directories(folder / "runs");
  store::Store store(folder / "s.db");
  auto first = std::make_unique<Index>(store, IndexOptions{.root = folder / "runs", .holder = "first"});
  Index second(store, {.root = folder / "runs", .holder = "second"});
  EXPECT_EQ(first->pass().held_by, "");
  EXPECT_EQ(second.pass().held_by, "first");
  first.reset();
  EXPECT_EQ(second.pass().held_by, "");
}

// Two containers may have the same host name, and the process id of a dead process may belong to another one.
TEST(Index, OnlyTheLeaseOfACertainlyDeadProcessIsTakenAtOnce) {
  Folder folder;
  std::filesystem::create_directories(folder / "runs");
  store::Store store(folder / "s.db");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto mine_with = [](const nlohmann::json& changes) {
    nlohmann::json holder = nlohmann::json::parse(lease_holder());
    holder.update(changes);
    return holder.dump();
  };
  Index index(store, {.root = folder / "runs"});
  const auto is_taken = [&](const std::string& holder) {
    const auto taken = store.write(store::Acquire{"registry.index", holder, 1000});
    EXPECT_TRUE(taken);
    const std::string held_by = index.pass().held_by;
    EXPECT_TRUE(held_by.empty() || held_by == describe_holder(holder)) << held_by;
    store.write(store::Release{"registry.index", store.lease("registry.index").fence});
    return held_by.empty();
  };
  EXPECT_TRUE(is_taken(mine_with({{"pid", child}})));
  EXPECT_TRUE(is_taken(mine_with({{"began", "1"}})));
  EXPECT_FALSE(is_taken(mine_with(nlohmann::json::object())));
  EXPECT_FALSE(is_taken(mine_with({{"pid", child}, {"numbers", "another container"}})));
  EXPECT_FALSE(is_taken(host_name() + ":" + std::to_string(child)));  // as earlier versions named themselves
}

TEST(Index, AStoreBelongsToOneRoot) {
  Folder folder;
  std::filesystem::create_directories(folder / "one");
  std::filesystem::create_directories(folder / "two");
  store::Store store(folder / "s.db");
  index_all(store, folder / "one");
  EXPECT_EQ(code_of([&] { index_all(store, folder / "two"); }), "INDEX_OTHER_ROOT");
  std::filesystem::remove(folder / "one");  // the old path is gone, so the second path is the same root, moved
  index_all(store, folder / "two");
}

TEST(Index, ReportsBrokenFilesAndIndexesTheRest) {
  Folder folder;
  RandomStream random(RandomKey{3});
  store::Store store(folder / "s.db");
  FakeRun good(folder / "runs", "a/good", random), bad(folder / "runs", "a/bad", random);
  good.grow(4);
  bad.grow(2);
  append_file(bad.directory() + "/metrics.jsonl", "not json\n" + std::string(3 << 20, 'x') + "\n");
  bad.grow(1);
  write_file(bad.directory() + "/report.json", "{");
  write_file(bad.directory() + "/environment.json", "[1,2]");
  std::filesystem::create_directories(folder / "runs/a/worse");
  write_file(folder / "runs/a/worse/resolved.yaml", "a: [1\xff\x00, }");
  std::filesystem::create_directories(folder / "runs/a/worse/metrics.jsonl");
  Index index(store, {.root = folder / "runs"});
  const PassReport report = index.pass();
  EXPECT_GE(report.problems.size(), 5u);
  for (const std::string& problem : report.problems) EXPECT_NE(problem.find("a/"), std::string::npos) << problem;
  EXPECT_EQ(find_run(store, "a/good").metrics.at("train/loss").count, 4);
  EXPECT_EQ(find_run(store, "a/bad").metrics.at("train/loss").count, 3);
  EXPECT_EQ(code_of([&] { find_run(store, "nobody"); }), "RUN_NOT_FOUND");
  EXPECT_EQ(find_run(store, "good").subject, find_run(store, good.directory(), folder / "runs").subject);
}

TEST(Index, SkipsNamesWithDotsAndLinks) {
  Folder folder;
  RandomStream random(RandomKey{4});
  store::Store store(folder / "s.db");
  FakeRun run(folder / "runs", "a/run", random), hidden(folder / "runs", ".sinew/run", random);
  std::filesystem::create_directory_symlink(run.directory(), folder / "runs/a/last");
  Index index(store, {.root = folder / "runs"});
  EXPECT_EQ(index.pass().runs, 1);
}

}  // namespace
}  // namespace sinew::registry
