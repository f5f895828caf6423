// Tests the index when other programs write to its store, and with files that it cannot read.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "registry/fake_run.h"
#include "registry/registry.h"

namespace sinew::registry {
namespace {

using nlohmann::json;
using store::Kind;

class Beside : public testing::Test {
 protected:
  Beside() : store(folder / "s.db") { std::filesystem::create_directories(root()); }
  std::string root() const { return folder / "runs"; }
  PassReport pass() {
    if (index == nullptr) index = std::make_unique<Index>(store, IndexOptions{.root = root()});
    return index->pass();
  }
  // Runs a pass as a new process would, without any state in memory.
  PassReport pass_anew() {
    index.reset();
    return pass();
  }
  FakeRun& run(const std::string& path) {
    auto& made = *runs.emplace_back(std::make_unique<FakeRun>(root(), path, random));
    made.grow(2);
    return made;
  }
  // Returns the record of the run in this directory, even if it is hidden.
  store::Record record(const std::string& path) {
    for (const store::Record& run : store.list({.kind = Kind::kRun, .hidden = true})) {
      if (run.tags.contains(kTagDirectory) && run.tags.at(kTagDirectory) == path) return run;
    }
    ADD_FAILURE() << path << " is not in the store";
    return {};
  }
  json body(const std::string& path) { return json::parse(record(path).body); }

  Folder folder;
  RandomStream random{RandomKey{11}};
  store::Store store;
  std::unique_ptr<Index> index;
  std::vector<std::unique_ptr<FakeRun>> runs;
};

// Points that clients logged to a run are in no file. They must stay when the file is truncated and grows again.
TEST_F(Beside, ATruncatedFileDropsOnlyItsOwnSeries) {
  FakeRun& training = run("a/run");
  training.grow(6);
  pass();
  const std::string id = record("a/run").subject.id;
  ASSERT_TRUE(store.write(store::AddPoints{id, "mine/auc", {{1, 1, 0.5}, {9, 9, 0.6}}}));
  training.die();
  training.resume_at(3);
  training.grow(1);
  pass_anew();
  const auto metrics = record("a/run").metrics;
  ASSERT_TRUE(metrics.contains("mine/auc"));
  EXPECT_EQ(metrics.at("mine/auc").count, 2);
  EXPECT_EQ(metrics.at("train/loss").last.step, 4);
  EXPECT_EQ(metrics.at("train/loss").count, 4);
}

// A newer program that resumes a run adds its new options to resolved.yaml. The run must keep its id.
TEST_F(Beside, ARunThatANewerProgramResumesStaysTheSame) {
  FakeRun& training = run("a/run");
  pass();
  const std::string id = record("a/run").subject.id;
  append_file(training.directory() + "/resolved.yaml", "new_option: auto\n");
  training.grow(1);
  pass();
  EXPECT_EQ(record("a/run").subject.id, id);
  EXPECT_FALSE(record("a/run").hidden);
  EXPECT_EQ(store.list({.kind = Kind::kRun, .hidden = true}).size(), 1u);
}

// Makes a run whose metrics cannot be read, so that it gets no record in the store.
std::string refused_run(const std::string& root, const std::string& path) {
  write_file(root + "/" + path + "/resolved.yaml", "name: a\n");
  std::filesystem::create_directories(root + "/" + path + "/metrics.jsonl");
  return root + "/" + path;
}

TEST_F(Beside, ARefusedRunThatIsRemovedIsForgotten) {
  FakeRun& other = run("z/other");
  const std::string refused = refused_run(root(), "a/refused");
  EXPECT_EQ(pass().problems.size(), 1u);
  std::filesystem::remove_all(refused);
  other.remove();
  const PassReport report = pass();
  EXPECT_TRUE(report.problems.empty()) << report.problems[0];
  EXPECT_EQ(report.hidden, 1);
}

TEST_F(Beside, ARefusedRunMakesRoomForAnother) {
  const std::string refused = refused_run(root(), "a/refused");
  EXPECT_EQ(pass().problems.size(), 1u);
  std::filesystem::remove_all(refused);
  run("a/refused");
  const PassReport report = pass();
  EXPECT_TRUE(report.problems.empty()) << report.problems[0];
  EXPECT_EQ(find_run(store, "a/refused").metrics.at("train/loss").count, 2);
}

TEST_F(Beside, ARenamedExperimentKeepsItsJob) {
  run("mnist/first");
  pass();
  const std::string experiment = record("mnist/first").parent;
  ASSERT_TRUE(store.write(store::Update{{Kind::kExperiment, experiment}, "digits"}));
  run("mnist/second");
  const PassReport report = pass_anew();
  EXPECT_TRUE(report.problems.empty()) << report.problems[0];
  EXPECT_EQ(record("mnist/second").parent, experiment);
  EXPECT_EQ(store.find({Kind::kExperiment, experiment})->name, "digits");
}

TEST_F(Beside, FieldsThatOthersWroteIntoABodyStay) {
  FakeRun& one = run("a/one");
  write_file(one.directory() + "/environment.json", "[]");
  pass();
  json changed = body("a/one");
  EXPECT_TRUE(changed.contains("problems"));
  changed["dataset_inputs"] = {{{"name", "mnist"}}};
  ASSERT_TRUE(store.write(store::Update{record("a/one").subject, {}, changed.dump()}));
  write_file(one.directory() + "/environment.json", "{\"cpu\":\"test\"}");
  one.end("done");
  pass();
  const json after = body("a/one");
  EXPECT_EQ(after.value("dataset_inputs", json()), changed["dataset_inputs"]);
  EXPECT_EQ(after["report"]["status"], "done");
  EXPECT_FALSE(after.contains("problems")) << "what is the index's own is as the files say";
}

TEST_F(Beside, ABodyThatIsNoObjectIsReplaced) {
  FakeRun& one = run("a/one");
  pass();
  for (const char* broken : {"", "[1]", "{", "null", "\"x\""}) {
    ASSERT_TRUE(store.write(store::Update{record("a/one").subject, {}, broken}));
    one.grow(1);
    EXPECT_TRUE(pass().problems.empty());
    EXPECT_EQ(body("a/one").value("directory", ""), "a/one") << broken;
  }
}

// The index and a client both read, change and write the body of the same record.
TEST_F(Beside, NothingThatIsWrittenDuringAPassIsLost) {
  FakeRun& one = run("a/one");
  pass();
  const store::Subject subject = record("a/one").subject;
  constexpr int kEntries = 60;
  std::thread other([&] {
    for (int entry = 0; entry < kEntries;) {
      const auto events = store.events({.after = 0, .limit = 100'000, .subject = subject});
      json changed = json::parse(store.find(subject)->body);
      changed["dataset_inputs"].push_back(entry);
      store::Batch batch{{store::Update{subject, {}, changed.dump()}}};
      batch.unchanged = {{subject, events.back().seq}};
      if (store.write(batch)) ++entry;
    }
  });
  for (int turn = 0; turn < 60; ++turn) {
    write_file(one.directory() + "/environment.json", "{\"turn\":" + std::to_string(turn) + "}");
    pass();
  }
  other.join();
  pass();
  EXPECT_EQ(body("a/one")["dataset_inputs"].size(), static_cast<size_t>(kEntries));
}

TEST_F(Beside, ARunThatAUserDeletedStaysDeleted) {
  FakeRun& one = run("a/one");
  pass();
  ASSERT_TRUE(store.write(store::Update{record("a/one").subject, {}, {}, true}));
  one.grow(1);
  pass();
  EXPECT_TRUE(record("a/one").hidden);
  one.grow(1);
  pass_anew();
  EXPECT_TRUE(record("a/one").hidden);
  EXPECT_EQ(record("a/one").metrics.at("train/loss").count, 4);
  one.die();
  std::filesystem::rename(one.directory(), folder / "away");
  EXPECT_EQ(pass().hidden, 0);
  std::filesystem::rename(folder / "away", one.directory());
  pass();
  EXPECT_TRUE(record("a/one").hidden);
  ASSERT_TRUE(store.write(store::Update{record("a/one").subject, {}, {}, false}));  // and restored
  pass_anew();
  EXPECT_FALSE(record("a/one").hidden);
}

TEST_F(Beside, ARunIsVisibleAgainWhenItsDirectoryIsBack) {
  for (const bool anew : {false, true}) {
    const std::string path = anew ? "a/one" : "a/two";
    FakeRun& one = run(path);
    pass();
    one.die();
    std::filesystem::rename(one.directory(), folder / "away");
    EXPECT_EQ(pass().hidden, 1);
    EXPECT_TRUE(record(path).hidden);
    EXPECT_EQ((anew ? pass_anew() : pass()).hidden, 0);
    std::filesystem::rename(folder / "away", one.directory());
    anew ? pass_anew() : pass();
    EXPECT_FALSE(record(path).hidden);
    // a user deletes the run after its directory has come back
    ASSERT_TRUE(store.write(store::Update{record(path).subject, {}, {}, true}));
    append_file(one.directory() + "/log.jsonl", "{}\n");
    pass_anew();
    EXPECT_TRUE(record(path).hidden);
  }
}

TEST_F(Beside, AJobThatCannotBeReadIsReported) {
  FakeRun& one = run("a/one");
  pass();
  one.die();
  std::filesystem::remove(one.directory() + "/resolved.yaml");
  std::filesystem::create_directories(one.directory() + "/resolved.yaml");
  std::filesystem::create_directories(root() + "/a/two/resolved.yaml");
  const PassReport report = pass();
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_NE(report.problems[0].find("a/one"), std::string::npos) << report.problems[0];
  EXPECT_NE(report.problems[1].find("a/two/resolved.yaml"), std::string::npos) << report.problems[1];
  EXPECT_EQ(report.hidden, 0);
  EXPECT_FALSE(record("a/one").hidden);
}

// Leaves so few free descriptors that the index can list a folder, but no folder inside it.
class OneDescriptor {
 public:
  OneDescriptor() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    while (const int free = ::dup(STDIN_FILENO)) {  // takes all free descriptors up to number 60
      taken_.push_back(free);
      if (free > 60) break;
    }
    ::close(taken_.back());
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(taken_.back()) + 1;
    taken_.pop_back();
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~OneDescriptor() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
    for (const int descriptor : taken_) ::close(descriptor);
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST_F(Beside, RunsInAFolderThatCannotBeListedAreNotHidden) {
  FakeRun &one = run("a/one"), &gone = run("gone");
  EXPECT_EQ(pass().added, 2);
  gone.remove();
  PassReport report;
  {
    const OneDescriptor few;
    report = pass();
  }
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].find("a: "), std::string::npos) << report.problems[0];
  EXPECT_EQ(report.hidden, 1);
  EXPECT_FALSE(record("a/one").hidden);
  EXPECT_TRUE(record("gone").hidden);
  one.remove();
  EXPECT_EQ(pass().hidden, 1);
}

TEST_F(Beside, TheLargestManifestIsRead) {
  FakeRun& one = run("a/one");
  DataManifest manifest;
  manifest.digest = std::string(64, 'a');
  for (const char* name : {"train", "val", "test"}) {
    DataSplit& split = manifest.splits[name];
    split.digest = std::string(64, name[0]);
    for (int i = 0; i < 20'000; ++i)
      split.files.push_back({"path/" + std::to_string(i), std::string(100, 'p'), 1, std::string(64, 'd')});
    split.count = 20'000;
  }
  const std::string text = to_json(manifest);
  ASSERT_GT(text.size(), 8u << 20);
  write_file(one.directory() + "/data.json", text);
  const PassReport report = pass();
  EXPECT_TRUE(report.problems.empty()) << report.problems[0];
  EXPECT_EQ(body("a/one")["data"]["digest"], manifest.digest);
  EXPECT_EQ(body("a/one")["data"]["test"], std::string(64, 't'));
}

}  // namespace
}  // namespace sinew::registry
