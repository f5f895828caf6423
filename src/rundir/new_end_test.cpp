// Tests how a run gets another end.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/expected_error.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

class NewEnd : public testing::Test {
 protected:
  NewEnd() {
    std::filesystem::create_directories(folder_);
    job_.name = "a";
    job_.data.format = "csv";
    job_.data.train.path = "train.csv";
    job_.model.name = "mlp";
    job_.trainer.shards = 8;
    job_.trainer.precision = "fp32";
    write_durably(system_disk(), resolved_, spec::to_yaml(job_, {{"trainer.shards", "batch_size # 32"}}));
    before_ = text(resolved_);
  }
  ~NewEnd() override { std::filesystem::remove_all(folder_); }
  static std::string text(const std::string& path) { return read_text(system_disk(), path); }
  bool wanted(const std::string& key, const std::string& value) const {
    return user_wanted_end(system_disk(), folder_, key, value);
  }

  std::string folder_ = testing::TempDir() + "/new-end", resolved_ = folder_ + "/resolved.yaml", before_;
  spec::Job job_;
};

TEST_F(NewEnd, IsWrittenAndRecorded) {
  EXPECT_FALSE(wanted("trainer.max_duration", "20ep"));
  job_.trainer.max_duration.amount = 20;
  job_.budget.seconds = 60;
  change_end(folder_, job_, system_clock());
  EXPECT_TRUE(wanted("trainer.max_duration", "20ep"));
  EXPECT_FALSE(wanted("trainer.max_duration", "30ep"));
  EXPECT_NE(text(resolved_).find("shards: 8  # batch_size # 32\n"), std::string::npos) << "reasons stay";
  EXPECT_EQ(spec::to_yaml(spec::read_job(text(resolved_), "x").job), spec::to_yaml(job_));
  const std::string records = text(folder_ + "/ends.jsonl");
  EXPECT_EQ(std::count(records.begin(), records.end(), '\n'), 1) << records;
  job_.objective = spec::parse_objective("val/loss <= 0.1");
  ASSERT_TRUE(job_.objective);
  change_end(folder_, job_, system_clock());
  job_.objective.reset();
  change_end(folder_, job_, system_clock());
  EXPECT_TRUE(wanted("objective", "absent"));
  EXPECT_TRUE(wanted("trainer.max_duration", "20ep")) << "earlier ends stay known";
}

TEST_F(NewEnd, OtherOptionsStay) {
  job_.trainer.max_duration.amount = 20;
  job_.optimizer.lr = 0.5;
  EXPECT_ERROR(error_of([&] { change_end(folder_, job_, system_clock()); }), "OPTION_INVALID", "optimizer.lr");
  EXPECT_EQ(text(resolved_), before_);
  EXPECT_FALSE(system_disk().exists(folder_ + "/ends.jsonl"));
}

TEST_F(NewEnd, ARunThatTrainsIsRefused) {
  const auto lock = RunLock::take(folder_);
  ASSERT_TRUE(lock);
  job_.trainer.max_duration.amount = 20;
  EXPECT_ERROR(error_of([&] { change_end(folder_, job_, system_clock()); }), "RUN_IN_USE", "pid");
  EXPECT_EQ(text(resolved_), before_);
}

// What is tried before the change is tried only if the change is allowed, and may prevent it.
TEST_F(NewEnd, IsTriedBeforeItIsWritten) {
  int tried = 0;
  const auto refuse = [&] {
    ++tried;
    EXPECT_FALSE(RunLock::take(folder_)) << "the lock is held";
    throw Error("RUN_CANNOT_GO_ON", "no", "another end");
  };
  job_.trainer.max_duration.amount = 20;
  EXPECT_ERROR(error_of([&] { change_end(folder_, job_, system_clock(), refuse); }), "RUN_CANNOT_GO_ON", "no");
  EXPECT_EQ(text(resolved_), before_);
  EXPECT_FALSE(system_disk().exists(folder_ + "/ends.jsonl"));
  EXPECT_EQ(tried, 1);
  job_.optimizer.lr = 0.5;
  EXPECT_ERROR(error_of([&] { change_end(folder_, job_, system_clock(), refuse); }), "OPTION_INVALID", "optimizer.lr");
  EXPECT_EQ(tried, 1);
}

TEST_F(NewEnd, TheSameEndChangesNothing) {
  change_end(folder_, job_, system_clock());
  EXPECT_EQ(text(resolved_), before_);
  EXPECT_FALSE(system_disk().exists(folder_ + "/ends.jsonl"));
}

}  // namespace
}  // namespace sinew::rundir
