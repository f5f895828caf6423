// Tests that a user who may write to the root of the runs cannot make the index read other files or hang.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/expected_error.h"
#include "base/random.h"
#include "registry/fake_run.h"
#include "registry/registry.h"
#include "registry/testing.h"

namespace sinew::registry {
namespace {

namespace fs = std::filesystem;
using store::Kind;

class HostileRuns : public testing::Test {
 protected:
  HostileRuns() : store(folder / "s.db"), random(RandomKey{7}) {
    write_file(folder / "secret", "password: geheim\n{\"step\":1,\"samples\":1,\"time\":1,\"geheim\":5}\n");
  }
  std::string root() const { return folder / "runs"; }
  PassReport index() { return Index(store, {.root = root()}).pass(); }
  // Replaces this file of the run by a link to the secret.
  void link(const FakeRun& run, const std::string& name) const {
    fs::remove(run.directory() + "/" + name);
    fs::create_symlink(folder / "secret", run.directory() + "/" + name);
  }

  Folder folder;
  store::Store store;
  RandomStream random;
};

TEST_F(HostileRuns, TheIndexFollowsNoLinks) {
  for (const char* name :
       {"resolved.yaml", "job.yaml", "metrics.jsonl", "report.json", "environment.json", "log.jsonl"}) {
    FakeRun run(root(), std::string("job/of-") + name, random);
    run.grow(2);
    link(run, name);
  }
  const PassReport report = index();
  EXPECT_GE(report.problems.size(), 6U);
  for (const std::string& problem : report.problems)
    EXPECT_NE(problem.find("symbolic link"), std::string::npos) << problem;
  for (const store::Record& run : store.list({.kind = Kind::kRun, .hidden = true})) {
    EXPECT_FALSE(run.params.contains("password")) << run.name;
    EXPECT_FALSE(run.metrics.contains("geheim")) << run.name;
  }
}

TEST_F(HostileRuns, AVersionHoldsNoFileBehindALink) {
  FakeRun run(root(), "job/a", random);
  run.grow(2);
  run.end("done");
  fs::create_symlink(folder / "secret", run.directory() + "/model/secret");
  fs::remove(run.directory() + "/environment.json");
  fs::create_symlink(folder / "secret", run.directory() + "/environment.json");
  index();
  Artifacts artifacts(folder / "artifacts");
  const store::Record record = find_run(store, "job/a");
  EXPECT_EQ(code_of([&] { register_run(store, artifacts, record, root(), {}); }), "RUN_UNREADABLE");
  fs::remove(run.directory() + "/environment.json");
  register_run(store, artifacts, record, root(), {});
  for (const auto& file : store.attachments({Kind::kVersion, "job", 1})) EXPECT_NE(file.path, "model/secret");
}

TEST_F(HostileRuns, OptionsThatMultiplyAreAProblemOfTheirRun) {
  FakeRun run(root(), "job/a", random);
  std::string bomb = "b0: &b0 {k: v}\n";
  for (int i = 1; i <= 15; ++i) {
    bomb += "b" + std::to_string(i) + ": &b" + std::to_string(i) + " {";
    for (int k = 0; k < 10; ++k) bomb += (k == 0 ? "? [x] : *b" : ", ? [x] : *b") + std::to_string(i - 1);
    bomb += "}\n";
  }
  write_file(run.directory() + "/resolved.yaml", bomb);
  fs::remove(run.directory() + "/job.yaml");  // now the run's id is made from its options
  const PassReport report = index();
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("resolved.yaml"), std::string::npos) << report.problems[0];
}

TEST_F(HostileRuns, AFileOfVeryManyValuesIsAProblemOfItsRun) {
  FakeRun run(root(), "job/a", random);
  std::string text = R"({"parts":[)";
  for (int i = 0; i < 200'000; ++i) text += "[],";
  write_file(run.directory() + "/data.json", text + "[]]}");
  const PassReport report = index();
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("data.json: too many values"), std::string::npos) << report.problems[0];
  EXPECT_EQ(find_run(store, "job/a").name, "a");
}

// An experiment of a token would let its owner hide the runs, or give them to whom it likes.
TEST_F(HostileRuns, TheyJoinNoExperimentOfATokenButOfAnAdmin) {
  const auto create = [&](const char* id, const char* name, const char* owner) {
    store::Batch batch{{store::Create{{Kind::kExperiment, id}, "", name}}};
    batch.actor.name = owner;
    ASSERT_TRUE(store.write(batch));
  };
  create("1", "taken", "submitter");
  create("2", "given", "boss");
  create("3", "server", "");
  for (const char* job : {"taken", "given", "server"}) {
    const FakeRun run(root(), std::string(job) + "/a", random);
    write_file(run.directory() + "/resolved.yaml", std::string("name: ") + job + "\n");
  }
  Index(store, {.root = root(), .is_admin = [](const std::string& owner) { return owner == "boss"; }}).pass();
  EXPECT_EQ(find_run(store, "taken/a").parent, "taken");
  EXPECT_TRUE(store.find({Kind::kExperiment, "taken"})->name.starts_with("taken-"));
  EXPECT_EQ(find_run(store, "given/a").parent, "2");
  EXPECT_EQ(find_run(store, "server/a").parent, "3");
  index();
  EXPECT_EQ(store.list({.kind = Kind::kExperiment}).size(), 4U) << "a second pass makes no other experiment";
}

TEST_F(HostileRuns, ARunThatAnAdminDeletedStaysDeletedWhenItsDirectoryComesBack) {
  FakeRun run(root(), "job/a", random);
  index();
  const std::string id = find_run(store, "job/a").subject.id;
  fs::rename(run.directory(), folder / "aside");
  index();
  ASSERT_TRUE(store.find({Kind::kRun, id})->hidden);
  store::Batch batch{{store::Update{{Kind::kRun, id}, {}, {}, true}}};
  batch.actor.name = "admin";
  ASSERT_TRUE(store.write(batch));
  fs::rename(folder / "aside", run.directory());
  index();
  index();
  EXPECT_TRUE(store.find({Kind::kRun, id})->hidden);
}

TEST_F(HostileRuns, TheDirectoryOfTheStoreIsPrivate) {
  const auto mode = [&] {
    struct stat facts {};
    EXPECT_EQ(::stat((root() + "/.sinew").c_str(), &facts), 0);
    return facts.st_mode & 07777;
  };
  make_registry_directory(root());
  EXPECT_EQ(mode(), 0700U);
  ASSERT_EQ(::chmod((root() + "/.sinew").c_str(), 0755), 0);  // as earlier versions made it
  make_registry_directory(root());
  EXPECT_EQ(mode(), 0700U);
  ASSERT_EQ(::chmod((root() + "/.sinew").c_str(), 02770), 0);  // the user shares the directory with a group
  make_registry_directory(root());
  EXPECT_EQ(mode(), 02770U);
  ASSERT_EQ(::chmod((root() + "/.sinew").c_str(), 02777), 0);
  EXPECT_EQ(code_of([&] { make_registry_directory(root()); }), "FILE_UNTRUSTED");
}

}  // namespace
}  // namespace sinew::registry
