#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/random.h"
#include "report/report.h"
#include "report/testing.h"
#include "report/text_format.h"
#include "rundir/rundir.h"

namespace sinew::report {
namespace {

using namespace testing;

void make_run(const std::string& directory, const std::string& options = "name: mnist\noptimizer:\n  lr: 0.1\n") {
  write_file(directory + "/resolved.yaml", options);
  write_file(directory + "/metrics.jsonl",
             "{\"step\":1,\"samples\":64,\"time\":1763697610,\"train/loss\":2.5,\"val/accuracy\":0.5}\n"
             "{\"step\":2,\"samples\":128,\"time\":1763697620,\"train/loss\":\"NaN\",\"val/accuracy\":0.8}\n"
             "{\"step\":3,\"samples\":192,\"time\":1763697630,\"train/loss\":0.5,\"val/accuracy\":0.7}\n");
}

rundir::Outcome example() {
  rundir::Outcome outcome;
  outcome.status = "budget";
  outcome.exit_code = 3;
  outcome.job = "mnist";
  outcome.started_wall_seconds = 1763697600.25;
  outcome.seconds = 42.5;
  outcome.steps = 3;
  outcome.samples = 192;
  outcome.epochs = 0.5;
  outcome.digest = "0123";
  outcome.best = rundir::BestMetric{"val/accuracy", 0.8, 2};
  outcome.objective = rundir::ObjectiveResult{"val/accuracy >= 0.9", false, NAN};
  outcome.last = {{"train/loss", HUGE_VAL}, {"val/accuracy", 0.7}};
  outcome.error = "bad \"thing\"";
  outcome.hint = "try";
  return outcome;
}

TEST(Direction, depends_on_the_words_of_the_name) {
  for (const char* name :
       {"loss", "train/loss", "val/cross_entropy", "val/RMSE", "mae", "val/error_rate", "perplexity", "logloss",
        "val/top1-error", "time/step_ms", "seconds_per_step", "val/mean_squared_error", "wer"}) {
    EXPECT_TRUE(lower_is_better(name)) << name;
  }
  for (const char* name : {"accuracy", "val/accuracy", "val/f1", "r2", "auc", "throughput/samples_per_sec",
                           "samples_per_ms", "terrors2", "", "a//b", "lossless_ratio", "precision"}) {
    EXPECT_FALSE(lower_is_better(name)) << name;
  }
}

TEST(Runs, reads_a_run_without_report) {
  const TemporaryDirectory root;
  make_run(root / "mnist/20251121T040000Z-ab12");
  const auto runs = find_runs(root.path);
  ASSERT_EQ(runs.size(), 1U);
  const RunSummary& run = runs[0];
  EXPECT_EQ(run.status, "interrupted");
  EXPECT_EQ(run.job, "mnist");
  EXPECT_EQ(run.id, "20251121T040000Z-ab12");
  EXPECT_EQ(run.started_wall_seconds, 1763697600);
  EXPECT_EQ(run.seconds, 30);
  EXPECT_EQ(run.steps, 3);
  EXPECT_EQ(run.samples, 192);
  EXPECT_EQ(run.last.at("train/loss"), 0.5);
  EXPECT_EQ(run.best.at("train/loss"), 0.5);
  EXPECT_EQ(run.best.at("val/accuracy"), 0.8);
  EXPECT_EQ(run.best_step.at("val/accuracy"), 2);
  EXPECT_EQ(run.options.at("optimizer.lr"), "0.1");
  EXPECT_TRUE(run.problems.empty());
}

TEST(Runs, a_run_whose_lock_is_held_is_running) {
  const TemporaryDirectory root;
  const std::string directory = root / "mnist/20251121T040000Z-ab12";
  make_run(directory);
  write_file(directory + "/report.json", rundir::outcome_json(example()));  // written by an earlier attempt
  write_file(directory + "/.lock", "");
  EXPECT_EQ(read_run(directory)->status, "budget");
  const int lock = ::open((directory + "/.lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_EQ(read_run(directory)->status, "running");
  ::close(lock);
  EXPECT_EQ(read_run(directory)->status, "budget");
}

TEST(Runs, takes_the_result_from_the_report) {
  const TemporaryDirectory root;
  const std::string directory = root / "mnist/20251121T040000Z-ab12";
  make_run(directory);
  write_file(directory + "/report.json", rundir::outcome_json(example()));
  std::filesystem::create_directories(directory + "/checkpoints/step-00000003");
  std::filesystem::create_directories(directory + "/checkpoints/step-00000002");
  std::filesystem::create_directories(directory + "/checkpoints/.tmp");
  const RunSummary run = *read_run(directory + "/");
  EXPECT_EQ(run.id, "20251121T040000Z-ab12");
  EXPECT_EQ(run.seconds, 42.5);
  EXPECT_EQ(run.objective, "val/accuracy >= 0.9");
  EXPECT_EQ(run.objective_met, false);
  EXPECT_EQ(run.checkpoints, (std::vector<std::string>{"step-00000002", "step-00000003"}));
  const std::string details = run_details(run);
  for (const char* part : {"budget", "val/accuracy >= 0.9: missed", "step-00000003 and 1 older", "bad \"thing\"", "43s",
                           "2025-11-21 04:00"}) {
    EXPECT_NE(details.find(part), std::string::npos) << part << "\n" << details;
  }
}

TEST(Runs, names_broken_files_and_shows_the_rest) {
  const TemporaryDirectory root;
  make_run(root / "a/20251121T040000Z-0001", "[not: a: job");
  make_run(root / "a/20251121T040001Z-0002");
  write_file(root / "a/20251121T040001Z-0002/report.json", "{\"status\":");
  make_run(root / "a/20251121T040002Z-0003");
  write_file(root / "a/20251121T040002Z-0003/metrics.jsonl", "rubbish\n{\"step\":7}\n");
  make_run(root / "a/20251121T040003Z-0004");
  std::filesystem::remove(root / "a/20251121T040003Z-0004/metrics.jsonl");
  std::filesystem::create_directory(root / "a/20251121T040003Z-0004/metrics.jsonl");
  std::filesystem::create_directories(root / "a/20251121T040004Z-0005/resolved.yaml");
  make_run(root / "a/20251121T040005Z-0006",
           "a: &x [1,1,1,1,1,1,1,1,1]\nb: &y [*x,*x,*x,*x,*x,*x,*x,*x]\nc: &z [*y,*y,*y,*y,*y,*y,*y]\n"
           "d: &w [*z,*z,*z,*z,*z,*z,*z]\ne: &v [*w,*w,*w,*w,*w,*w,*w]\nf: [*v,*v,*v,*v,*v,*v,*v]\n");
  make_run(root / "a/20251121T040006Z-0007", std::string(50000, '['));
  const auto runs = find_runs(root.path);
  ASSERT_EQ(runs.size(), 7U);
  const char* named[] = {"resolved.yaml",   "resolved.yaml", "resolved.yaml", "metrics.jsonl",
                         "metrics.jsonl:1", "report.json",   "resolved.yaml"};
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSERT_EQ(runs[i].problems.size(), 1U) << runs[i].id;
    EXPECT_NE(runs[i].problems[0].find(named[i]), std::string::npos) << runs[i].problems[0];
    EXPECT_NE(run_details(runs[i]).find(named[i]), std::string::npos);
    EXPECT_EQ(runs[i].status, "interrupted");
  }
  EXPECT_EQ(runs[4].steps, 7);
  EXPECT_EQ(runs[6].job, "a");
}

TEST(Runs, lists_the_newest_first_and_follows_no_links) {
  const TemporaryDirectory root;
  make_run(root / "b/20251121T040000Z-0001");
  make_run(root / "a/20251122T040000Z-0002");
  make_run(root / "a/20251120T040000Z-0003");
  std::filesystem::create_directory_symlink("20251122T040000Z-0002", root / "a/latest");
  std::filesystem::create_directory_symlink("..", root / "a/up");
  make_run(root / "1/2/3/4/5/6/7/8/too-deep");
  std::vector<std::string> ids;
  for (const RunSummary& run : find_runs(root.path)) ids.push_back(run.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"20251122T040000Z-0002", "20251121T040000Z-0001", "20251120T040000Z-0003"}));
  EXPECT_TRUE(find_runs(root / "nowhere").empty());
}

TEST(Runs, picks_by_path_end_of_id_or_last) {
  const TemporaryDirectory root;
  make_run(root / "b/20251121T040000Z-0001");
  make_run(root / "a/20251122T040000Z-1001");
  EXPECT_EQ(pick_run(root.path, "last").id, "20251122T040000Z-1001");
  EXPECT_EQ(pick_run(root.path, "1001").id, "20251122T040000Z-1001");
  EXPECT_EQ(pick_run("/", root / "b/20251121T040000Z-0001").id, "20251121T040000Z-0001");
  EXPECT_THROW(pick_run(root.path, "001"), Error);
  EXPECT_THROW(pick_run(root.path, "zzz"), Error);
  EXPECT_THROW(pick_run(root.path, ""), Error);
  EXPECT_THROW(pick_run(root.path, root / "b"), Error);
  EXPECT_THROW(pick_run(root / "b/nowhere", "last"), Error);
}

// pick_run must read the metrics of the chosen run only.
TEST(Runs, picking_a_run_reads_no_metrics_of_others) {
  const TemporaryDirectory root;
  const std::string line = "{\"step\":1,\"samples\":64,\"time\":1763697610,\"train/loss\":2.5}\n";
  std::string metrics;
  while (metrics.size() < (8 << 20)) metrics += line;
  for (const char* name : {"a/20251120T040000Z-0001", "a/20251121T040000Z-0002"}) {
    make_run(root / name);
    write_file(root / name + "/metrics.jsonl", metrics);
  }
  write_file(root / "a/20251120T040000Z-0001/report.json", rundir::outcome_json(example()));
  make_run(root / "a/20251122T040000Z-0003");
  const auto read_so_far = [] {
    std::ifstream facts("/proc/self/io");
    std::string name;
    int64_t bytes = 0;
    facts >> name >> bytes;  // rchar
    return bytes;
  };
  const int64_t before = read_so_far();
  EXPECT_EQ(pick_run(root.path, "last").id, "20251122T040000Z-0003");
  EXPECT_EQ(pick_run(root.path, "0003").id, "20251122T040000Z-0003");
  EXPECT_EQ(pick_run(root.path, "mnist/20251122T040000Z-0003").id, "20251122T040000Z-0003");
  EXPECT_LT(read_so_far() - before, 1 << 20);
}

TEST(Runs, tables_fit_any_width) {
  const TemporaryDirectory root;
  make_run(root / "mnist/20251121T040000Z-0001");
  make_run(root / "日本語/20251121T040000Z-0002",
           "name: 日本語\noptimizer:\n  lr: 0.2\nobjective: val/accuracy >= 0.9\n");
  make_run(root / "x/20251121T040000Z-0003", "name: a-very-long-name-for-a-job-that-someone-chose\nextra: [1, 2]\n");
  write_file(root / "x/20251121T040000Z-0003/report.json", rundir::outcome_json(example()));
  const auto runs = find_runs(root.path);
  for (int columns = 1; columns < 160; ++columns) {
    for (const std::string& table : {runs_table(runs, columns), compare_table(runs, columns)}) {
      std::istringstream text(table);
      int lines = 0;
      for (std::string line; std::getline(text, line); ++lines) EXPECT_LE(display_width(line), columns) << table;
      EXPECT_GE(lines, 4);
    }
  }
  const std::string wide = runs_table(runs), compared = compare_table(runs);
  for (const char* part :
       {"20251121T040000Z-0001", "日本語", "interrupted", "budget", "BEST val/accuracy", "0.8000", "missed"}) {
    EXPECT_NE(wide.find(part), std::string::npos) << part << "\n" << wide;
  }
  for (const char* part : {"optimizer.lr", "0.2", "[1, 2]", "train/loss", "0.7000 (0.8000)", "objective"}) {
    EXPECT_NE(compared.find(part), std::string::npos) << part << "\n" << compared;
  }
  EXPECT_EQ(runs_table({}), "");
  EXPECT_EQ(compare_table({}), "");
}

TEST(Runs, compare_leaves_out_equal_options) {
  const TemporaryDirectory root;
  make_run(root / "a/20251121T040000Z-0001", "name: m\nlr: 0.1\nseed: 1\n");
  make_run(root / "a/20251121T040000Z-0002", "name: m\nlr: 0.2\n");
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(compare_json(find_runs(root.path)));
  EXPECT_EQ(json["options"], nlohmann::ordered_json::parse("{\"lr\":[\"0.2\",\"0.1\"],\"seed\":[null,\"1\"]}"));
  EXPECT_EQ(json["metrics"]["val/accuracy"][0]["best"], 0.8);
}

TEST(Runs, compare_narrows_the_values_before_the_keys) {
  const TemporaryDirectory root;
  const std::string value(70, 'x');
  for (const char* run : {"1", "2"})
    make_run(root / "a/20251121T040000Z-000" + run,
             "checkpoint:\n  save_interval: " + value + run + "\n  save_interval_of_best: " + value + run + "\n");
  const std::string table = compare_table(find_runs(root.path), 60);
  for (const char* key : {"  checkpoint.save_interval  ", "  checkpoint.save_interval_of_best"})
    EXPECT_NE(table.find(std::string(key).substr(0, 30)), std::string::npos) << table;
}

TEST(Runs, the_lines_of_an_error_stand_below_each_other) {
  RunSummary run;
  run.error = "three workers died\n  try: fewer workers";
  EXPECT_NE(run_details(run).find("error        three workers died\n             try: fewer workers\n"),
            std::string::npos)
      << run_details(run);
}

TEST(Runs, writes_json_of_a_list_and_of_a_run) {
  const TemporaryDirectory root;
  make_run(root / "a/20251121T040000Z-0001");
  write_file(root / "a/20251121T040000Z-0001/report.json", rundir::outcome_json(example()));
  const auto runs = find_runs(root.path);
  const nlohmann::ordered_json list = nlohmann::ordered_json::parse(runs_json(runs)),
                               one = nlohmann::ordered_json::parse(run_json(runs[0]));
  EXPECT_EQ(list[0]["status"], "budget");
  EXPECT_EQ(list[0]["last"]["train/loss"], "Infinity");
  EXPECT_EQ(one["options"]["optimizer.lr"], "0.1");
  EXPECT_EQ(one["best_step"]["val/accuracy"], 2);
  EXPECT_EQ(one["objective_met"], false);
}

}  // namespace
}  // namespace sinew::report
