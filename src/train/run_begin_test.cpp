// Tests how a run begins or resumes, which report.json a failure leaves, and how a run treats requests of a user, such
// as another batch size.
#include <gtest/gtest.h>

#include "base/expected_error.h"
#include "rundir/rundir.h"
#include "train/resolve.h"
#include "train/small_run.h"

namespace sinew::train {
namespace {

class RunBegin : public SmallRun {
 protected:
  RunBegin() {
    job_.trainer.max_duration = {1, spec::Duration::Unit::epochs};
    ledger_ = true;
  }
};

// A cluster scheduler may start a run with --resume although there is no checkpoint yet. The run then begins at step 0,
// with its warm start.
TEST_F(RunBegin, ResumingWithoutACheckpointBeginsTheRun) {
  run_in("before");
  const std::string cold = lines_of("ledger.jsonl").at(0).at("digest");
  job_.model.init_from.path = folder_ + "/before/model/model.safetensors";
  run_in("plain", false);
  const std::string warm = lines_of("ledger.jsonl").at(0).at("digest");
  run_in("resumed", true);
  EXPECT_EQ(lines_of("ledger.jsonl").at(0).at("digest"), warm);
  EXPECT_NE(warm, cold);
}

TEST_F(RunBegin, AFailureBeforeTheFirstStepIsReported) {
  job_.data.train.path = folder_ + "/missing.csv";
  EXPECT_THROW(run_in("failed"), Error);
  const rundir::Outcome outcome = *rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json"));
  EXPECT_EQ(outcome.status, "failed");
  EXPECT_EQ(outcome.exit_code, kTrainingError);
  EXPECT_NE(outcome.error.find("missing.csv"), std::string::npos) << outcome.error;
}

// `sinew runs` shows the report. The report must not say that the run is done if the last attempt to resume it failed.
TEST_F(RunBegin, AResumeThatFailsBeforeTheFirstStepReplacesTheReport) {
  job_.budget.training = "2st";
  const RunResult first = run_in("run");
  const auto report = [&] { return *rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json")); };
  ASSERT_EQ(report().status, "budget");
  const std::string model = find_trained(run_directory_, system_disk()).weights;
  const std::string there = job_.data.train.path;
  job_.data.train.path = folder_ + "/missing.csv";
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THROW(run_in("run", true), Error);
    EXPECT_EQ(report().status, "failed");
    EXPECT_EQ(report().earlier_status, "budget");
    EXPECT_EQ(report().exit_code, kTrainingError);
    EXPECT_EQ(report().steps, first.step.value);
    EXPECT_NE(report().error.find("missing.csv"), std::string::npos) << report().error;
    EXPECT_EQ(find_trained(run_directory_, system_disk()).weights, model) << "the same model as before";
  }
  job_.data.train.path = there;
  job_.budget.training = "";
  run_in("run", true);
  EXPECT_EQ(report().status, "done");
  EXPECT_EQ(report().earlier_status, "");
}

// When the loop fails, it writes a report that has the number of steps. The report that run() writes for other failures
// must not replace it.
TEST_F(RunBegin, AFailureOfTheLoopKeepsTheReportOfTheLoop) {
  const RunResult first = run_in("run");
  std::ofstream(folder_ + "/table.csv", std::ios::app) << "3,4,1\n";
  EXPECT_THROW(run_in("run", true), Error);
  const rundir::Outcome outcome = *rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json"));
  EXPECT_EQ(outcome.status, "failed");
  EXPECT_EQ(outcome.earlier_status, "");
  EXPECT_NE(outcome.error.find("training data has changed"), std::string::npos) << outcome.error;
  EXPECT_EQ(outcome.steps, first.step.value);
}

TEST(Numerics, DoNotCountCores) {
  const auto numerics = nlohmann::json::parse(numerics_json());
  EXPECT_FALSE(numerics.contains("cores"));
  EXPECT_TRUE(numerics.contains("cpu_capability"));
  EXPECT_NE(environment_json({.cores = 1}), environment_json({.cores = 64}));
}

// This member led the run until it was cut off. The other members have ended the run meanwhile.
TEST_F(RunBegin, AMemberThatLostTheLeadKeepsTheReportOfTheRun) {
  run_in("run");
  const std::string report = read_text(system_disk(), run_directory_ + "/report.json");
  const auto join_with = [&](bool leased) {
    join_ = [leased](const Identity&) {
      return std::make_unique<Alone>(std::vector{ControlEntry{Step(0), ControlEntry::Kind::checkpoint, 0, "a person"}},
                                     leased);
    };
  };
  join_with(false);
  EXPECT_THROW(run_in("run", true), std::runtime_error);
  ASSERT_TRUE(system_disk().exists(run_directory_ + "/report.json"));
  EXPECT_EQ(read_text(system_disk(), run_directory_ + "/report.json"), report);
  std::ofstream(run_directory_ + "/report.json") << "{}";
  join_with(true);
  EXPECT_EQ(run_in("run", true).exit_code, 0);
  EXPECT_TRUE(rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json")));
}

TEST_F(RunBegin, RefusesABatchSizeAboveTheNumberOfSamples) {
  job_.trainer.drop_last = true;
  const RunResult calm = run_in("calm");
  const auto ask = [&](double size) {
    join_ = [size](const Identity&) {
      return std::make_unique<Alone>(
          std::vector{ControlEntry{Step(0), ControlEntry::Kind::batch_size, size, "a person"}});
    };
  };
  ask(65);  // there are only 64 samples
  const RunResult asked = run_in("asked");
  EXPECT_EQ(asked.exit_code, 0);
  EXPECT_EQ(asked.digest, calm.digest);
  int refused = 0;
  for (const auto& line : lines_of("log.jsonl")) refused += line.at("event") == "control_refused" ? 1 : 0;
  EXPECT_EQ(refused, 1);
  ask(8);
  EXPECT_GT(run_in("smaller").step, calm.step);
}

// The validation data has one class only, so val/auc has no value.
TEST_F(RunBegin, AMonitoredMetricWithoutAValueIsNamedOnce) {
  std::ofstream(folder_ + "/one.csv") << "a,b,y\n1,2,1\n3,4,1\n";
  job_.data.val.path = folder_ + "/one.csv";
  job_.early_stopping.monitor = "val/auc";
  job_.trainer.eval_interval = {1, spec::Duration::Unit::steps};
  run_in("run");
  int warnings = 0;
  for (const auto& line : lines_of("log.jsonl")) warnings += line.at("event") == "metric_missing" ? 1 : 0;
  EXPECT_EQ(warnings, 1);
}

TEST_F(RunBegin, AStopWithoutAReasonEndsWithASentenceThatSaysWhoAskedForIt) {
  job_.trainer.max_duration = {1e6, spec::Duration::Unit::epochs};
  join_ = [](const Identity&) {
    return std::make_unique<Alone>(
        std::vector{ControlEntry{Step(0), ControlEntry::Kind::stop, kResumable, "", false, 1}});
  };
  EXPECT_EQ(run_in("run").exit_code, kResumable);
  std::string end;
  for (const auto& line : lines_of("log.jsonl")) {
    if (line.at("event") == "end") end = line.at("text");
  }
  EXPECT_TRUE(end.starts_with("stopped by a user's request; ")) << end;
}

// Someone changed one digit in resolved.yaml between a stop and a resume.
TEST_F(RunBegin, AStateIsNotTrainedOnWithOtherOptions) {
  job_.model.dropout = 0.25;
  run_in("run");
  const spec::Job good = job_;
  const auto text = [&](const std::string& name) { return read_text(system_disk(), run_directory_ + "/" + name); };
  const std::string report = text("report.json"), resolved = text("resolved.yaml");
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[&] { job_.optimizer.lr *= 1.5; }, "optimizer.lr was"},
      {[&] { job_.model.dropout = 0.35; }, "model.dropout was 0.25, is 0.35"},
      {[&] { job_.trainer.shards = 4; }, "trainer.shards was"},
      {[&] { job_.trainer.precision = "bf16"; }, "trainer.precision was fp32, is bf16"},
      {[&] { job_.trainer.max_duration.amount = 2; }, "trainer.max_duration was"},
  };
  for (const auto& [change, says] : cases) {
    job_ = good;
    change();
    const std::string error = error_of([&] { run_in("run", true); });
    EXPECT_ERROR(error, "RUN_JOB_CHANGED", says);
    const auto outcome = rundir::parse_outcome(text("report.json"));
    EXPECT_EQ(outcome->earlier_status, "done");
    EXPECT_EQ(text("resolved.yaml"), resolved) << "nothing of the run was changed";
    // A group does not begin with that state either, although the run was not asked to resume.
    join_ = [](const Identity&) {
      return std::make_unique<Alone>(std::vector{ControlEntry{Step(0), ControlEntry::Kind::checkpoint, 0, "a person"}});
    };
    EXPECT_EQ(code_of([&] { run_in("run", false); }), "RUN_JOB_CHANGED");
    EXPECT_EQ(text("resolved.yaml"), resolved);
    join_ = nullptr;
  }
  job_ = good;
  EXPECT_EQ(run_in("run", true).exit_code, 0);
  EXPECT_EQ(text("resolved.yaml"), resolved) << "it keeps its reasons";
}

// A run that was done goes on to a later end. With a constant learning rate it is the run that had this end at once.
TEST_F(RunBegin, ARunThatIsDoneGoesOnToALaterEnd) {
  job_.trainer.eval_interval = job_.trainer.max_duration;  // an end evaluates, which the state records
  run_in("run");
  job_.trainer.max_duration.amount = 3;
  const std::string resolved = run_directory_ + "/resolved.yaml";
  spec::Job longer = spec::read_job(read_text(system_disk(), resolved), resolved).job;
  longer.trainer.max_duration.amount = 3;
  rundir::change_end(run_directory_, longer, system_clock());
  const RunResult later = run_in("run", true);
  EXPECT_EQ(rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json"))->status, "done");
  int said = 0;
  for (const auto& line : lines_of("log.jsonl")) said += line.at("event") == "new_end" ? 1 : 0;
  EXPECT_EQ(said, 1);
  const auto ledger = lines_of("ledger.jsonl");
  EXPECT_EQ(run_in("run", true).digest, later.digest) << "the end is recorded, so that it is a change no more";
  EXPECT_EQ(run_in("at once").digest, later.digest);
  EXPECT_EQ(lines_of("ledger.jsonl"), ledger) << "every step";
}

// The scheduler follows the later end from the step at which the run goes on. A kill changes nothing of that.
TEST_F(RunBegin, TheScheduleFollowsALaterEnd) {
  job_.scheduler.name = "cosine";
  job_.logging.interval = {1, spec::Duration::Unit::steps};
  const auto rates = [&] {
    std::map<int64_t, double> found;
    for (const auto& line : lines_of("metrics.jsonl")) {
      if (line.contains("train/learning_rate")) found[line.at("step")] = line.at("train/learning_rate");
    }
    return found;
  };
  const int64_t steps = run_in("run").step.value;
  const auto before = rates();
  job_.trainer.max_duration.amount = 2;
  run_in("at once");
  const auto at_once = rates();
  const std::string resolved = folder_ + "/run/resolved.yaml";
  spec::Job longer = spec::read_job(read_text(system_disk(), resolved), resolved).job;
  longer.trainer.max_duration.amount = 2;
  rundir::change_end(folder_ + "/run", longer, system_clock());
  job_.budget.training = std::to_string(steps + 2) + "st";
  EXPECT_EQ(run_in("run", true).exit_code, kBudget);
  job_.budget.training = "";
  EXPECT_EQ(run_in("run", true).step.value, 2 * steps);
  for (const auto& [step, rate] : rates()) {
    EXPECT_EQ(rate, step <= steps ? before.at(step) : at_once.at(step)) << step;
  }
  EXPECT_EQ(rates().size(), at_once.size());
}

TEST_F(RunBegin, AChangeWithoutEffectIsRecorded) {
  const RunResult first = run_in("run");
  job_.checkpoint.keep += 1;
  EXPECT_EQ(run_in("run", true).digest, first.digest);
  int said = 0;
  for (const auto& line : lines_of("log.jsonl")) said += line.at("event") == "options_changed" ? 1 : 0;
  EXPECT_EQ(said, 1);
  EXPECT_NE(read_text(system_disk(), run_directory_ + "/resolved.yaml")
                .find("  keep: " + std::to_string(job_.checkpoint.keep) + "\n"),
            std::string::npos);
}

// The run begins as a member of a population does.
TEST_F(RunBegin, AStateThatWasCarriedOverMayHaveOtherOptions) {
  run_in("first");
  const std::string from = folder_ + "/first/checkpoints", to = folder_ + "/second/checkpoints";
  std::filesystem::create_directories(to);
  const std::string name = std::filesystem::read_symlink(from + "/last").string();
  checkpoint::mirror(system_disk(), from + "/" + name, to);
  job_.optimizer.lr *= 1.5;
  job_.trainer.max_duration.amount = 2;
  EXPECT_EQ(code_of([&] { run_in("second", true); }), "RUN_JOB_CHANGED");
  std::filesystem::remove(folder_ + "/second/report.json");
  std::ofstream(to + "/.carried") << name << "\n";
  EXPECT_EQ(run_in("second", true).exit_code, 0);
  EXPECT_EQ(run_in("second", true).exit_code, 0) << "its own states have its own options";
}

// A worker that the group refuses has changed no file; the error names what differs.
TEST_F(RunBegin, ARefusedWorkerWritesNothing) {
  join_ = [](const Identity&) -> std::unique_ptr<Membership> {
    throw Error("COORDINATOR_IDENTITY_DIFFERS", "another job", "start it with the same job");
  };
  run_directory_ = folder_ + "/run";
  std::filesystem::create_directories(run_directory_);
  EXPECT_EQ(code_of([&] { run_in("run"); }), "COORDINATOR_IDENTITY_DIFFERS");
  EXPECT_TRUE(std::filesystem::is_empty(run_directory_));
  const auto refuse = std::exchange(join_, nullptr);
  run_in("run");
  std::ofstream(run_directory_ + "/environment.json") << "of the leader";
  const std::string resolved = read_text(system_disk(), run_directory_ + "/resolved.yaml");
  join_ = refuse;
  job_.trainer.precision = "bf16";
  EXPECT_ERROR(error_of([&] { run_in("run", true); }), "COORDINATOR_IDENTITY_DIFFERS",
               "trainer.precision was fp32, is bf16");
  EXPECT_EQ(read_text(system_disk(), run_directory_ + "/environment.json"), "of the leader");
  EXPECT_EQ(read_text(system_disk(), run_directory_ + "/resolved.yaml"), resolved);
}

TEST_F(RunBegin, TheLeaderOfAGroupWritesWhatTheGroupComputesWith) {
  join_ = [](const Identity& identity) {
    const auto job = nlohmann::json::parse(identity.job), machine = nlohmann::json::parse(identity.machine);
    EXPECT_EQ(job.at("trainer.precision"), "fp32");
    EXPECT_LE(identity.job.size(), 1024U);  // the most that the coordinator takes
    EXPECT_LE(identity.machine.size(), 1024U);
    return std::make_unique<Alone>(std::vector{ControlEntry{Step(0), ControlEntry::Kind::checkpoint, 0, "a person"}});
  };
  run_in("run");
  EXPECT_TRUE(rundir::is_run(run_directory_));
  EXPECT_TRUE(nlohmann::json::parse(read_text(system_disk(), run_directory_ + "/environment.json")).contains("cpu"));
}

// In the middle of the run, its directory is moved or removed, or another training takes it.
TEST_F(RunBegin, ARunThatLosesItsDirectoryStopsAndWritesNothingMore) {
  namespace fs = std::filesystem;
  const std::string run = folder_ + "/run", moved = folder_ + "/moved";
  const std::function<void()> cases[] = {
      [&] { fs::remove(run + "/.lock"); },
      [&] {  // the run may make a file while its directory is being removed
        for (std::error_code ignored; fs::exists(run);) fs::remove_all(run, ignored);
      },
      [&] { fs::rename(run, moved); },
      [&] {
        fs::rename(run, moved);
        fs::create_directories(run);
        std::ofstream(run + "/.lock") << "pid 1 on elsewhere\n";
      },
  };
  job_.trainer.max_duration = {40, spec::Duration::Unit::epochs};
  job_.checkpoint.interval = "3st";
  slowly_ = true;
  for (const auto& change : cases) {
    fs::remove_all(run);
    fs::remove_all(moved);
    std::thread other([&] {
      for (int i = 0; i < 4000 && !fs::exists(run + "/checkpoints/last"); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      change();
    });
    EXPECT_EQ(code_of([&] { run_in("run"); }), "RUN_DIRECTORY_LOST");
    other.join();
    EXPECT_FALSE(fs::exists(run + "/report.json"));
    EXPECT_FALSE(fs::exists(run + "/model"));
    if (fs::exists(moved) && fs::exists(run)) {
      EXPECT_EQ(std::distance(fs::directory_iterator(run), fs::directory_iterator()), 1) << "only the other's lock";
    }
  }
}

TEST(Numerics, NameTheBuildsOfWhatComputes) {
  const auto numerics = nlohmann::json::parse(numerics_json());
  EXPECT_TRUE(numerics.contains("build_program"));
  for (const char* name : {"build_libc", "build_libm", "build_libtorch_cpu", "build_libpng", "build_libturbojpeg",
                           "build_libwebp", "build_libtiff", "build_libjpeg", "build_libgif", "build_libz"}) {
    ASSERT_TRUE(numerics.contains(name)) << name << " is not in " << numerics;
    EXPECT_EQ(numerics.at(name).get<std::string>().size(), 16U) << name;
  }
  EXPECT_EQ(numerics_json(), numerics_json());
}

}  // namespace
}  // namespace sinew::train
