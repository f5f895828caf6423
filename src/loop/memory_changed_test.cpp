// Tests what a run does when the memory of its state changes, and when its members' states differ.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/hand_clock.h"
#include "group/group.h"
#include "loop/members_stub.h"
#include "loop/number_trainer.h"

namespace sinew::loop {
namespace {

constexpr int64_t kSteps = 12;

class MemoryChange : public testing::Test {
 protected:
  MemoryChange() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-memory-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    plan_.job.name = "memory";
    plan_.job.trainer.max_duration = {kSteps, spec::Duration::Unit::steps};
    plan_.job.trainer.batch_size = 1;
    plan_.job.trainer.eval_interval = {1e6, spec::Duration::Unit::steps};
    plan_.job.checkpoint.interval = "4st";
    plan_.job.checkpoint.keep = 10;
    plan_.job.logging.tensorboard = false;
    plan_.job.logging.interval = {1, spec::Duration::Unit::steps};
    plan_.resolved_yaml = "name: memory\n";
    plan_.data.train_size = 100;
    plan_.model = "numbers";
  }
  ~MemoryChange() override { std::filesystem::remove_all(folder_); }

  // Runs in the directory `name`.
  RunResult run_in(const std::string& name, NumberTrainer& trainer, Members* members = nullptr, bool resume = false) {
    directory_ = folder_ + "/" + name;
    std::filesystem::create_directories(directory_);
    RunOptions options{.run_directory = directory_, .resume = resume, .ledger = true};
    options.screen.output = options.screen.errors = [](std::string_view) {};
    options.in_background = [](const std::function<void()>& work) { work(); };
    code_.clear();
    WriteFence disk(system_disk(), directory_, WriteFence::free_number(system_disk(), directory_));
    try {
      return run(plan_, options, trainer, members, disk, clock_);
    } catch (const Error& error) {
      code_ = error.code.text();
      throw;
    }
  }
  RunResult resume_in(const std::string& name, NumberTrainer& trainer) { return run_in(name, trainer, nullptr, true); }
  std::string file(const std::string& name) const {
    std::ifstream in(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<nlohmann::json> lines_of(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    std::ifstream in(directory_ + "/" + name);
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  // Whether a line of the log has this event, and this part in its text.
  bool said(const std::string& event, const std::string& part = "") const {
    return std::ranges::any_of(lines_of("log.jsonl"), [&](const auto& line) {
      return line.at("event") == event && line.at("text").template get<std::string>().find(part) != std::string::npos;
    });
  }
  std::string calm_ledger() {
    NumberTrainer trainer;
    run_in("calm", trainer);
    return file("ledger.jsonl");
  }

  std::string folder_, directory_;
  std::string code_;  // the code of the error with which the last run ended
  Plan plan_;
  HandClock clock_;
};

TEST_F(MemoryChange, AWorkerAloneGoesBackToTheNewestCheckpoint) {
  const std::string calm = calm_ledger();
  NumberTrainer trainer;
  int changes = 0;
  trainer.before_step = [&](int64_t step) {
    if (step == 7 && ++changes == 1) {
      trainer.number ^= 1;
      throw MemoryChanged("a bit changed");
    }
  };
  EXPECT_EQ(run_in("changed", trainer).exit_code, 0);
  EXPECT_EQ(changes, 2);  // step 7 was computed again
  EXPECT_EQ(file("ledger.jsonl"), calm);
  EXPECT_TRUE(said("memory_changed"));
  int64_t before = 0;
  for (const auto& line : lines_of("metrics.jsonl")) {
    const int64_t step = line.at("step");
    EXPECT_GT(step, std::exchange(before, step));
  }
}

TEST_F(MemoryChange, AChangedStateIsNotSaved) {
  const std::string calm = calm_ledger();
  NumberTrainer trainer;
  int checks = 0;
  trainer.on_check = [&] {
    if (++checks == 2) throw MemoryChanged("a frozen parameter changed");  // before the checkpoint of step 8
  };
  EXPECT_EQ(run_in("changed", trainer).exit_code, 0);
  EXPECT_EQ(file("ledger.jsonl"), calm);
  EXPECT_GT(checks, 3);
}

// The checkpoint was compared with its digest when it was read, so it is not at fault.
TEST_F(MemoryChange, WhileAStateIsRestoredIsAFaultOfThisMachine) {
  NumberTrainer first, second;
  EXPECT_EQ(run_in("restored", first).exit_code, 0);
  second.restores_wrong = true;
  try {
    resume_in("restored", second);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("TRAIN_STATE_CORRUPT"));
    EXPECT_TRUE(error.hint.starts_with("test the memory of this machine")) << error.hint;
  }
}

// Only a reader that uses an older checkpoint instead says so.
TEST_F(MemoryChange, ADamagedCheckpointIsNamedBeforeAnOlderOneIsUsed) {
  NumberTrainer first, second;
  first.spoiled = {8};
  first.before_step = [](int64_t step) {
    if (step == 10) throw Diverged("TRAIN_DIVERGED", "training diverged at step 10", "");
  };
  EXPECT_THROW(run_in("damaged", first), Diverged);
  EXPECT_EQ(resume_in("damaged", second).exit_code, 0);
  EXPECT_TRUE(said("damaged_checkpoint", "step-00000008 is damaged"));
  EXPECT_TRUE(said("damaged_checkpoint", "; an older one is used"));
}

TEST_F(MemoryChange, WithoutACheckpointTheRunEnds) {
  NumberTrainer trainer;
  trainer.before_step = [&](int64_t step) {
    if (step == 2) throw MemoryChanged("a bit changed");
  };
  try {
    run_in("changed", trainer);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("TRAIN_MEMORY_CHANGED"));
  }
  EXPECT_EQ(nlohmann::json::parse(file("report.json")).at("status"), "failed");
}

TEST_F(MemoryChange, ARunThatGoesBackInVainEnds) {
  NumberTrainer trainer;
  int times = 0;
  trainer.before_step = [&](int64_t step) {
    if (step == 6 && ++times > 0) throw MemoryChanged("a bit changed");
  };
  EXPECT_THROW(run_in("changed", trainer), Error);
  EXPECT_EQ(times, 4);
  EXPECT_EQ(code_, "TRAIN_WENT_BACK_TOO_OFTEN");
}

TEST_F(MemoryChange, ANewerCheckpointBeginsTheCountOfGoingBackAnew) {
  const std::string calm = calm_ledger();
  NumberTrainer trainer;
  std::map<int64_t, int> times;
  // memory changes twice between the checkpoints of steps 4 and 8, and twice after that of step 8
  trainer.before_step = [&](int64_t step) {
    if ((step == 6 || step == 10) && ++times[step] <= 2) throw MemoryChanged("a bit changed");
  };
  EXPECT_EQ(run_in("changed", trainer).exit_code, 0);
  EXPECT_EQ(file("ledger.jsonl"), calm);
  EXPECT_EQ(times[10], 3);
}

// The leader of a group with others.
class Leader final : public MembersStub {
 public:
  bool is_leader() const override { return true; }
  bool may_write() const override { return true; }
  [[noreturn]] void dissolve(const std::string& why) override {
    dissolved = why;
    throw group::Fenced(why);
  }
  GoingBack going_back() const override { return back; }
  void finished(int code) override { exit_code = code; }
  std::string dissolved;
  int exit_code = -1;
  GoingBack back;
};

// A job in which the steps 4 and 8 were the best when they were reached, and the last one is not.
class BestCheckpoint : public MemoryChange {
 protected:
  BestCheckpoint() {
    plan_.data.val_size = 1;
    plan_.job.trainer.eval_interval = {4, spec::Duration::Unit::steps};
    plan_.job.checkpoint.monitor = plan_.job.early_stopping.monitor = "val/loss";
    plan_.job.checkpoint.keep_best = 10;
    plan_.job.early_stopping.patience = 100;
    plan_.job.early_stopping.restore_best = true;
  }
  RunResult train(const std::string& name, const std::set<int64_t>& spoiled, Members* members = nullptr) {
    NumberTrainer trainer;
    trainer.spoiled = spoiled;
    trainer.loss_at = [](int64_t step) { return step == 12 ? 2.0 : 1.0 / static_cast<double>(step); };
    const RunResult result = run_in(name, trainer, members);
    model_of_ = trainer.state().step.value;
    return result;
  }
  int64_t model_of_ = -1;  // the step from whose state the last run made the model
};

TEST_F(BestCheckpoint, IsTheModelIfItsTensorsHaveTheDigestOfTheState) {
  EXPECT_EQ(train("best", {}).exit_code, 0);
  EXPECT_EQ(model_of_, 8);
  EXPECT_TRUE(said("best_restored"));
}

TEST_F(BestCheckpoint, WithTensorsOfAnotherStateTheBestBeforeItIsUsed) {
  for (const bool group : {false, true}) {
    Leader leader;
    EXPECT_EQ(train(group ? "group" : "alone", {8}, group ? &leader : nullptr).exit_code, 0);
    EXPECT_EQ(model_of_, 4);
    EXPECT_TRUE(said("damaged_checkpoint"));
    EXPECT_TRUE(said("best_not_restored"));
    EXPECT_EQ(leader.dissolved, "");
  }
}

TEST_F(BestCheckpoint, WithoutAnyIntactOneTheRunEndsAndDoesNotGoBack) {
  for (const bool group : {false, true}) {
    Leader leader;
    EXPECT_THROW(train(group ? "group" : "alone", {4, 8}, group ? &leader : nullptr), Error);
    EXPECT_EQ(code_, "CHECKPOINT_DAMAGED");
    EXPECT_TRUE(said("damaged_checkpoint", "step-00000004 is damaged"));
    EXPECT_FALSE(said("damaged_checkpoint", "older one is used"));
    EXPECT_EQ(nlohmann::json::parse(file("report.json")).at("status"), "failed");
    EXPECT_EQ(leader.dissolved, "");
  }
}

// Each group begins with the count of going back. If it is too high, the leader writes why the run ends, and the other
// members wait for the leader.
TEST_F(MemoryChange, AGroupThatGoesBackInVainEnds) {
  NumberTrainer calm, trainer, of_other;
  Leader leader;
  for (int64_t times = 1; times <= kMostGoingBack; ++times)
    leader.back = leader.back.once_more(4, "member 2 has another state");
  EXPECT_EQ(run_in("leader", calm, &leader).exit_code, 0);
  leader.back = leader.back.once_more(4, "member 2 has another state");
  leader.exit_code = -1;
  EXPECT_THROW(run_in("leader again", trainer, &leader), Error);
  EXPECT_EQ(code_, "TRAIN_WENT_BACK_TOO_OFTEN");
  EXPECT_EQ(leader.exit_code, kTrainingError);
  const auto report = nlohmann::json::parse(file("report.json"));
  EXPECT_EQ(report.at("status"), "failed");
  EXPECT_NE(report.dump().find("member 2 has another state"), std::string::npos) << report;

  struct Other final : MembersStub {
    GoingBack going_back() const override { return {kMostGoingBack + 1, 4, "member 2 has another state"}; }
    std::optional<int> wait_for_end() override { return kTrainingError; }
  } other;
  EXPECT_EQ(run_in("other", of_other, &other).exit_code, kTrainingError);
}

TEST_F(MemoryChange, EveryCheckpointWasComparedFirst) {
  NumberTrainer trainer;
  Leader leader;
  std::vector<int64_t> compared;
  trainer.on_compare = [&](Digest own) {
    EXPECT_EQ(own, trainer.digest());
    const int64_t step = trainer.state().step.value;
    // There is one checkpoint for each earlier comparison, and none of this step yet.
    EXPECT_EQ(checkpoint::list(system_disk(), directory_ + "/checkpoints").size(), compared.size());
    compared.push_back(step);
  };
  EXPECT_EQ(run_in("compared", trainer, &leader).exit_code, 0);
  EXPECT_EQ(compared, (std::vector<int64_t>{4, 8, 12, 12}));  // and once more at the end
}

TEST_F(MemoryChange, ALeaderWithoutTheGroupsStateDoesNotSave) {
  NumberTrainer trainer;
  Leader leader;
  trainer.on_compare = [&](Digest) {
    if (trainer.state().step.value == 8) trainer.number ^= 1;  // after the comparison, before the copy
  };
  EXPECT_THROW(run_in("changed", trainer, &leader), group::Fenced);
  EXPECT_NE(leader.dissolved, "");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/checkpoints/step-00000008"));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/checkpoints/step-00000004"));
}

TEST_F(MemoryChange, OutvotedMembersEndTheGroupAndNoMajorityEndsTheRun) {
  for (const bool majority : {true, false}) {
    NumberTrainer trainer;
    Leader leader;
    trainer.before_step = [&](int64_t step) {
      const std::vector<MemberId> outvoted = majority ? std::vector{MemberId(2)} : std::vector<MemberId>();
      if (step == 5) throw group::MembersDiffer("member 2 has another state", outvoted);
    };
    if (majority) {
      EXPECT_THROW(run_in("outvoted", trainer, &leader), group::Fenced);
      EXPECT_EQ(leader.dissolved, "member 2 has another state");
    } else {
      EXPECT_THROW(run_in("split", trainer, &leader), group::MembersDiffer);
      EXPECT_EQ(leader.exit_code, kTrainingError);
      EXPECT_EQ(nlohmann::json::parse(file("report.json")).at("status"), "failed");
    }
    EXPECT_TRUE(said("members_differ"));
  }
}

// The leader writes the log, and cannot write it any more after another member has ended the group.
TEST_F(MemoryChange, OtherMembersLetTheLeaderEndTheGroup) {
  struct Other final : MembersStub {
    Other(HandClock& clock_given, int fenced_at) : clock(clock_given), fenced_after(fenced_at) {}
    void check_membership() const override {
      clock.seconds = clock.seconds + 1;
      if (differing && checks++ == fenced_after) throw group::Fenced("the leader ended the group");
    }
    [[noreturn]] void dissolve(const std::string& why) override {
      dissolved = why;
      throw group::Fenced(why);
    }
    HandClock& clock;
    const int fenced_after;
    bool differing = false;
    mutable int checks = 0;
    std::string dissolved;
  };
  for (const bool leader_lives : {true, false}) {
    NumberTrainer trainer;
    Other other(clock_, leader_lives ? 3 : -1);
    trainer.before_step = [&](int64_t step) {
      if (step != 5) return;
      other.differing = true;
      throw group::MembersDiffer("member 2 has another state", {MemberId(2)});
    };
    EXPECT_THROW(run_in(leader_lives ? "with" : "without", trainer, &other), group::Fenced);
    EXPECT_EQ(other.dissolved, leader_lives ? "" : "member 2 has another state");
    EXPECT_GT(other.checks, 3);
  }
}

// The members noticed it before the step was committed, so the run goes on.
TEST_F(MemoryChange, AWrongResultThatNobodyUsedIsLogged) {
  const std::string calm = calm_ledger();
  NumberTrainer trainer;
  trainer.wrong_step = 6;
  Leader leader;
  EXPECT_EQ(run_in("wrong", trainer, &leader).exit_code, 0);
  EXPECT_EQ(file("ledger.jsonl"), calm);
  std::vector<std::string> said;
  for (const auto& line : lines_of("log.jsonl")) {
    if (line.at("event") == "audit_failed") said.push_back(line.at("text"));
  }
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].starts_with("member 2 computed a wrong result; the worker is fenced")) << said[0];
}

// A loss that is not finite may be the work of a member whose memory changed.
TEST_F(MemoryChange, ADivergedStepIsComparedFirst) {
  NumberTrainer trainer;
  Leader leader;
  trainer.before_step = [](int64_t step) {
    if (step == 5) throw Diverged("TRAIN_DIVERGED", "the loss is not finite", "");
  };
  trainer.on_compare = [&](Digest) {
    if (trainer.state().step.value == 5) throw group::MembersDiffer("member 2 has another state", {MemberId(2)});
  };
  EXPECT_THROW(run_in("diverged", trainer, &leader), group::Fenced);
  EXPECT_EQ(leader.dissolved, "member 2 has another state");
  EXPECT_EQ(trainer.audited, std::vector<int64_t>());
}

// A wrong gradient of one shard may be infinite. The step is right if it is computed again.
TEST_F(MemoryChange, AStepThatDivergesOnceIsComputedAgain) {
  const std::string calm = calm_ledger();
  NumberTrainer trainer;
  Leader leader;
  int64_t failures = 1;
  trainer.before_step = [&](int64_t step) {
    if (step == 5 && failures-- > 0) throw Diverged("TRAIN_DIVERGED", "training diverged at step 5", "");
  };
  EXPECT_EQ(run_in("once", trainer, &leader).exit_code, 0);
  EXPECT_EQ(trainer.audited, std::vector<int64_t>{5});
  EXPECT_EQ(file("ledger.jsonl"), calm);
  std::vector<std::string> said;
  for (const auto& line : lines_of("log.jsonl"))
    if (line.at("event") == "step_repeated") said.push_back(line.at("text"));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].starts_with("training diverged at step 5; the step was computed again")) << said[0];
}

TEST_F(MemoryChange, AStepThatDivergesTwiceIsAFaultOfTheJob) {
  NumberTrainer trainer;
  Leader leader;
  trainer.before_step = [](int64_t step) {
    if (step == 5) throw Diverged("TRAIN_DIVERGED", "training diverged at step 5", "");
  };
  EXPECT_THROW(run_in("twice", trainer, &leader), Diverged);
  EXPECT_EQ(trainer.audited, std::vector<int64_t>{5});
}

}  // namespace
}  // namespace sinew::loop
