// Tests what `sinew join URL` does with its directory before its worker starts.
#include "supervise/outside_worker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/expected_error.h"
#include "base/write_fence.h"
#include "cluster/cluster.h"

namespace sinew::supervise {
namespace {

namespace fs = std::filesystem;

class ByUrl : public ::testing::Test {
 protected:
  ByUrl() {
    std::string pattern = (fs::temp_directory_path() / "sinew-outside-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "own" / WriteFence::kDirectory / "3");
    worker_.where = "https://192.0.2.7:4711";
    worker_.secret_file = (folder_ / "secret").string();
    worker_.more = {"job.yaml", (folder_ / "own").string(), "seed=3"};
  }
  ~ByUrl() override { fs::remove_all(folder_); }

  bool has_writers() const { return fs::exists(folder_ / "own" / WriteFence::kDirectory / "3"); }
  bool has_coordinator() const { return fs::exists(folder_ / "own/coordinator.json"); }

  fs::path folder_;
  OutsideWorker worker_;
};

TEST_F(ByUrl, AWorkerWithoutASecretChangesNothing) {
  EXPECT_EQ(code_of([&] { launch_of(worker_); }), "DISK_NO_FILE");
  std::ofstream(folder_ / "secret") << " \r\n";
  EXPECT_EQ(code_of([&] { launch_of(worker_); }), "SECRET_EMPTY");
  EXPECT_TRUE(has_writers());
  EXPECT_FALSE(has_coordinator());
}

TEST_F(ByUrl, TheWritersOfAnotherCoordinatorGo) {
  std::ofstream(folder_ / "secret") << "sesame\n";
  const WorkerLaunch launch = launch_of(worker_);
  EXPECT_EQ(launch.overrides, std::vector<std::string>{"seed=3"});
  EXPECT_FALSE(has_writers());
  const auto info = cluster::read_coordinator_info(launch.run_directory);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->url, worker_.where);
  EXPECT_EQ(info->secret, "sesame");
}

TEST(TheDecisionsOfARun, AreInTheFactsOfItsLeader) {
  using Overrides = std::vector<std::string>;
  spec::Job job;
  job.trainer.precision = "fastest";
  const std::string facts = R"({"step":3,"precision":"bf16","memory_format":"channels_last"})";
  EXPECT_EQ(decisions_in(facts, job), Overrides{"trainer.precision=bf16"});
  job.trainer.memory_format = "fastest";
  EXPECT_EQ(decisions_in(facts, job), (Overrides{"trainer.precision=bf16", "trainer.memory_format=channels_last"}));
  for (const char* none : {"", "{}", "[]", R"({"precision":"bf16"})", R"({"precision":1,"memory_format":2})"})
    EXPECT_TRUE(decisions_in(none, job).empty()) << none;
}

}  // namespace
}  // namespace sinew::supervise
