// Tests what a run saves (one state for each step, the best states, copies in a mirror), and which saved state is used
// later.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "train/small_run.h"

namespace sinew::train {
namespace {

namespace fs = std::filesystem;

class RunSave : public SmallRun {
 protected:
  RunSave() {
    job_.trainer.max_duration = {10, spec::Duration::Unit::epochs};
    job_.data.split_val = 0.25;
    ledger_ = true;
  }
  // Makes the clock request evaluations, at whichever step the run has reached.
  void evaluate_by_the_clock() {
    job_.trainer.eval_interval = {0.4, spec::Duration::Unit::seconds};
    job_.checkpoint.interval = "1st";
    slowly_ = true;
  }
  void make_the_first_evaluation_the_best() {
    job_.early_stopping.monitor = "train/loss";
    job_.early_stopping.mode = "max";
    job_.early_stopping.patience = 1000;
    job_.trainer.eval_interval = {1, spec::Duration::Unit::epochs};
    job_.optimizer.lr = 0.02;
  }
  int count_events(const std::string& event) const {
    int times = 0;
    for (const auto& line : lines_of("log.jsonl")) times += line.at("event") == event ? 1 : 0;
    return times;
  }

  nlohmann::json json_of(const std::string& file) const {
    std::ifstream in(run_directory_ + "/" + file);
    return nlohmann::json::parse(in);
  }
  std::string checkpoints() const { return run_directory_ + "/checkpoints"; }
  std::string best() const { return fs::read_symlink(checkpoints() + "/best").string(); }
  std::vector<Step> saved() const {
    std::vector<Step> steps;
    for (const std::string& path : checkpoint::list(system_disk(), checkpoints()))
      steps.push_back(checkpoint::describe(system_disk(), path)->step);
    return steps;
  }
  static std::string name_of_step(int64_t step) {
    char name[32];
    std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
    return name;
  }
};

TEST_F(RunSave, SavesAStepOnlyInItsFinalState) {
  evaluate_by_the_clock();
  job_.checkpoint.keep = 1000;
  run_in("run");
  const auto ledger = lines_of("ledger.jsonl");
  const std::vector<Step> steps = saved();
  EXPECT_GE(steps.size(), 3U);
  EXPECT_GE(count_events("control"), 2);
  for (const Step step : steps) {
    const auto found = checkpoint::describe(system_disk(), checkpoints() + "/" + name_of_step(step.value));
    ASSERT_TRUE(found);
    EXPECT_EQ(to_hex(found->digest), ledger.at(static_cast<size_t>(step.value) - 1).at("digest")) << step;
  }
}

TEST_F(RunSave, KeepsAndRestoresABestStateOfARequestedEvaluation) {
  evaluate_by_the_clock();
  job_.checkpoint.keep = 1;
  job_.early_stopping.monitor = "train/loss";
  job_.early_stopping.mode = "max";  // the highest value is at the beginning
  job_.early_stopping.patience = 1000;
  job_.optimizer.lr = 0.02;
  const RunResult result = run_in("run");
  const int64_t step = json_of("report.json").at("best").at("step");
  ASSERT_LT(step, result.step.value);
  EXPECT_EQ(best(), name_of_step(step));
  const auto model = checkpoint::read_safetensors(system_disk(), run_directory_ + "/model/model.safetensors");
  const auto kept = checkpoint::load(system_disk(), checkpoints() + "/" + name_of_step(step));
  ASSERT_TRUE(model && kept);
  ASSERT_FALSE(model->tensors.empty());
  for (const auto& [name, array] : model->tensors) {
    const Array& same = kept->parts.at("model").tensors.at(name);
    ASSERT_EQ(array.bytes.size(), same.bytes.size()) << name;
    EXPECT_EQ(std::memcmp(array.bytes.data(), same.bytes.data(), same.bytes.size()), 0) << name;
  }
}

TEST_F(RunSave, WarnsIfTheBestCheckpointIsMissing) {
  make_the_first_evaluation_the_best();
  run_in("run");
  fs::remove_all(checkpoints() + "/" + best());
  EXPECT_EQ(run_in("run", true).exit_code, 0);
  EXPECT_EQ(count_events("best_not_restored"), 1);
}

// A member that may write, or leads, only from some step on.
class LeadsLate final : public Alone {
 public:
  LeadsLate(int64_t leads_from, int64_t writes_from) : leads_from_(leads_from), writes_from_(writes_from) {}

 private:
  bool is_leader() const override { return step_ >= leads_from_; }
  bool may_write() const override { return step_ >= writes_from_; }
  void check_membership() const override {}
  void boundary(const loop::State& state, const std::function<checkpoint::OwnedSnapshot()>&) override {
    step_ = state.step.value;
  }
  const int64_t leads_from_, writes_from_;
  std::atomic<int64_t> step_ = 0;
};

// The first evaluation, after step 3, is the best one. The leader of that time dies before it has saved the state, or
// nobody may write then because the coordinator is away.
TEST_F(RunSave, TheBestStateIsSavedWhoeverLeadsAndWritesThen) {
  make_the_first_evaluation_the_best();
  run_in("calm");
  ASSERT_EQ(best(), name_of_step(3));
  const auto model = read_text(system_disk(), run_directory_ + "/model/model.safetensors");
  struct Case {
    int64_t leads, writes, keep_best;  // without keep_best, the run still needs the best state
  };
  for (const auto& [leads, writes, keep_best] : {Case{9, 9, 1}, Case{0, 17, 1}, Case{0, 0, 0}}) {
    const std::string name = "leads-" + std::to_string(leads) + "-writes-" + std::to_string(writes);
    join_ = [leads = leads, writes = writes](const Identity&) { return std::make_unique<LeadsLate>(leads, writes); };
    job_.checkpoint.keep_best = keep_best;
    run_in(name);
    EXPECT_EQ(best(), name_of_step(3)) << name;
    EXPECT_EQ(count_events("best_not_restored"), 0) << name;
    EXPECT_EQ(read_text(system_disk(), run_directory_ + "/model/model.safetensors"), model) << name;
  }
}

// An evaluation that the clock requested met the objective. A resume must find the state of that step.
TEST_F(RunSave, CanResumeARunThatARequestedEvaluationEnded) {
  evaluate_by_the_clock();
  job_.objective = spec::Objective{"val/loss", false, 1e9};
  const RunResult first = run_in("run");
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_LT(first.step.value, 30);  // the requested evaluation ended the run, not the last one
  fs::remove(run_directory_ + "/report.json");
  const RunResult again = run_in("run", true);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.step, first.step);
  EXPECT_EQ(again.digest, first.digest);
}

TEST_F(RunSave, KeepsAsManyBestStepsAsKeepBestSays) {
  job_.trainer.eval_interval = {1, spec::Duration::Unit::epochs};
  job_.checkpoint.monitor = "train/loss";
  job_.checkpoint.keep = 1;
  job_.checkpoint.keep_best = 3;
  job_.optimizer.lr = 0.002;
  slowly_ = true;
  const auto expect_best = [&] {
    const std::string last = fs::read_symlink(checkpoints() + "/last").string();
    const auto state = json_of("checkpoints/" + last + "/state.json");
    const std::vector<int64_t> list = state.at("evaluation").at("best_steps");
    ASSERT_GE(list.size(), 4U);
    int64_t kept = 0;
    for (const Step step : saved()) {
      const bool was_best = std::find(list.begin(), list.end(), step.value) != list.end();
      EXPECT_TRUE(was_best || step == Step(state.at("step"))) << step;
      kept += was_best ? 1 : 0;
    }
    EXPECT_EQ(kept, 3);
    EXPECT_EQ(best(), name_of_step(list.back()));
  };
  job_.trainer.max_duration = {11, spec::Duration::Unit::epochs};
  job_.budget.training = "10ep";
  run_in("run");
  expect_best();
  job_.budget.training = "";
  run_in("run", true);
  expect_best();
}

TEST_F(RunSave, RunsThatShareAMirrorKeepTheirOwnCopies) {
  job_.name = "shared";
  job_.checkpoint.mirror = folder_ + "/far";
  job_.checkpoint.interval = "4st";
  run_in("one/run");
  const auto places = [&] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ + "/far/shared")) found.insert(entry.path().string());
    return found;
  };
  ASSERT_EQ(places().size(), 1U);
  const std::string first = *places().begin();
  const auto copies = checkpoint::list(system_disk(), first);
  EXPECT_EQ(copies.size(), 2U);
  job_.trainer.seed = 6;
  job_.trainer.max_duration = {20, spec::Duration::Unit::epochs};
  run_in("two/run");
  EXPECT_EQ(checkpoint::list(system_disk(), first), copies);
  for (const std::string& copy : copies) EXPECT_TRUE(checkpoint::verify(system_disk(), copy)) << copy;
  run_in("two/run", true);  // a resumed run keeps its mirror directory
  EXPECT_EQ(places().size(), 2U);
}

TEST_F(RunSave, PrefersANewerCheckpointToAModelOfAnEarlierAttempt) {
  job_.checkpoint.interval = "4st";
  const RunResult result = run_in("run");
  EXPECT_FALSE(find_trained(run_directory_, system_disk()).checkpoint);
  const std::string report = run_directory_ + "/report.json";
  std::string text = json_of("report.json").dump();
  fs::remove(report);  // a run that was resumed and then killed has no report
  const Trained killed = find_trained(run_directory_, system_disk());
  EXPECT_TRUE(killed.checkpoint);
  EXPECT_EQ(killed.weights, checkpoints() + "/" + name_of_step(result.step.value));
  auto failed = nlohmann::json::parse(text);
  failed["status"] = "failed";
  std::ofstream(report) << failed.dump();
  EXPECT_TRUE(find_trained(run_directory_, system_disk()).checkpoint);
  fs::remove_all(checkpoints());
  // Without a checkpoint, the older model is used.
  EXPECT_FALSE(find_trained(run_directory_, system_disk()).checkpoint);
}

}  // namespace
}  // namespace sinew::train
