#include "jobs/metric_line.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace sinew::jobs {
namespace {

using Kind = MetricLine::Kind;

TEST(MetricLine, ReadsStepsAndNumbers) {
  const MetricLine line =
      read_metric_line(R"({"step": 10, "loss": 0.5, "samples": 640, "epoch": 1.5, "note": "a", "ok": true})");
  EXPECT_EQ(line.kind, Kind::metrics);
  EXPECT_EQ(line.step, 10);
  EXPECT_EQ(line.samples, 640);
  EXPECT_EQ(line.epoch, 1.5);
  EXPECT_EQ(line.values, (report::Metrics{{"train/loss", 0.5}}));
}

TEST(MetricLine, TakesAnObjectOfNumbersAlone) {
  EXPECT_EQ(read_metric_line(R"({"val_loss": 1, "lr": 1e-3})").values,
            (report::Metrics{{"val/loss", 1}, {"train/lr", 1e-3}}));
  EXPECT_EQ(read_metric_line(R"({"val": {"loss": 1, "top": {"k5": 2}}})").values,
            (report::Metrics{{"val/loss", 1}, {"val/top.k5", 2}}));
}

TEST(MetricLine, LeavesEverythingElseAsText) {
  for (const char* text : {"", "hello", "{", "}", "{}", "[1]", "3", "null", "{'loss': 1}", R"({"msg": "up", "pid": 3})",
                           R"( {"step": 1, "loss": 2})", "{not json}", R"("{}")"})
    EXPECT_EQ(read_metric_line(text).kind, Kind::text) << text;
}

TEST(MetricLine, SaysWhatIsBroken) {
  for (const char* text :
       {R"({"step": 1, "loss": })", R"({"step": -1, "loss": 2})", R"({"step": 1.5, "loss": 2})",
        R"({"step": "a", "loss": 2})", R"({"step": 1e300, "loss": 2})", R"({"step": null, "loss": 2})"}) {
    const MetricLine line = read_metric_line(text);
    EXPECT_EQ(line.kind, Kind::broken) << text;
    EXPECT_FALSE(line.why.empty()) << text;
  }
}

TEST(MetricLine, KnowsPythonsNumbers) {
  const MetricLine line =
      read_metric_line(R"({"step": 1, "a": NaN, "b": -Infinity, "c": Infinity, "d": "NaN", "e": "Infinity"})");
  ASSERT_EQ(line.kind, Kind::metrics);
  EXPECT_TRUE(std::isnan(line.values.at("train/a")));
  EXPECT_EQ(line.values.at("train/b"), -INFINITY);
  EXPECT_EQ(line.values.at("train/c"), INFINITY);
  EXPECT_TRUE(std::isnan(line.values.at("train/d")));
  EXPECT_EQ(read_metric_line(R"({"step": 1, "x": NaN, "s": "a NaN \" Infinity"})").values.size(), 1U);
}

TEST(MetricLine, GivesEveryNameAGroup) {
  const std::pair<const char*, const char*> cases[] = {{"loss", "train/loss"},
                                                       {"val_loss", "val/loss"},
                                                       {"eval_f1", "val/f1"},
                                                       {"test_acc", "test/acc"},
                                                       {"train_loss", "train/loss"},
                                                       {"eval/loss", "val/loss"},
                                                       {"val/a/b", "val/a.b"},
                                                       {"my metric", "train/my_metric"},
                                                       {"a/b", "a/b"},
                                                       {"/a", ""},
                                                       {"a/", ""},
                                                       {"", ""},
                                                       {"val_", "train/val_"},
                                                       {"loss \xC3\xA4", "train/loss___"}};
  for (const auto& [given, wanted] : cases) EXPECT_EQ(metric_name(given), wanted) << given;
}

// Any bytes must give a result, and the rest of the program must accept all names in it.
TEST(MetricLine, SurvivesAnything) {
  RandomStream random(random_key({7}));
  const std::string good = R"({"step": 10, "loss": 0.5, "val": {"loss": NaN}, "s": "a\"b", "t": [1, 2]})";
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (uint64_t n = 1 + random.below(4); n > 0; --n) {
      const size_t at = random.below(text.size());
      if (random.below(2) == 0) {
        text[at] = static_cast<char>(random.below(256));
      } else {
        text.erase(at, 1 + random.below(3));
      }
      if (text.empty()) break;
    }
    const MetricLine line = read_metric_line(text);
    for (const auto& [name, value] : line.values) {
      const size_t slash = name.find('/');
      ASSERT_NE(slash, std::string::npos) << text;
      ASSERT_EQ(name.find('/', slash + 1), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace sinew::jobs
