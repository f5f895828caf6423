#include "report/progress_line.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <iterator>
#include <sstream>

#include "base/disk.h"
#include "base/printable.h"
#include "base/random.h"
#include "report/report.h"
#include "report/testing.h"
#include "report/text_format.h"

namespace sinew::report {
namespace {

Progress example() {
  Progress progress;
  progress.step = Step(1240);
  progress.total_steps = 2350;
  progress.epoch = 5.27;
  progress.total_epochs = 10;
  progress.samples_per_second = 84210;
  progress.eta_seconds = 12.3;
  progress.shown = {{"loss", 0.312}, {"val/accuracy", 0.912}};
  return progress;
}

// Returns the text without its colour codes.
std::string bare(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

TEST(ProgressLine, shows_all_parts) {
  EXPECT_EQ(progress_line(example(), 120, true, false),
            "step 1240/2350  epoch 5.3/10 [#####-----]  loss 0.3120  val/accuracy 0.9120  84.2k samples/s  eta 12s");
  EXPECT_EQ(progress_line(example(), 0, false, false),
            "step 1240/2350  epoch 5.3/10  loss 0.3120  val/accuracy 0.9120  84.2k samples/s  eta 12s");
}

TEST(ProgressLine, shows_what_the_run_will_probably_reach) {
  Progress progress = example();
  progress.forecast_metric = "val/accuracy";
  progress.forecast_low = 0.92134;
  progress.forecast_high = 0.9342;
  EXPECT_EQ(progress_line(progress, 0, false, false),
            "step 1240/2350  epoch 5.3/10  loss 0.3120  val/accuracy 0.9120  84.2k samples/s  eta 12s  best "
            "val/accuracy 0.921-0.935");
  EXPECT_EQ(progress_line(progress, 79, true, false),
            "step 1240/2350  epoch 5.3/10  loss 0.3120  val/accuracy 0.9120  eta 12s");
  EXPECT_EQ(progress_json(progress).at("best_at_end").dump(),
            R"({"metric":"val/accuracy","low":0.92134,"high":0.9342})");
  EXPECT_FALSE(progress_json(example()).contains("best_at_end"));
}

TEST(ProgressLine, leaves_out_the_least_important_parts_first) {
  EXPECT_EQ(progress_line(example(), 79, true, false),
            "step 1240/2350  epoch 5.3/10  loss 0.3120  val/accuracy 0.9120  eta 12s");
  EXPECT_EQ(progress_line(example(), 60, true, false), "step 1240/2350  loss 0.3120  val/accuracy 0.9120  eta 12s");
  EXPECT_EQ(progress_line(example(), 40, true, false), "step 1240/2350  loss 0.3120  eta 12s");
  EXPECT_EQ(progress_line(example(), 14, true, false), "step 1240/2350");
  EXPECT_EQ(progress_line(example(), 10, true, false), "step 1240…");
}

TEST(ProgressLine, leaves_out_unknown_values) {
  EXPECT_EQ(progress_line({}, 80, true, false), "step 0");
  Progress progress;
  progress.step = Step(7);
  progress.epoch = 0.26;
  EXPECT_EQ(progress_line(progress, 80, true, false), "step 7  epoch 0.3");
  progress.total_steps = 100'000;
  EXPECT_EQ(progress_line(progress, 80, true, false), "step      7/100000  epoch 0.3 [----------]");
}

// Whatever the input is, the line fits its columns and contains no control characters.
TEST(ProgressLine, fits_and_stays_one_line_for_anything) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStream random(random_key({seed}));
    const auto any = [&] { return std::bit_cast<double>(random.bits64()); };
    Progress progress;
    progress.step = Step(static_cast<int64_t>(random.bits64() >> 1));
    progress.total_steps = static_cast<int64_t>(random.bits64() >> (1 + random.below(63)));
    progress.epoch = any();
    progress.total_epochs = any();
    progress.samples_per_second = any();
    progress.eta_seconds = any();
    for (uint64_t i = random.below(5); i > 0; --i) {
      std::string name(random.below(30), ' ');
      for (char& c : name) c = static_cast<char>(random.below(256));
      progress.shown[name] = any();
    }
    const int columns = 1 + static_cast<int>(random.below(150));
    const bool color = random.below(2) == 0;
    const std::string line = bare(progress_line(progress, columns, true, color));
    EXPECT_LE(display_width(line), columns) << line;
    EXPECT_EQ(line, printable(line));
    EXPECT_NE(line, "");
  }
}

TEST(ProgressLine, colour_codes_change_no_text) {
  Progress progress = example();
  progress.shown["loss"] = NAN;
  for (int columns = 1; columns < 120; ++columns) {
    EXPECT_EQ(bare(progress_line(progress, columns, true, true)), progress_line(progress, columns, true, false));
  }
  EXPECT_NE(progress_line(progress, 0, true, true).find("\x1b[31mnan"), std::string::npos);
}

TEST(TextFormat, formats_numbers) {
  const std::vector<std::pair<double, std::string>> cases = {
      {0, "0"},         {0.312, "0.3120"},    {-0.5, "-0.5000"},    {0.99996, "1.000"},
      {1, "1.000"},     {12.345, "12.35"},    {99.996, "100.0"},    {999.96, "1000"},
      {54321, "54321"}, {123456, "1.23e+05"}, {0.00012, "1.20e-04"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(short_number(value), text);
  EXPECT_EQ(short_count(84210), "84.2k");
  EXPECT_EQ(short_count(999.9), "1.00k");
  EXPECT_EQ(short_count(12), "12");
  EXPECT_EQ(short_count(1.25), "1.2");
  EXPECT_EQ(short_count(1.2e6), "1.20M");
  EXPECT_EQ(short_seconds(12.3), "12s");
  EXPECT_EQ(short_seconds(59.7), "1m00s");
  EXPECT_EQ(short_seconds(185), "3m05s");
  EXPECT_EQ(short_seconds(8040), "2h14m");
  EXPECT_EQ(short_seconds(442800), "5d03h");
  EXPECT_EQ(short_seconds(NAN), "?");
  EXPECT_EQ(short_seconds(1e300), "long");
}

TEST(TextFormat, computes_the_width_on_a_terminal) {
  EXPECT_EQ(display_width("µé日本"), 6);
  EXPECT_EQ(fit("日本語", 4), "日…");
  EXPECT_EQ(fit("日本語", 6), "日本語");
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(ProgressLine, the_last_line_is_not_older_than_the_metrics) {
  for (const int waiting : {47, 60}) {
    testing::TemporaryDirectory directory;
    testing::FakeClock clock;
    std::string out;
    ReporterOptions options;
    options.directory = directory.path;
    options.output = [&](std::string_view text) { out += text; };
    Reporter reporter(options, system_disk(), clock);
    for (const int step : {10, waiting}) reporter.progress({.step = Step(step), .total_steps = 60, .shown = {}});
    reporter.metrics(Step(60), 600, {{"val/loss", 0.5}});
    reporter.finish(true);
    EXPECT_EQ(out.find("step " + std::to_string(waiting) + "/60") != std::string::npos, waiting == 60) << out;
  }
}

TEST(Wrap, BreaksBetweenWordsAndRatherBetweenMetrics) {
  EXPECT_EQ(wrap("a short line", 12), "a short line");
  EXPECT_EQ(wrap("the model is that of step 40, the last", 20), "the model is that of\n  step 40, the last");
  EXPECT_EQ(wrap("step 7:  val/loss 0.25  val/auc 0.5  val/f1 0.5", 30),
            "step 7:  val/loss 0.25\n  val/auc 0.5  val/f1 0.5");
  EXPECT_EQ(wrap("averylongword next", 5), "averylongword\n  next");
  EXPECT_EQ(wrap("one\ntwo three", 7), "one\ntwo\n  three");
  EXPECT_EQ(wrap("", 5), "");
  EXPECT_EQ(wrap("x   ", 2), "x   ") << "blanks at the end take no line of their own";
}

TEST(Wrap, LosesNothingAtAnyWidth) {
  RandomStream random(random_key({20261128}));
  const std::vector<std::string> words = {
      "a", "step", "val/accuracy", "0.9876", "日本語", "é", "averyveryverylongwordofapath/x"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint64_t count = random.below(12); count > 0; --count)
      text += words[random.below(words.size())] +
              std::string(random.below(3) == 0 ? 2 : 1, random.below(9) == 0 ? '\n' : ' ');
    const int columns = 3 + static_cast<int>(random.below(40));
    const auto words_of = [](const std::string& all) {
      std::istringstream in(all);
      return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
    };
    const std::string shown = wrap(text, columns);
    EXPECT_EQ(words_of(shown), words_of(text));
    std::istringstream lines(shown);
    for (std::string line; std::getline(lines, line);) {
      const bool one_word = words_of(line).size() <= 1;
      line.resize(line.find_last_not_of(' ') + 1);
      EXPECT_TRUE(one_word || display_width(line) <= columns) << columns << ": " << line;
    }
  }
}

}  // namespace
}  // namespace sinew::report
