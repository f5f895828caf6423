// Tests that a run ends, and changes no file any more, once another process has taken over its directory.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/faulty_disk.h"
#include "base/hand_clock.h"
#include "group/group.h"
#include "loop/members_stub.h"
#include "loop/number_trainer.h"

namespace sinew::loop {
namespace {

const std::string kDirectory = "runs/replaced";

class LeaderOfAll final : public MembersStub {
 public:
  bool is_leader() const override { return true; }
  bool may_write() const override { return true; }
};

class Replaced : public testing::Test {
 protected:
  Replaced() {
    plan_.job.name = "replaced";
    plan_.job.trainer.max_duration = {12, spec::Duration::Unit::steps};
    plan_.job.trainer.batch_size = 1;
    plan_.job.trainer.eval_interval = {5, spec::Duration::Unit::steps};
    plan_.job.checkpoint.interval = "4st";
    plan_.job.checkpoint.monitor = "val/loss";
    plan_.job.logging.interval = {2, spec::Duration::Unit::steps};
    plan_.resolved_yaml = "name: replaced\n";
    plan_.data.train_size = 100;
    plan_.data.val_size = 10;
    plan_.model = "numbers";
  }

  std::map<std::string, std::string> files(const std::string& directory = kDirectory) {
    std::map<std::string, std::string> all;
    for (const Disk::Entry& entry : disk_->list(directory)) {
      const std::string path = directory + "/" + entry.name;
      if (entry.name == WriteFence::kDirectory) continue;
      if (entry.directory) {
        all.merge(files(path));
      } else {
        all[path] = read_text(*disk_, path);
      }
    }
    return all;
  }
  // Another process takes over the run, as a resume does.
  void take_over() {
    WriteFence other(*disk_, kDirectory, WriteFence::free_number(*disk_, kDirectory));
    other.take_over();
    for (const auto& [path, text] : files()) {
      if (path.ends_with(".jsonl") || path.find("tfevents") != std::string::npos) other.append(path);
    }
    then_ = files();
  }
  // Trains in a new directory. Another process takes over before call `k` of the disk. Returns the number of calls.
  int64_t train(Members* members, int64_t k) {
    disk_.emplace();
    disk_->make_directories(kDirectory);
    then_.clear();
    int64_t call = 0;
    disk_->before_call = [&] {
      if (++call == k) take_over();
    };
    WriteFence fence(*disk_, kDirectory, 1);
    RunOptions options{.run_directory = kDirectory, .ledger = true};
    options.screen.output = options.screen.errors = [](std::string_view) {};
    options.in_background = [](const std::function<void()>& work) { work(); };
    NumberTrainer trainer;
    trainer.before_step = [&](int64_t) { clock_.seconds = clock_.seconds + 0.4; };
    said_.clear();
    try {
      run(plan_, options, trainer, members, fence, clock_);
    } catch (const group::Fenced& out) {
      EXPECT_NE(members, nullptr);
      said_ = out.what();
    } catch (const WriterReplaced& replaced) {
      EXPECT_EQ(members, nullptr);
      EXPECT_EQ(replaced.code, ErrorCode("CHECKPOINT_MAY_NOT_WRITE"));
      said_ = replaced.what();
    }
    disk_->before_call = nullptr;
    return call;
  }

  std::optional<FaultyDisk> disk_;
  std::map<std::string, std::string> then_;  // the files when the other process took over
  std::string said_;                         // the error with which the run ended
  Plan plan_;
  HandClock clock_;
};

TEST_F(Replaced, BeforeWhicheverCallOfTheDiskItHappensTheRunWritesNothingMore) {
  for (const bool group : {false, true}) {
    LeaderOfAll leader;
    Members* const members = group ? &leader : nullptr;
    const int64_t calls = train(members, -1);
    ASSERT_EQ(said_, "");
    ASSERT_GT(calls, 200);
    for (int64_t k = 1; k <= calls; k += 5) {
      SCOPED_TRACE(testing::Message() << (group ? "leader" : "alone") << ", call " << k);
      ASSERT_GE(train(members, k), k);
      EXPECT_EQ(files(), then_);
      if (then_.contains(kDirectory + "/report.json")) continue;  // the run may have ended just before
      EXPECT_NE(said_.find("another process has taken over"), std::string::npos) << said_;
    }
  }
}

// A member is suspended while it reads the checkpoints. The others save another one and delete the one that it reads.
TEST_F(Replaced, ACheckpointThatIsDeletedWhileItIsReadIsNotDamaged) {
  const std::string root = kDirectory + "/checkpoints", hidden = kDirectory + "/hidden";
  plan_.job.checkpoint.keep = 10;
  bool reached = true;
  for (int64_t k = 1; reached; ++k) {
    SCOPED_TRACE(k);
    train(nullptr, -1);
    disk_->make_directories(hidden);
    for (const std::string& directory : checkpoint::list(*disk_, root)) {
      if (!directory.ends_with("08")) disk_->rename(directory, hidden + directory.substr(root.size()));
    }
    ASSERT_EQ(checkpoint::list(*disk_, root).size(), 1U);
    int64_t call = 0, read = 0;
    disk_->before_call = [&] {
      if (++call != k) return;
      disk_->rename(hidden + "/step-00000012", root + "/step-00000012");
      disk_->remove_all(root + "/step-00000008");
    };
    MembersStub other;
    WriteFence fence(*disk_, kDirectory, 7);
    RunOptions options{.run_directory = kDirectory};
    options.screen.output = options.screen.errors = [](std::string_view) {};
    NumberTrainer trainer;
    trainer.before_step = [&](int64_t step) { read = read == 0 ? step : read; };
    EXPECT_EQ(run(plan_, options, trainer, &other, fence, clock_).exit_code, 0);
    EXPECT_TRUE(read == 8 || read == 0) << read << ": it began at step 8 or 12";
    reached = call >= k;
    disk_->before_call = nullptr;
  }
}

}  // namespace
}  // namespace sinew::loop
