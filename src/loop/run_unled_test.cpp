// Tests what a worker saves when no coordinator leads the run any more, and that a resume continues from it.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "group/group.h"
#include "loop/members_stub.h"
#include "loop/number_trainer.h"
#include "rundir/rundir.h"

namespace sinew::loop {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kAllSteps = 12;

// Time passes only while somebody sleeps.
class SleepClock final : public Clock {
 public:
  double monotonic_seconds() const override { return seconds_; }
  double wall_seconds() const override { return 1e9 + seconds_; }
  void sleep_seconds(double duration) override {
    seconds_ += duration;
    if (on_sleep) on_sleep();
  }
  std::function<void()> on_sleep = nullptr;

 private:
  double seconds_ = 1000;
};

// A member whose coordinator dies: once `lost` is set, the member must not write.
class Unled final : public MembersStub {
 public:
  bool is_leader() const override { return leader; }
  bool may_write() const override { return leader && !lost; }
  std::optional<std::string> unled(const std::string&) const override {
    return lost ? std::optional(behind) : std::nullopt;
  }
  [[noreturn]] void lose() {
    lost = true;
    throw group::Fenced("no coordinator answers");
  }
  bool leader = true, lost = false;
  std::string behind;
};

class RunUnled : public testing::Test {
 protected:
  RunUnled() {
    std::string pattern = (fs::temp_directory_path() / "sinew-unled-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    plan_.job.name = "unled";
    plan_.job.trainer.max_duration = {kAllSteps, spec::Duration::Unit::steps};
    plan_.job.trainer.batch_size = 1;
    plan_.job.trainer.eval_interval = {5, spec::Duration::Unit::steps};
    plan_.job.checkpoint.interval = "4st";
    plan_.job.checkpoint.monitor = "val/loss";
    plan_.job.checkpoint.keep_best = 0;
    plan_.job.logging.tensorboard = false;
    plan_.job.logging.interval = {2, spec::Duration::Unit::steps};
    plan_.resolved_yaml = "name: unled\n";
    plan_.data.train_size = 100;
    plan_.data.val_size = 10;
    plan_.model = "numbers";
    NumberTrainer trainer;
    train("calm", trainer, nullptr);
    calm_ledger_ = text("calm", "ledger.jsonl");
  }
  ~RunUnled() override { fs::remove_all(folder_); }

  std::string in(const std::string& run) const { return folder_ + "/" + run; }
  std::string text(const std::string& run, const std::string& name) const {
    std::ifstream file(in(run) + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  RunResult train(const std::string& run_name, NumberTrainer& trainer, Members* members, bool resume = false) {
    fs::create_directories(in(run_name));
    RunOptions options{.run_directory = in(run_name), .resume = resume, .ledger = true};
    options.screen.output = options.screen.errors = [](std::string_view) {};
    options.in_background = [](const std::function<void()>& work) { work(); };
    options.stop_signals = &stop_signals_;
    WriteFence disk(system_disk(), in(run_name), WriteFence::free_number(system_disk(), in(run_name)));
    return run(plan_, options, trainer, members, disk, clock_);
  }
  // Trains until the coordinator is lost before the step after `step`. Returns what the worker says at its end.
  std::string lose_at(const std::string& run_name, int64_t step, Unled& members) {
    NumberTrainer trainer;
    trainer.before_step = [&](int64_t now) {
      if (now == step) members.lose();
    };
    return end_of(run_name, trainer, members);
  }
  std::string end_of(const std::string& run_name, NumberTrainer& trainer, Unled& members) {
    try {
      train(run_name, trainer, &members);
    } catch (const group::Fenced& out) {
      return out.what();
    }
    return "it ended well";
  }
  std::vector<int64_t> saved(const std::string& run_name) const {
    std::vector<int64_t> steps;
    for (const std::string& directory : checkpoint::list(system_disk(), in(run_name) + "/checkpoints"))
      steps.push_back(checkpoint::verify(system_disk(), directory).value().step.value);
    return steps;
  }
  // Continues the run alone from `step`, to the end of an undisturbed run.
  void expect_to_go_on_from(const std::string& run_name, int64_t step) {
    NumberTrainer trainer;
    std::optional<int64_t> first;
    trainer.before_step = [&](int64_t now) { first = first.value_or(now); };
    EXPECT_EQ(train(run_name, trainer, nullptr, true).exit_code, 0);
    EXPECT_EQ(first, step);
    EXPECT_EQ(text(run_name, "ledger.jsonl"), calm_ledger_);
    EXPECT_EQ(nlohmann::json::parse(text(run_name, "report.json")).at("digest"),
              nlohmann::json::parse(text("calm", "report.json")).at("digest"));
  }

  std::string folder_, calm_ledger_;
  Plan plan_;
  SleepClock clock_;
  std::atomic<int> stop_signals_ = 0;
};

TEST_F(RunUnled, TheLastStepIsSavedAndAResumeContinuesThere) {
  for (const bool leader : {true, false}) {
    const std::string name = leader ? "leader" : "other";
    Unled members;
    members.leader = leader;
    EXPECT_THAT(lose_at(name, 7, members), HasSubstr("step 7 is saved"));
    EXPECT_EQ(saved(name).back(), 7);
    expect_to_go_on_from(name, 7);
  }
}

// The step ends with its evaluation. A state without it would give the step a second digest.
TEST_F(RunUnled, AnEvaluationUnderWayIsMadeAlone) {
  Unled members;
  NumberTrainer trainer;
  trainer.before_evaluation = [&] {
    if (trainer.state().step.value == 5 && trainer.in_group) members.lose();
  };
  EXPECT_THAT(end_of("evaluation", trainer, members), HasSubstr("step 5 is saved"));
  EXPECT_FALSE(trainer.in_group);
  expect_to_go_on_from("evaluation", 5);
}

TEST_F(RunUnled, AComparisonUnderWayIsLeftOut) {
  Unled members;
  NumberTrainer trainer;
  trainer.on_compare = [&](Digest) {
    if (trainer.state().step.value == 8) members.lose();
  };
  EXPECT_THAT(end_of("comparison", trainer, members), HasSubstr("step 8 is saved"));
  expect_to_go_on_from("comparison", 8);
}

TEST_F(RunUnled, AWorkerThatWasLeftBehindSavesNothing) {
  Unled members;
  members.behind = "the run went on without this worker";
  EXPECT_THAT(lose_at("behind", 7, members), HasSubstr("step 7 is not saved: the run went on without this worker"));
  EXPECT_EQ(saved("behind").back(), 4);
  expect_to_go_on_from("behind", 4);
}

TEST_F(RunUnled, WhileAnotherProcessHoldsTheLockNothingIsSaved) {
  fs::create_directories(in("held"));
  std::optional<rundir::RunLock> other = rundir::RunLock::take(in("held")).value();
  Unled members;
  const double before = clock_.monotonic_seconds();
  EXPECT_THAT(lose_at("held", 7, members), HasSubstr("in use by pid"));
  EXPECT_GT(clock_.monotonic_seconds(), before + 100) << "a lock of a dead machine may still be given up";
  EXPECT_EQ(saved("held").back(), 4);
  // A stop signal ends the wait.
  Unled again;
  stop_signals_ = 0;
  clock_.on_sleep = [&] { stop_signals_ = 1; };
  const double since = clock_.monotonic_seconds();
  EXPECT_THAT(lose_at("held", 7, again), HasSubstr("in use by pid"));
  EXPECT_LT(clock_.monotonic_seconds(), since + 10);
  // A coordinator comes back while the worker waits.
  Unled found;
  stop_signals_ = 0;
  clock_.on_sleep = [&] { found.lost = false; };
  EXPECT_THAT(lose_at("held", 7, found), HasSubstr("a coordinator leads the run again"));
  // The lock becomes free while the worker waits.
  stop_signals_ = 0;
  clock_.on_sleep = [&] { other.reset(); };
  Unled last;
  EXPECT_THAT(lose_at("held", 7, last), HasSubstr("step 7 is saved"));
}

TEST_F(RunUnled, TheNewerStateOfAnotherWorkerStays) {
  Unled newer, older;
  EXPECT_THAT(lose_at("two", 7, newer), HasSubstr("step 7 is saved"));
  // The other worker has the state of the step before.
  older.leader = false;
  const std::string ledger = text("two", "ledger.jsonl");
  fs::rename(in("two") + "/checkpoints", in("two") + "/hidden");  // this worker began before there were checkpoints
  NumberTrainer trainer;
  trainer.before_step = [&](int64_t now) {
    if (now != 6) return;
    fs::rename(in("two") + "/hidden", in("two") + "/checkpoints");
    older.lose();
  };
  EXPECT_THAT(end_of("two", trainer, older), HasSubstr("saved"));
  EXPECT_EQ(saved("two").back(), 7);
  EXPECT_EQ(text("two", "ledger.jsonl"), ledger);
  expect_to_go_on_from("two", 7);
}

// Memory of the newer worker's copy changes before the copy is written, so no resume accepts its checkpoint.
TEST_F(RunUnled, ANewerCheckpointThatCannotBeLoadedDoesNotCount) {
  Unled newer, older;
  NumberTrainer spoiled;
  spoiled.spoiled = {7};
  spoiled.before_step = [&](int64_t now) {
    if (now == 7) newer.lose();
  };
  EXPECT_THAT(end_of("spoiled", spoiled, newer), HasSubstr("step 7 is not saved"));
  EXPECT_THAT(lose_at("spoiled", 6, older), HasSubstr("step 6 is saved"));
  expect_to_go_on_from("spoiled", 6);
}

// The leader may write its lines only to step 5. Another member, which has no newer step, saves first; then the leader,
// which the other one has replaced, saves its newer state under a new number.
TEST_F(RunUnled, ALeaderThatAnotherMemberReplacedSavesItsNewerState) {
  Unled leader;
  NumberTrainer trainer;
  trainer.before_step = [&](int64_t step) {
    if (step == 5) leader.lost = true;
    if (step != 7) return;
    Unled other;
    other.leader = false;
    fs::rename(in("both") + "/checkpoints", in("both") + "/hidden");  // the other begins at step 0, as the leader did
    EXPECT_THAT(lose_at("both", 6, other), HasSubstr("step 6 is saved"));
    fs::rename(in("both") + "/hidden/step-00000004", in("both") + "/checkpoints/step-00000004");
    leader.lose();
  };
  EXPECT_THAT(end_of("both", trainer, leader), HasSubstr("step 7 is saved"));
  EXPECT_EQ(saved("both").back(), 7);
  expect_to_go_on_from("both", 7);
}

TEST_F(RunUnled, AWorkerWithoutAStepOfItsOwnSavesNothing) {
  Unled members;
  EXPECT_THAT(lose_at("none", 0, members), HasSubstr("no step"));
  EXPECT_TRUE(saved("none").empty());
}

TEST_F(RunUnled, AFencedWorkerSavesNothing) {
  Unled members;
  NumberTrainer trainer;
  trainer.before_step = [&](int64_t now) {
    if (now == 7) throw group::Fenced("silent for 2 s");
  };
  EXPECT_EQ(end_of("fenced", trainer, members), "silent for 2 s");
  EXPECT_EQ(saved("fenced").back(), 4);
}

}  // namespace
}  // namespace sinew::loop
