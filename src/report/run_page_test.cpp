// Tests the pictures and the page of a run, and the file with the result of an evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "report/report.h"
#include "report/testing.h"
#include "rundir/rundir.h"

namespace sinew::report {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kHostile = "</svg></table><script>alert('x')</script>";

EvaluationRecord two_classes() {
  return {.part = "test",
          .weights = "runs/a/model/model.safetensors",
          .step = 3,
          .data = {"data.test.path=new.csv"},
          .samples = 10,
          .skipped = 1,
          .classes = 2,
          .metrics = {{"accuracy", 0.8}, {"auc", 0.875}, {"pr_auc", std::nan("")}},
          .class_names = {"no", "yes"},
          .confusion = {5, 1, 1, 3},
          .thresholds = {{2.5, 3, 0}, {-0.25, 4, 1}, {-1e300, 4, 6}}};
}

class Drawn : public ::testing::Test {
 protected:
  Drawn() { write_run("name: digits\ncheckpoint: {monitor: val/accuracy}\ntrainer: {max_duration: 6ep}\n"); }
  void write_run(const std::string& options) {
    write_file(run_ + "/resolved.yaml", options);
    write_file(run_ + "/metrics.jsonl",
               "{\"step\":1,\"samples\":64,\"time\":1,\"train/loss\":2.5,\"val/accuracy\":0.5,\"val/f1\":0.5}\n"
               "{\"step\":2,\"samples\":128,\"time\":2,\"train/loss\":\"NaN\",\"val/accuracy\":0.8125}\n"
               "{\"step\":3,\"samples\":192,\"time\":3,\"train/loss\":0.515625,\"val/accuracy\":0.75}\n");
  }
  PlotResult plot(const std::string& output, std::vector<std::string> metrics = {}) {
    return plot_run(*read_run(run_), {folder_ / output, std::move(metrics)}, system_disk());
  }
  std::string code_of_plot(const std::string& output, std::vector<std::string> metrics = {}) {
    try {
      plot(output, std::move(metrics));
    } catch (const Error& error) {
      return to_string(error) + error.hint;
    }
    return "";
  }

  TemporaryDirectory folder_;
  const std::string run_ = folder_ / "runs/digits/20251121T040000Z-0001";
  rundir::Outcome outcome_{
      .status = "done", .job = "digits", .steps = 3, .samples = 192, .last = {{"val/accuracy", 0.75}}};
};

// ---- eval-<split>.json ---------------------------------------------------------------------------------------------

TEST(EvaluationFile, ReadsBackWhatItWrote) {
  const EvaluationRecord written = two_classes();
  const auto read = parse_evaluation(evaluation_json(written));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->part, "test");
  EXPECT_EQ(read->weights, written.weights);
  EXPECT_EQ(read->step, 3);
  EXPECT_EQ(read->data, written.data);
  EXPECT_EQ(read->samples, 10);
  EXPECT_EQ(read->skipped, 1);
  EXPECT_EQ(read->classes, 2);
  EXPECT_EQ(read->confusion, written.confusion);
  EXPECT_EQ(read->class_names, written.class_names);
  EXPECT_EQ(read->thresholds, written.thresholds);
  EXPECT_EQ(read->metrics.at("accuracy"), 0.8);
  EXPECT_TRUE(std::isnan(read->metrics.at("pr_auc")));
}

TEST(EvaluationFile, WrongContentsAreLeftOut) {
  EXPECT_FALSE(parse_evaluation(""));
  EXPECT_FALSE(parse_evaluation("[]"));
  EXPECT_FALSE(parse_evaluation("{\"metrics\":3}"));
  for (const char* wrong :
       {"\"confusion\":[[1,2],[3]]", "\"confusion\":[[1,-2],[3,4]]", "\"confusion\":[[1,\"2\"],[3,4]]",
        "\"confusion\":3", "\"thresholds\":{\"score\":[1],\"true_positives\":[1,2]}",
        "\"thresholds\":{\"score\":[2,1],\"true_positives\":[3,1],\"false_positives\":[1,2]}", "\"thresholds\":[]",
        "\"class_names\":{}"}) {
    const auto read = parse_evaluation("{\"metrics\":{}," + std::string(wrong) + "}");
    ASSERT_TRUE(read) << wrong;
    EXPECT_THAT(read->confusion, IsEmpty()) << wrong;
    EXPECT_THAT(read->thresholds, IsEmpty()) << wrong;
  }
}

// ---- sinew runs plot -----------------------------------------------------------------------------------------------

TEST_F(Drawn, TheEndingChoosesTheFormat) {
  EXPECT_THAT(plot("a.svg").files, ::testing::ElementsAre(folder_ / "a.svg"));
  const std::string svg = read_file(folder_ / "a.svg");
  EXPECT_TRUE(svg.starts_with("<?xml"));
  EXPECT_THAT(svg, HasSubstr(">train  0.51562<"));
  EXPECT_THAT(svg, HasSubstr(">val  0.75<"));
  EXPECT_THAT(svg, HasSubstr(">best val/accuracy  0.8125, step 2<"));
  EXPECT_THAT(svg, HasSubstr("1 value is NaN or infinite"));
  plot("a.png");
  EXPECT_TRUE(read_file(folder_ / "a.png").starts_with("\x89PNG"));
  EXPECT_THAT(code_of_plot("a.jpg"), HasSubstr("PLOT_WRONG_ENDING"));
  EXPECT_THAT(code_of_plot("curves"), HasSubstr("PLOT_WRONG_ENDING"));
}

TEST_F(Drawn, ADirectoryGetsOnePictureOfEachChart) {
  write_file(run_ + "/eval-test.json", evaluation_json(two_classes()));
  const PlotResult result = plot("new/deep/");
  for (const char* name :
       {"loss.png", "loss.svg", "accuracy.svg", "confusion-test.png", "roc.svg", "precision-recall.svg"})
    EXPECT_THAT(result.files, Contains(EndsWith(name))) << name;
  for (const std::string& file : result.files) EXPECT_FALSE(read_file(file).empty()) << file;
  EXPECT_THAT(read_file(folder_ / "new/deep/roc.svg"), HasSubstr(">test  area 0.875<"));
  EXPECT_THAT(read_file(folder_ / "new/deep/roc.svg"), HasSubstr("positive: yes"));
  EXPECT_EQ(plot("new").files.size(), result.files.size());  // it exists now
}

TEST_F(Drawn, MetricsAreChosenByName) {
  EXPECT_THAT(read_file(plot("a.svg", {"val/accuracy"}).files[0]), Not(HasSubstr(">loss<")));
  EXPECT_THAT(read_file(plot("b.svg", {"loss"}).files[0]), Not(HasSubstr(">accuracy<")));
  const std::string wrong = code_of_plot("a.svg", {"loss", "val/acuracy"});
  EXPECT_THAT(wrong, HasSubstr("PLOT_NO_METRIC"));
  EXPECT_THAT(wrong, HasSubstr("val/accuracy"));
}

TEST_F(Drawn, MetricsThatACommandLoggedThroughMlflowAreThoseOfTheRun) {
  const LoggedMetrics logged{{{4, 0, 5, {{"own", 0.25}}}, {9, 0, 4, {{"own", 0.5}}}}, ""};
  write_logged_metrics(system_disk(), run_, logged);
  const RunSummary run = *read_run(run_);
  EXPECT_EQ(run.last.at("own"), 0.5);
  EXPECT_EQ(run.best_step.at("own"), 9);
  EXPECT_EQ(run.last.at("val/accuracy"), 0.75);
  EXPECT_EQ(run.steps, 9);
  EXPECT_THAT(read_file(plot("a.svg", {"own"}).files[0]), HasSubstr(">own  0.5<"));
}

TEST_F(Drawn, ACrossValidationHasACurveForEachFold) {
  write_file(run_ + "/resolved.yaml", "name: cv\ndata: {split: {folds: 2}}\n");
  system_disk().remove_file(run_ + "/metrics.jsonl");
  for (const char* fold : {"1", "0"}) {
    const std::string own = run_ + (fold[0] == '1' ? "/trials/00000" : "/trials/00001");
    write_file(own + "/resolved.yaml", "data: {split: {folds: 2, fold: " + std::string(fold) + "}}\n");
    write_file(own + "/metrics.jsonl",
               "{\"step\":5,\"samples\":8,\"time\":1,\"train/loss\":2,\"val/loss\":" + std::string(fold) + ".5}\n");
  }
  const RunSummary unfinished = *read_run(run_);  // there is no report.json yet
  ASSERT_EQ(unfinished.folds.size(), 2U);
  EXPECT_EQ(unfinished.folds[1].run, "trials/00000");
  EXPECT_EQ(unfinished.folds[1].status, "interrupted");
  EXPECT_EQ(unfinished.folds[1].metrics, (Metrics{{"val/loss", 1.5}}));
  EXPECT_EQ(unfinished.steps, 10);
  EXPECT_EQ(unfinished.samples, 16);
  EXPECT_THAT(run_details(unfinished), HasSubstr("FOLD 1 (interrupted)"));
  const std::string svg = read_file(plot("a.svg", {"val/loss"}).files[0]);
  EXPECT_THAT(svg, HasSubstr(">fold 0  0.5<"));
  EXPECT_THAT(svg, HasSubstr(">fold 1  1.5<"));
  EXPECT_THAT(svg, HasSubstr(">val/loss<"));
  EXPECT_THAT(svg, Not(HasSubstr(">train/loss<")));
  EXPECT_THAT(code_of_plot("a.svg", {"val/los"}), HasSubstr("val/loss"));
  outcome_.folds = unfinished.folds;
  outcome_.last = {{"val/loss", 1}, {"val/loss_std", 0.7}};
  const std::string page = run_page(run_, outcome_);
  EXPECT_THAT(page, HasSubstr("Metrics of the folds"));
  EXPECT_THAT(page, HasSubstr(">0.7<"));
  EXPECT_THAT(page, HasSubstr(">fold 0  0.5<"));
  EXPECT_THAT(page, HasSubstr("/trials"));
}

TEST_F(Drawn, ARunWithoutMetricsHasAPicture) {
  write_file(run_ + "/metrics.jsonl", "");
  EXPECT_THAT(read_file(plot("a.svg").files[0]), HasSubstr("no values yet"));
  std::filesystem::remove(run_ + "/metrics.jsonl");
  EXPECT_THAT(read_file(plot("a.svg").files[0]), HasSubstr("no values yet"));
}

TEST_F(Drawn, SaysWhereAMissingConfusionMatrixComesFrom) {
  EXPECT_THAT(plot("a.svg").notes, Contains(HasSubstr("sinew eval " + run_)));
  write_file(run_ + "/eval-val.json", evaluation_json(two_classes()));
  EXPECT_THAT(plot("a.svg").notes, IsEmpty());
}

TEST_F(Drawn, ThousandsOfMetricsAreLimited) {
  std::string line = "{\"step\":1,\"samples\":1,\"time\":1";
  for (int i = 0; i < 1000; ++i) line += ",\"m/" + std::to_string(i) + "\":1";
  write_file(run_ + "/metrics.jsonl", line + "}\n");
  const PlotResult result = plot("a.svg");
  EXPECT_THAT(result.notes, Contains(HasSubstr("more than 400 metrics")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("376 more charts")));
}

TEST_F(Drawn, FileNamesAreSafe) {
  write_file(run_ + "/metrics.jsonl", "{\"step\":1,\"samples\":1,\"time\":1,\"../../up\":1,\"a b\":1,\"a_b\":2,\"" +
                                          std::string(300, 'n') + "\":1}\n");
  const PlotResult result = plot("new/");
  EXPECT_THAT(result.files, Contains(EndsWith("/new/_.._.._up.svg")));
  EXPECT_THAT(result.files, Contains(EndsWith("/new/a_b-2.svg")));
  for (const std::string& file : result.files) {
    EXPECT_EQ(std::filesystem::path(file).parent_path(), folder_ / "new");
    EXPECT_LT(std::filesystem::path(file).filename().string().size(), 120U);
  }
}

// ---- report.html ---------------------------------------------------------------------------------------------------

TEST_F(Drawn, ThePageHasWhatTheRunLeft) {
  write_file(run_ + "/eval-test.json", evaluation_json(two_classes()));
  write_file(run_ + "/model/model.safetensors", "");
  write_file(run_ + "/log.jsonl",
             "{\"ts\":\"x\",\"level\":\"info\",\"event\":\"start\",\"text\":\"digits: cnn, 50186 parameters\"}\n"
             "{\"ts\":\"x\",\"level\":\"warning\",\"event\":\"odd\",\"text\":\"something is odd\"}\n");
  outcome_.objective = {{"val/accuracy >= 0.7", true, 0.75}};
  StageTimes& time = outcome_.time.emplace(StageTimes{.lanes = 2});
  time[Stage::backward] = 6;
  time[Stage::data_wait] = 2;
  const std::string page = run_page(run_, outcome_);
  for (const char* expected :
       {"<h1>digits</h1>", "50186 parameters", ">done<", "3 steps", "val/accuracy &gt;= 0.7: met", "0.515625", "0.8125",
        "something is odd", "confusion matrix (test data, step 3)", "<td>yes</td>", "sinew predict", "sinew export",
        "trainer.max_duration=12ep", "metrics.jsonl", "<svg ", "Where the time went",
        "<td>backward</td><td class=\"number\">75</td>", "<td>data_wait</td><td class=\"number\">25</td>",
        "sinew advise"})
    EXPECT_THAT(page, HasSubstr(expected));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
}

TEST_F(Drawn, AFailedRunSaysWhyAndHowToGoOn) {
  rundir::set_failed(outcome_, "the loss is <not> finite", "lower the learning rate");
  outcome_.earlier_status = "stopped";
  const std::string page = run_page(run_, outcome_);
  EXPECT_THAT(page, HasSubstr("the loss is &lt;not&gt; finite"));
  EXPECT_THAT(page, HasSubstr("lower the learning rate"));
  EXPECT_THAT(page, HasSubstr("sinew resume " + run_ + "</pre>"));
  EXPECT_THAT(page, HasSubstr("ended as stopped"));
  EXPECT_THAT(page, Not(HasSubstr("sinew predict")));  // there is no model
}

TEST_F(Drawn, NoTextOfTheRunBecomesMarkup) {
  write_run("name: \"" + kHostile + "\"\ncheckpoint: {monitor: \"" + kHostile + "\"}\ndata: {format: \"" + kHostile +
            "\"}\n");
  write_file(run_ + "/metrics.jsonl", "{\"step\":1,\"samples\":1,\"time\":1,\"" + kHostile + "\":1,\"val/loss\":1}\n");
  EvaluationRecord record = two_classes();
  record.part = record.weights = record.class_names[0] = record.class_names[1] = kHostile;
  write_file(run_ + "/eval-test.json", evaluation_json(record));
  write_file(run_ + "/log.jsonl", "{\"level\":\"warning\",\"event\":\"start\",\"text\":\"" + kHostile + "\"}\n");
  rundir::set_failed(outcome_, kHostile, kHostile);
  outcome_.objective = {{kHostile, false, 1}};
  outcome_.earlier_status = kHostile;
  outcome_.best = {{kHostile, 1, 1}};
  outcome_.digest = kHostile;
  outcome_.last[kHostile] = 1;
  const std::string page = run_page(run_, outcome_);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(read_file(plot("a.svg").files[0]), Not(HasSubstr("<script")));
}

TEST_F(Drawn, DamagedFilesLeaveAPage) {
  for (const char* name : {"/eval-test.json", "/eval-val.json", "/log.jsonl", "/resolved.yaml", "/metrics.jsonl"})
    write_file(run_ + name, "{\"metrics\": \xff\xfe [[[");
  EXPECT_THAT(run_page(run_, outcome_), HasSubstr("</html>"));
  EXPECT_EQ(run_page(folder_ / "nothing", outcome_), "");
}

TEST_F(Drawn, APageThatCannotBeWrittenIsASentence) {
  EXPECT_EQ(keep_run_page(system_disk(), run_, outcome_), "");
  EXPECT_THAT(read_file(run_ + "/report.html"), HasSubstr("</html>"));
  std::filesystem::remove(run_ + "/report.html");
  std::filesystem::create_directories(run_ + "/report.html/x");
  EXPECT_THAT(keep_run_page(system_disk(), run_, outcome_), HasSubstr("report.html"));
}

}  // namespace
}  // namespace sinew::report
