#include "report/metric_lines.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/random.h"
#include "forecast/forecast.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

using namespace testing;

bool same_bits(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

TEST(MetricLines, any_values_read_back_to_the_same_bits) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStream random(random_key({1, seed}));
    Metrics values = {{"zero", -0.0}};
    for (uint64_t i = random.below(6); i > 0; --i) {
      std::string name = "m" + std::to_string(i);
      if (random.below(4) == 0) name += random.below(2) == 0 ? "\"\\\n" : "µ/é";
      values[name] = std::bit_cast<double>(random.bits64());  // any double, including NaN and infinity
    }
    const auto step = static_cast<int64_t>(random.below(1ULL << 50)),
               samples = static_cast<int64_t>(random.below(1ULL << 50));
    std::string line;
    append_metrics_line(line, step, samples, 1763697600.125, values);
    ASSERT_TRUE(line.ends_with("}\n"));
    line.pop_back();
    ASSERT_EQ(line.find('\n'), std::string::npos);
    for (const auto& record : {parse_metrics_line(line), parse_metrics_line_slowly(line)}) {
      ASSERT_TRUE(record) << line;
      EXPECT_EQ(record->step, step);
      EXPECT_EQ(record->samples, samples);
      EXPECT_EQ(record->wall_seconds, 1763697600.125);
      ASSERT_EQ(record->values.size(), values.size());
      for (const auto& [name, value] : values) EXPECT_TRUE(same_bits(record->values.at(name), value)) << line;
    }
    EXPECT_EQ(step_of_line(line), step);
  }
}

TEST(MetricLines, writes_the_documented_format) {
  std::string line;
  append_metrics_line(line, 10, 640, 1763697600.5, {{"train/loss", 0.5}, {"val/x", std::nan("")}, {"y", -HUGE_VAL}});
  EXPECT_EQ(
      line,
      "{\"step\":10,\"samples\":640,\"time\":1763697600.5,\"train/loss\":0.5,\"val/x\":\"NaN\",\"y\":\"-Infinity\"}\n");
}

TEST(MetricLines, names_that_are_not_utf8_still_make_json) {
  std::string line;
  append_metrics_line(line, 1, 2, 3, {{"bad\xff", 1}});
  line.pop_back();
  const auto record = parse_metrics_line(line);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->values.begin()->first, "bad\xEF\xBF\xBD");
}

// Changes, removes or inserts single bytes. The fast parser may refuse a line, but must never disagree with the general
// parser.
TEST(MetricLines, the_fast_parser_agrees_with_the_general_one_on_damaged_lines) {
  int refused = 0, taken = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    RandomStream random(random_key({2, seed}));
    std::string line;
    append_metrics_line(line, 1200, 76800, 1763697600.25, {{"train/loss", 0.12e-7}, {"n", -3}, {"z", 0}, {"q", 1e300}});
    line.pop_back();
    for (uint64_t edits = 1 + random.below(2); edits > 0; --edits) {
      const size_t at = random.below(line.size());
      constexpr std::string_view kBytes = "{}[]\",:0123456789.eE+-tfn \\x";
      switch (random.below(3)) {
        case 0: line[at] = kBytes[random.below(kBytes.size())]; break;
        case 1: line.erase(at, 1); break;
        default: line.insert(at, 1, kBytes[random.below(kBytes.size())]);
      }
    }
    const auto fast = parse_metrics_line(line), slow = parse_metrics_line_slowly(line);
    ASSERT_EQ(fast.has_value(), slow.has_value()) << line;
    fast ? ++taken : ++refused;
    if (!fast) continue;
    EXPECT_EQ(fast->step, slow->step) << line;
    EXPECT_EQ(fast->samples, slow->samples) << line;
    ASSERT_EQ(fast->values.size(), slow->values.size()) << line;
    for (const auto& [name, value] : slow->values) EXPECT_EQ(fast->values.at(name), value) << line;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 1000);
}

TEST(MetricLines, errors_name_the_reason) {
  const auto why = [](const std::string& line) {
    std::string reason;
    EXPECT_FALSE(parse_metrics_line(line, &reason)) << line;
    return reason;
  };
  EXPECT_EQ(why("[1]"), "not a JSON object");
  EXPECT_EQ(why(std::string(100000, '[')), "not a JSON object");
  EXPECT_EQ(why("{\"samples\":1}"), "no \"step\"");
  EXPECT_EQ(why("{\"step\":1.5}"), "\"step\" is not a whole number");
  EXPECT_EQ(why("{\"step\":-1}"), "\"step\" is not a whole number");
  EXPECT_EQ(why("{\"step\":1,\"a\":null}"), "\"a\" is not a number");
  EXPECT_EQ(why("{\"step\":1,\"a\":\"nan\"}"), "\"a\" is not a number");
  EXPECT_EQ(why("{\"step\":1,\"a\":{\"b\":1}}"), "\"a\" is not a number");
}

TEST(MetricLinesDeath, a_metric_cannot_take_the_name_of_a_record_field) {
  std::string line;
  EXPECT_DEATH(append_metrics_line(line, 1, 2, 3, {{"step", 1}}), "step");
}

TEST(ReadMetrics, a_torn_end_is_no_error_and_broken_lines_are_named) {
  const TemporaryDirectory directory;
  const std::string path = directory / "metrics.jsonl";
  write_file(path, "{\"step\":1,\"a\":1}\nrubbish\n\n{\"step\":2,\"a\":2}\r\n" + std::string(2 << 20, 'x') +
                       "\n{\"step\":3,\"a\":3}\n{\"step\":4,\"a");
  std::vector<std::string> broken;
  const auto records = read_metrics(path, &broken);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].values.at("a"), 2);
  EXPECT_EQ(records[2].step, 3);
  EXPECT_EQ(broken, (std::vector<std::string>{"metrics.jsonl:2: not a JSON object",
                                              "metrics.jsonl:5: the line is longer than a megabyte"}));
  EXPECT_EQ(read_metrics(path).size(), 3U);
  EXPECT_TRUE(read_metrics(directory / "none.jsonl").empty());
}

TEST(ReadMetrics, finds_the_evaluations_of_a_metric) {
  const TemporaryDirectory folder;
  std::string lines;
  append_metrics_line(lines, 1, 8, 1, {{"train/learning_rate", 0.5}});
  append_metrics_line(lines, 2, 16, 2, {{"val/loss", 3.5}});
  append_metrics_line(lines, 3, 24, 3, {{"train/learning_rate", 0.25}, {"val/loss", NAN}, {"val/accuracy", 0.5}});
  append_metrics_line(lines, 3, 24, 4, {{"test/loss", 1}, {"val/loss", 9}});
  write_file(folder / "metrics.jsonl", lines);
  const auto found = read_evaluations_of(folder.path, "val/loss");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].step, 2);
  EXPECT_EQ(found[0].value, 3.5);
  EXPECT_EQ(found[0].learning_rate, 0.5);
  EXPECT_TRUE(std::isnan(found[1].value));
  EXPECT_EQ(found[1].learning_rate, 0.25);
  EXPECT_TRUE(read_evaluations_of(folder.path + "/nothing", "val/loss").empty());
}

TEST(ReadMetrics, limits_the_report_about_a_file_of_rubbish) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "rubbish\n";
  write_file(directory / "metrics.jsonl", text);
  std::vector<std::string> broken;
  EXPECT_TRUE(read_metrics(directory / "metrics.jsonl", &broken).empty());
  ASSERT_EQ(broken.size(), 101U);
  EXPECT_EQ(broken.back(), "metrics.jsonl: 4900 more broken lines");
}

TEST(ReadMetrics, refuses_what_is_not_a_regular_file) {
  EXPECT_THROW(read_metrics("/dev/zero"), std::exception);
  EXPECT_THROW(read_metrics("/"), std::exception);
}

}  // namespace
}  // namespace sinew::report
