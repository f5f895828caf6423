#include <gtest/gtest.h>

#include "base/error.h"
#include "spec/random_job.h"
#include "spec/spec.h"

namespace sinew::spec {
namespace {

constexpr char kData[] = "data: {format: csv, train: {path: a.csv}, columns: {target: y}}\n";

std::string changed(const std::string& yaml, const std::vector<std::string>& overrides, const Reasons& reasons = {}) {
  const std::string text = with_options(yaml, "job.yaml", overrides, reasons);
  const Reading before = read_job(yaml, "job.yaml", overrides), after = read_job(text, "job.yaml");
  EXPECT_TRUE(after.problems.empty()) << text;
  EXPECT_EQ(before.job, after.job) << text;
  return text;
}

TEST(WithOptions, ChangesAValueWhereItStands) {
  const std::string yaml =
      std::string("# mine\nname: a  # short\nmodel: mlp\n") + kData + "trainer:\n  lanes: 1  # one\n  batch_size: 64\n";
  EXPECT_EQ(changed(yaml, {"trainer.lanes=2", "trainer.batch_size=128"}, {{"trainer.lanes", "two cores"}}),
            std::string("# mine\nname: a  # short\nmodel: mlp\n") + kData +
                "trainer:\n  # trainer.lanes: two cores\n  lanes: 2  # one\n  batch_size: 128\n");
}

TEST(WithOptions, AddsAnOptionToItsSection) {
  const std::string yaml = std::string("name: a\nmodel: mlp\n") + kData + "trainer:\n    batch_size: 64\n";
  EXPECT_EQ(changed(yaml, {"trainer.lanes=2"}),
            std::string("name: a\nmodel: mlp\n") + kData + "trainer:\n    lanes: 2\n    batch_size: 64\n");
  EXPECT_EQ(
      changed(std::string("name: a\nmodel: mlp\n") + kData + "trainer:  # how\n  # small: memory\n  batch_size: 64\n",
              {"trainer.lanes=2"}, {{"trainer.lanes", "why"}}),
      std::string("name: a\nmodel: mlp\n") + kData +
          "trainer:  # how\n  # trainer.lanes: why\n  lanes: 2\n  # small: memory\n  batch_size: 64\n");
}

TEST(WithOptions, AddsASection) {
  const std::string yaml = std::string("name: a\nmodel: mlp\n") + kData;
  EXPECT_EQ(changed(yaml, {"checkpoint.interval=20m"}, {{"checkpoint.interval", "save less often"}}),
            yaml + "# checkpoint.interval: save less often\ncheckpoint: {interval: 20m}\n");
  EXPECT_EQ(changed(yaml, {"data.prefetch.threads=4"}),
            "name: a\nmodel: mlp\ndata: {prefetch: {threads: 4}, format: csv, train: {path: a.csv}, columns: {target: "
            "y}}\n");
}

TEST(WithOptions, WritesTheWholeJobIfItsFormIsUnusual) {
  changed(std::string("name: a\nmodel: mlp\noptimizer: sgd\n") + kData, {"optimizer.lr=0.5"});
  changed(std::string("name: a\nmodel: mlp\n") + kData + "trainer: {max_duration: &n 5ep, eval_interval: *n}\n",
          {"trainer.eval_interval=2ep"});
}

TEST(WithOptions, KeepsOtherLettersAndLineEnds) {
  const std::string yaml = std::string("\xEF\xBB\xBFname: a  # gr\xC3\xBC\xC3\x9F\r\nmodel: mlp\r\n") + kData +
                           "trainer:\r\n  lanes: 1  # \xE2\x82\xAC\r\n  batch_size: 64\r\n";
  EXPECT_EQ(changed(yaml, {"trainer.lanes=2", "trainer.batch_size=32"}),
            std::string("\xEF\xBB\xBFname: a  # gr\xC3\xBC\xC3\x9F\r\nmodel: mlp\r\n") + kData +
                "trainer:\r\n  lanes: 2  # \xE2\x82\xAC\r\n  batch_size: 32\r\n");
}

TEST(WithOptions, ABadValueIsAnError) {
  EXPECT_THROW(
      with_options(std::string("name: a\nmodel: mlp\n") + kData, "job.yaml", {"trainer.eval_interval=2dur"}, {}),
      UsageError);
}

TEST(WithOptions, AnyJobKeepsItsMeaning) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string yaml = to_yaml(JobMaker(seed).make());
    if (!read_job(yaml, "job.yaml", {"trainer.lanes=3", "checkpoint.interval=7st"}).problems.empty()) continue;
    changed(yaml, {"trainer.lanes=3", "checkpoint.interval=7st"}, {{"trainer.lanes", "why"}});
  }
}

}  // namespace
}  // namespace sinew::spec
