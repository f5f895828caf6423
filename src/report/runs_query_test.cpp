// Tests which runs a list shows, in which order, and with which columns.
#include <gtest/gtest.h>

#include <cmath>

#include "base/expected_error.h"
#include "report/report.h"

namespace sinew::report {
namespace {

RunSummary made(const std::string& id, const std::string& status, double loss, double accuracy, const std::string& lr) {
  RunSummary run;
  run.id = id;
  run.job = "a, b";
  run.status = status;
  run.steps = 10;
  run.best = run.last = {{"val/loss", loss}, {"val/accuracy", accuracy}};
  run.last["val/loss"] = loss + 1;
  run.options = {{"optimizer.lr", lr}, {"name", "a, b"}};
  return run;
}

std::vector<RunSummary> some() {
  std::vector<RunSummary> runs = {made("r4", "running", NAN, 0.2, "1e-3"), made("r3", "done", 0.3, 0.9, "0.01"),
                                  made("r2", "failed", 0.2, 0.7, "0.001"), made("r1", "done", 0.25, 0.8, "0.1")};
  runs[0].best.erase("val/accuracy");
  return runs;
}

std::string ids(const RunQuery& query) {
  std::string text;
  for (const RunSummary& run : select_runs(some(), query)) text += run.id + " ";
  return text;
}

std::string where(const std::vector<std::string>& conditions) {
  return ids({.where = conditions});
}

TEST(RunsQuery, ConditionsCompareNumbersAndText) {
  EXPECT_EQ(where({}), "r4 r3 r2 r1 ");
  EXPECT_EQ(where({"status=done"}), "r3 r1 ");
  EXPECT_EQ(where({"status!=done"}), "r4 r2 ");
  EXPECT_EQ(where({"val/loss < 0.3"}), "r2 r1 ");
  EXPECT_EQ(where({"val/loss<=0.3", "status=done"}), "r3 r1 ");
  EXPECT_EQ(where({"val/loss>0"}), "r3 r2 r1 ") << "NaN is not above 0";
  EXPECT_EQ(where({"last:val/loss>=1.25"}), "r3 r1 ");
  EXPECT_EQ(where({"optimizer.lr=0.001"}), "r4 r2 ") << "1e-3 is the same number";
  EXPECT_EQ(where({"val/accuracy>0"}), "r3 r2 r1 ") << "a run without the value fulfils nothing";
  EXPECT_EQ(where({"val/accuracy!=0.7"}), "r4 r3 r1 ");
  EXPECT_EQ(where({"run==r1"}), "r1 ");
}

TEST(RunsQuery, OnlyNumbersAndTimesHaveAnOrder) {
  EXPECT_ERROR(error_of([] { where({"val/loss<0.5x"}); }), "OPTION_INVALID", "'0.5x' is no number");
  EXPECT_ERROR(error_of([] { where({"took>1m"}); }), "OPTION_INVALID", "'1m' is no number");
  EXPECT_ERROR(error_of([] { where({"status<done"}); }), "OPTION_INVALID", "has no order");
  std::vector<RunSummary> runs = some();
  for (size_t i = 0; i < runs.size(); ++i) runs[i].started_wall_seconds = 1.8e9 + 60.0 * static_cast<double>(i);
  EXPECT_EQ(select_runs(runs, {.where = {"started>=2027-01-15 08:02"}}).size(), 2U);
  EXPECT_EQ(select_runs(runs, {.where = {"started<2027-01-15T08:01"}}).size(), 1U);
}

TEST(RunsQuery, SortsTheBestFirst) {
  EXPECT_EQ(ids({.sort = "val/loss"}), "r2 r1 r3 r4 ") << "NaN comes last";
  EXPECT_EQ(ids({.sort = "val/loss", .reverse = true}), "r3 r1 r2 r4 ");
  EXPECT_EQ(ids({.sort = "val/accuracy"}), "r3 r1 r2 r4 ");
  EXPECT_EQ(ids({.sort = "optimizer.lr"}), "r4 r2 r3 r1 ");
  EXPECT_EQ(ids({.sort = "run", .limit = 2}), "r1 r2 ");
  EXPECT_EQ(ids({.reverse = true}), "r1 r2 r3 r4 ");
}

TEST(RunsQuery, AWrongKeyOrConditionIsAnError) {
  EXPECT_ERROR(error_of([] { where({"vall/loss<1"}); }), "OPTION_INVALID", "did you mean 'val/loss'");
  EXPECT_ERROR(error_of([] { ids({.sort = "nothing"}); }), "OPTION_INVALID", "no run has 'nothing'");
  for (const char* text : {"", "a", "=1", "a=", "a!1", " < "})
    EXPECT_ERROR(error_of([&] { where({text}); }), "OPTION_INVALID", "is no condition") << text;
  EXPECT_ERROR(error_of([] { runs_table_of(some(), "x", 0); }), "OPTION_INVALID", "no run has 'x'");
}

TEST(RunsQuery, ColumnsAreThoseOfTheUser) {
  EXPECT_EQ(runs_table_of(some(), "run,val/accuracy,optimizer.lr", 0),
            "run  val/accuracy  optimizer.lr\n"
            "r4              -          1e-3\n"
            "r3         0.9000          0.01\n"
            "r2         0.7000         0.001\n"
            "r1         0.8000           0.1\n");
}

TEST(RunsQuery, CsvHasEveryValueUnrounded) {
  std::vector<RunSummary> runs = some();
  runs[3].best["val/loss"] = 0.1 + 0.2;
  EXPECT_EQ(runs_csv(runs, "run,job,val/loss,val/accuracy"),
            "run,job,val/loss,val/accuracy\nr4,\"a, b\",nan,\nr3,\"a, b\",0.3,0.9\nr2,\"a, b\",0.2,0.7\n"
            "r1,\"a, b\",0.30000000000000004,0.8\n");
  const std::string all = runs_csv(runs, "");
  EXPECT_EQ(all.substr(0, all.find('\n')),
            "run,job,status,started,took,steps,samples,objective_met,digest,directory,val/accuracy,last:val/accuracy,"
            "val/loss,last:val/loss,optimizer.lr");
}

}  // namespace
}  // namespace sinew::report
