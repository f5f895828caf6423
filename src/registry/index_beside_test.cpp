// The index beside others: those who write to its store as well, and disks that do not let it read.
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
  // As another process does, which remembers nothing.
  PassReport pass_anew() {
    index.reset();
    return pass();
  }
  FakeRun& run(const std::string& path) {
    auto& made = *runs.emplace_back(std::make_unique<FakeRun>(root(), path, random));
    made.grow(2);
    return made;
  }
  // Also of a hidden one.
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

TEST_F(Beside, AJobThatCanNotBeReadIsSaid) {
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
  EXPECT_EQ(report.gone, 0);
  EXPECT_FALSE(record("a/one").hidden);
}

// So few descriptors that a folder can be listed, and none within it.
class OneDescriptor {
 public:
  OneDescriptor() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    while (const int free = ::dup(STDIN_FILENO)) {  // all below the highest that is open
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

TEST_F(Beside, RunsInAFolderThatCanNotBeListedAreNotGone) {
  FakeRun &one = run("a/one"), &gone = run("gone");
  EXPECT_EQ(pass().fresh, 2);
  gone.remove();
  PassReport report;
  {
    const OneDescriptor few;
    report = pass();
  }
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].find("a: "), std::string::npos) << report.problems[0];
  EXPECT_EQ(report.gone, 1);
  EXPECT_FALSE(record("a/one").hidden);
  EXPECT_TRUE(record("gone").hidden);
  one.remove();
  EXPECT_EQ(pass().gone, 1);
}

}  // namespace
}  // namespace sinew::registry
