#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/json_text.h"
#include "report/report.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

using namespace testing;

// A simulated terminal. It has the finished lines and the line under the cursor. It breaks lines that are wider than
// the window into rows, as most terminals do, also when the user makes the window narrower; one line is then several
// rows.
class Window {
 public:
  void show(std::string_view text) {
    all += text;
    while (!text.empty()) text.remove_prefix(take(text));
  }
  // The user resizes the window.
  void resize(size_t columns) { columns_ = columns; }
  std::vector<std::string> done;
  std::string current, all;

 private:
  // Shows a character or a control sequence. Returns its length.
  size_t take(std::string_view text) {
    if (text[0] == '\r') {
      column_ = column_ == 0 ? 0 : (column_ - 1) / columns_ * columns_;  // the beginning of the row
    } else if (text[0] == '\n') {
      done.push_back(current);
      current.clear();
      column_ = 0;
    } else if (text.starts_with("\x1b[K")) {  // erases the rest of the row
      const size_t row_end = (column_ / columns_ + 1) * columns_;
      if (row_end >= current.size()) current.resize(std::min(current.size(), column_));
      return 3;
    } else if (text.starts_with("\x1b[J")) {
      current.resize(std::min(current.size(), column_));
      return 3;
    } else if (text.starts_with("\x1b[") && text.find('A') < 5) {
      const auto rows = static_cast<size_t>(std::stoi(std::string(text.substr(2))));
      EXPECT_GE(column_, rows * columns_) << "the cursor goes into the lines above";
      column_ -= std::min(column_, rows * columns_);
      return text.find('A') + 1;
    } else {
      if (column_ >= current.size()) current.resize(column_ + 1, ' ');
      current[column_++] = text[0];
    }
    return 1;
  }

  size_t column_ = 0, columns_ = 1000;
};

struct Bench {
  ReporterOptions options() {
    ReporterOptions options;
    options.directory = directory.path;
    options.output = [this](std::string_view text) { terminal.show(text); };
    options.errors = [this](std::string_view text) {
      errors += text;
      if (errors_on_terminal && on_terminal) terminal.show(text);
    };
    options.terminal = [this](int descriptor) {
      const bool is_one = on_terminal && (descriptor == STDOUT_FILENO || errors_on_terminal);
      return is_one ? terminal_kind : Terminal();
    };
    options.format = options_.format;
    options.tensorboard = options_.tensorboard;
    options.ledger = true;
    options.resumed_at = options_.resumed_at;
    return options;
  }
  Reporter make() { return Reporter(options(), system_disk(), clock); }
  std::vector<nlohmann::ordered_json> log() const {
    std::vector<nlohmann::ordered_json> lines;
    std::istringstream text(read_file(directory / "log.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::ordered_json::parse(line));
    return lines;
  }

  TemporaryDirectory directory;
  FakeClock clock;
  Window terminal;
  std::string errors;
  bool on_terminal = false, errors_on_terminal = true;
  Terminal terminal_kind{.present = true, .moves_cursor = true, .columns = 80, .rows = 24};
  ReporterOptions options_;
};

Progress at(int64_t step, double loss = 0.5) {
  Progress progress;
  progress.step = Step(step);
  progress.total_steps = 100;
  progress.shown = {{"loss", loss}};
  return progress;
}

TEST(Reporter, live_line_is_redrawn_in_place_at_most_ten_times_a_second) {
  Bench bench;
  bench.on_terminal = true;
  {
    Reporter reporter = bench.make();
    for (int step = 1; step <= 1000; ++step) {
      reporter.progress(at(step));
      bench.clock.now += 0.001;
    }
    EXPECT_TRUE(bench.terminal.done.empty());
    const auto drawn = std::count(bench.terminal.all.begin(), bench.terminal.all.end(), '\r');
    EXPECT_GE(drawn, 9);
    EXPECT_LE(drawn, 11);
    reporter.finish(true);
  }
  ASSERT_EQ(bench.terminal.done.size(), 1U);  // the last live line stays on the screen
  EXPECT_EQ(bench.terminal.done[0], "step 1000/100 [##########]  loss 0.5000");
  EXPECT_EQ(bench.terminal.current, "");
}

TEST(Reporter, messages_appear_above_the_live_line) {
  Bench bench;
  bench.on_terminal = true;
  Reporter reporter = bench.make();
  reporter.say(Level::info, "start", "starts");
  reporter.progress(at(1));
  reporter.say(Level::info, "eval", "val/accuracy 0.9");
  reporter.say(Level::warning, "slow", "data is slow");
  EXPECT_EQ(bench.terminal.done, (std::vector<std::string>{"starts", "val/accuracy 0.9", "warning: data is slow"}));
  EXPECT_EQ(bench.terminal.current, "step   1/100 [----------]  loss 0.5000");
  EXPECT_EQ(bench.errors, "warning: data is slow\n");
}

TEST(Reporter, messages_on_a_terminal_break_between_words) {
  Bench bench;
  bench.on_terminal = true;  // 80 columns
  Reporter reporter = bench.make();
  const std::string metrics = "step 10:  val/accuracy 0.9000  val/auc 0.9500  val/f1 0.8990  val/loss 0.2500  (best)";
  reporter.say(Level::info, "evaluation", metrics);
  reporter.say(Level::warning, "slow", std::string(15, 'x') + " " + std::string(60, 'y') + " zzz");
  EXPECT_EQ(
      bench.terminal.done,
      (std::vector<std::string>{"step 10:  val/accuracy 0.9000  val/auc 0.9500  val/f1 0.8990  val/loss 0.2500",
                                "  (best)", "warning: " + std::string(15, 'x'), "  " + std::string(60, 'y') + " zzz"}));
  EXPECT_EQ(bench.log().at(0).at("text"), metrics) << "the file has whole sentences";
}

TEST(Reporter, a_narrower_window_keeps_one_live_line) {
  Bench bench;
  bench.on_terminal = true;
  bench.terminal_kind.columns = 120;
  Reporter reporter = bench.make();
  Progress progress = at(1);
  for (const char* name : {"val/accuracy", "val/auc", "val/f1"}) progress.shown[name] = 0.5;
  const auto resize = [&](int columns) {
    bench.terminal_kind.columns = columns;
    bench.terminal.resize(static_cast<size_t>(columns));
    bench.clock.now += 1;
    ++progress.step.value;
  };
  reporter.progress(progress);
  EXPECT_EQ(bench.terminal.current,
            "step   1/100 [----------]  loss 0.5000  val/accuracy 0.5000  val/auc 0.5000  val/f1 0.5000");
  resize(60);
  reporter.progress(progress);
  EXPECT_EQ(bench.terminal.current, "step   2/100  loss 0.5000  val/accuracy 0.5000");
  resize(30);
  reporter.say(Level::info, "eval", "val/accuracy 0.9");
  EXPECT_EQ(bench.terminal.current, "step   2/100  loss 0.5000") << "the line that is drawn again fits, too";
  resize(20);
  reporter.say(Level::warning, "slow", "slow");
  EXPECT_EQ(bench.terminal.current, "step   2/100");
  resize(120);
  reporter.progress(progress);
  EXPECT_EQ(bench.terminal.done, (std::vector<std::string>{"val/accuracy 0.9", "warning: slow"}));
  EXPECT_EQ(bench.terminal.current,
            "step   5/100 [----------]  loss 0.5000  val/accuracy 0.5000  val/auc 0.5000  val/f1 0.5000");
  resize(33);
  reporter.finish(true);
  EXPECT_EQ(bench.terminal.done.back(), "step   5/100  loss 0.5000");
}

TEST(Reporter, the_echo_of_a_key_does_not_stay_behind_the_live_line) {
  Bench bench;
  bench.on_terminal = true;
  bench.terminal.resize(80);
  Reporter reporter = bench.make();
  Progress progress = at(1);
  for (const char* name : {"val/accuracy", "val/auc", "val/f1"}) progress.shown[name] = 0.5;
  reporter.progress(progress);
  bench.terminal.show("^C");
  reporter.finish(true);
  EXPECT_EQ(
      bench.terminal.done,
      (std::vector<std::string>{"step   1/100  loss 0.5000  val/accuracy 0.5000  val/auc 0.5000  val/f1 0.5000"}));
}

TEST(Reporter, a_run_that_goes_on_elsewhere_leaves_no_live_line) {
  Bench bench;
  bench.on_terminal = true;
  bench.make().progress(at(1));
  EXPECT_TRUE(bench.terminal.done.empty());
  EXPECT_EQ(bench.terminal.current, "");
}

TEST(Reporter, errors_in_a_file_are_plain_although_stdout_is_a_terminal) {
  Bench bench;
  bench.on_terminal = true;
  bench.errors_on_terminal = false;
  bench.terminal_kind.color = true;
  Reporter reporter = bench.make();
  reporter.progress(at(1));
  const std::string before = bench.terminal.all, text(100, 'x');
  reporter.say(Level::warning, "slow", text + " " + text);
  EXPECT_EQ(bench.errors, "warning: " + text + " " + text + "\n");
  EXPECT_EQ(bench.terminal.all, before);
}

TEST(Reporter, errors_on_a_terminal_are_broken_although_stdout_is_a_file) {
  Bench bench;
  ReporterOptions options = bench.options();
  options.terminal = [&](int descriptor) {
    return descriptor == STDERR_FILENO ? Terminal{true, true, true, 40, 24} : Terminal();
  };
  Reporter reporter(options, system_disk(), bench.clock);
  const std::string text(30, 'x');
  reporter.progress(at(1));
  reporter.say(Level::warning, "slow", text + " " + text);
  reporter.say(Level::info, "fast", text + " " + text);
  reporter.say(Level::error, "long", std::string(38, 'y'));
  EXPECT_EQ(bench.errors, "\x1b[33mwarning:\x1b[0m " + text + "\n  " + text + "\n\x1b[31merror:\x1b[0m\n  " +
                              std::string(38, 'y') + "\n");
  EXPECT_EQ(bench.terminal.all, "step   1/100  loss 0.5000\n" + text + " " + text + "\n");
}

TEST(Reporter, a_dumb_terminal_gets_plain_lines_that_fit) {
  Bench bench;
  bench.on_terminal = true;
  bench.terminal_kind = {.present = true, .columns = 40, .rows = 24};
  Reporter reporter = bench.make();
  Progress progress = at(1);
  progress.shown["val/accuracy"] = 0.5;
  reporter.progress(progress);
  reporter.say(Level::info, "eval", std::string(30, 'x') + " " + std::string(30, 'y'));
  reporter.finish(true);
  EXPECT_EQ(bench.terminal.all,
            "step   1/100  loss 0.5000\n" + std::string(30, 'x') + "\n  " + std::string(30, 'y') + "\n");
}

TEST(BesideRun, TakesThePlaceOfTheLiveLineAndBreaksBetweenWords) {
  const Terminal narrow{.present = true, .moves_cursor = true, .columns = 30, .rows = 24};
  const std::string text = "sinew: worker 1 was killed by SIGKILL";
  EXPECT_EQ(text_beside_run(text, narrow, true), "\r\x1b[Ksinew: worker 1 was killed by\n  SIGKILL\n");
  EXPECT_EQ(text_beside_run(text, narrow, false), "sinew: worker 1 was killed by\n  SIGKILL\n");
  EXPECT_EQ(text_beside_run(text, {}, false), text + "\n");
}

TEST(Reporter, a_shorter_live_line_erases_a_longer_one) {
  Bench bench;
  bench.on_terminal = true;
  Reporter reporter = bench.make();
  Progress progress = at(1);
  progress.shown["val/accuracy"] = 0.5;
  reporter.progress(progress);
  bench.clock.now += 1;
  reporter.progress(at(2));
  EXPECT_EQ(bench.terminal.current, "step   2/100 [----------]  loss 0.5000");
}

TEST(Reporter, without_a_terminal_prints_plain_lines_and_no_carriage_return) {
  Bench bench;
  {
    Reporter reporter = bench.make();
    for (int step = 1; step <= 100; ++step) {
      reporter.progress(at(step));
      bench.clock.now += 0.2;
    }
    reporter.say(Level::error, "oops", "it broke\x1b[2J");
    reporter.finish(false);
  }
  EXPECT_EQ(bench.terminal.done, (std::vector<std::string>{"step   1/100  loss 0.5000", "step  26/100  loss 0.5000",
                                                           "step  51/100  loss 0.5000", "step  76/100  loss 0.5000",
                                                           "step 100/100  loss 0.5000"}));
  EXPECT_EQ(bench.terminal.all.find('\r'), std::string::npos);
  EXPECT_EQ(bench.terminal.all.find('\x1b'), std::string::npos);
  EXPECT_EQ(bench.errors, "error: it broke?[2J\n");
}

TEST(Reporter, uses_colour_only_on_terminals) {
  for (const bool terminal : {true, false}) {
    for (const bool color : {true, false}) {
      Bench bench;
      bench.on_terminal = terminal;
      bench.terminal_kind.color = color;
      Reporter reporter = bench.make();
      reporter.progress(at(1));
      reporter.say(Level::warning, "x", "slow");
      EXPECT_EQ((bench.terminal.all + bench.errors).find("\x1b[0m") != std::string::npos, terminal && color);
    }
  }
}

TEST(Reporter, json_output_has_one_object_a_line) {
  Bench bench;
  bench.options_.format = LogFormat::json;
  bench.on_terminal = true;  // JSON output on a terminal
  {
    Reporter reporter = bench.make();
    reporter.say(Level::warning, "skip", "bad \"sample\"\n\xff", {{"val/loss", 0.25}, {"val/r2", NAN}});
    reporter.progress(at(3, NAN));
    reporter.finish(true);
  }
  ASSERT_EQ(bench.terminal.done.size(), 2U);
  EXPECT_EQ(bench.errors, "");
  const nlohmann::ordered_json said = nlohmann::ordered_json::parse(bench.terminal.done[0]),
                               progress = nlohmann::ordered_json::parse(bench.terminal.done[1]);
  EXPECT_EQ(said["level"], "warning");
  EXPECT_EQ(said["event"], "skip");
  EXPECT_EQ(said["text"], "bad \"sample\"\n\xEF\xBF\xBD");
  EXPECT_EQ(said["metrics"]["val/loss"], 0.25);
  EXPECT_EQ(said["metrics"]["val/r2"], "NaN");
  EXPECT_EQ(said["ts"], "2025-11-21T04:01:40.000Z");
  EXPECT_EQ(progress["event"], "progress");
  EXPECT_EQ(progress["step"], 3);
  EXPECT_EQ(progress["total_steps"], 100);
  EXPECT_EQ(progress["metrics"]["loss"], "NaN");
}

TEST(Reporter, messages_are_logged_with_the_step) {
  Bench bench;
  Reporter reporter = bench.make();
  reporter.say(Level::info, "start", "starts");
  reporter.metrics(Step(12), 1, {{"a", 1}});
  reporter.say(Level::error, "nan", "loss is NaN", {{"loss", 2}});
  const std::vector<nlohmann::ordered_json> log = bench.log();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_FALSE(log[0].contains("step"));
  EXPECT_EQ(log[1]["step"], 12);
  EXPECT_EQ(log[1]["metrics"]["loss"], 2);
}

TEST(Reporter, records_reach_the_files_within_a_second) {
  Bench bench;
  Reporter reporter = bench.make();
  reporter.metrics(Step(1), 64, {{"a", 1}});
  reporter.ledger(Step(1), {1, 2});
  bench.clock.now += 1;
  reporter.progress(at(2));  // any call flushes
  EXPECT_EQ(read_metrics(bench.directory / "metrics.jsonl").size(), 1U);
  EXPECT_EQ(read_file(bench.directory / "ledger.jsonl"),
            "{\"step\":1,\"digest\":\"00000000000000010000000000000002\"}\n");
  reporter.metrics(Step(2), 128, {{"a", 2}});
  reporter.flush();
  EXPECT_EQ(read_metrics(bench.directory / "metrics.jsonl").back().samples, 128);
}

// Reads event files as a TensorBoard reader does that knows session starts. Returns tag -> step -> value.
std::map<std::string, std::map<int64_t, float>> scalars_in(const std::string& directory) {
  std::map<std::string, std::map<int64_t, float>> scalars;
  bool started = false;
  for (const std::string& path : event_files_in(directory)) {
    for (const Wire& event : read_tfrecords(read_file(path))) {
      const int64_t step = event.fields.contains(2) ? static_cast<int64_t>(event.integer(2)) : 0;
      if (event.fields.contains(7) && std::exchange(started, true)) {
        for (auto& [tag, values] : scalars) values.erase(values.lower_bound(step), values.end());
      }
      if (!event.fields.contains(5)) continue;
      for (const Wire& value : event.in(5).all(1)) {
        if (value.fields.contains(2)) scalars[value.one(1)][step] = value.as<float>(2);
      }
    }
  }
  return scalars;
}

TEST(Reporter, a_resumed_run_replaces_the_steps_it_repeats) {
  Bench bench;
  const auto train = [&](int64_t from, int64_t to, double value) {
    Reporter reporter = bench.make();
    reporter.hparams({{"lr", "0.1"}});
    for (int64_t step = from; step <= to; ++step) {
      reporter.metrics(Step(step), step * 10, {{"train/loss", value}});
      reporter.ledger(Step(step), {1, static_cast<uint64_t>(step)});
    }
    reporter.say(Level::info, "end", "ends");
    reporter.finish(to == 30);
  };
  train(1, 20, 1);
  // a kill has cut this line off
  std::ofstream(bench.directory / "metrics.jsonl", std::ios::app) << "{\"step\":21,\"tr";
  bench.options_.resumed_at = Step(12);
  train(13, 25, 2);
  bench.options_.resumed_at = Step(20);
  train(21, 30, 3);

  const auto records = read_metrics(bench.directory / "metrics.jsonl");
  const auto scalars = scalars_in(bench.directory.path).at("train/loss");
  ASSERT_EQ(records.size(), 30U);
  ASSERT_EQ(scalars.size(), 30U);
  for (int64_t step = 1; step <= 30; ++step) {
    const double value = step <= 12 ? 1 : step <= 20 ? 2 : 3;
    EXPECT_EQ(records[static_cast<size_t>(step - 1)].step, step);
    EXPECT_EQ(records[static_cast<size_t>(step - 1)].values.at("train/loss"), value);
    EXPECT_EQ(scalars.at(step), value);
  }
  const std::string ledger = read_file(bench.directory / "ledger.jsonl");
  EXPECT_EQ(std::count(ledger.begin(), ledger.end(), '\n'), 30);
  EXPECT_EQ(bench.log().size(), 3U);  // the log is never cut
  int ends = 0;
  std::string all;
  for (const std::string& path : event_files_in(bench.directory.path)) all += read_file(path);
  for (size_t i = all.find("session_end_info"); i != std::string::npos; i = all.find("session_end_info", i + 1)) ++ends;
  EXPECT_EQ(ends, 1);  // only the end of the attempt that finished
}

TEST(Reporter, a_full_disk_gives_one_warning_and_stops_nothing) {
  Bench bench;
  bench.options_.tensorboard = false;
  Reporter reporter = bench.make();
  std::filesystem::create_symlink("/dev/full", bench.directory / "metrics.jsonl");
  for (int step = 1; step <= 50; ++step) {
    reporter.metrics(Step(step), step, {{"a", 1}});
    reporter.progress(at(step));
    bench.clock.now += 1;
  }
  EXPECT_NE(reporter.trouble().find("No space left"), std::string::npos) << reporter.trouble();
  reporter.flush();
  size_t told = 0;
  for (const nlohmann::ordered_json& line : bench.log()) told += line["event"] == "disk" ? 1 : 0;
  EXPECT_EQ(told, 1U);
  EXPECT_NE(bench.errors.find("training continues"), std::string::npos);
}

TEST(Reporter, survives_the_loss_of_its_directory) {
  Bench bench;
  Reporter reporter = bench.make();
  std::filesystem::remove_all(bench.directory.path);
  for (int step = 1; step <= 5; ++step) {
    reporter.metrics(Step(step), step, {{"a", 1}});
    reporter.ledger(Step(step), {});
    reporter.say(Level::info, "x", "goes on");
    bench.clock.now += 1;
  }
  EXPECT_NE(reporter.trouble(), "");
  reporter.finish(true);
}

TEST(Reporter, trouble_ends_when_the_file_can_be_written) {
  Bench bench;
  bench.options_.tensorboard = false;
  Reporter reporter = bench.make();
  std::filesystem::create_directory(bench.directory / "metrics.jsonl");  // a directory in place of the file
  reporter.metrics(Step(1), 1, {{"a", 1}});
  reporter.flush();
  EXPECT_NE(reporter.trouble().find("metrics.jsonl"), std::string::npos);
  std::filesystem::remove(bench.directory / "metrics.jsonl");
  reporter.metrics(Step(2), 2, {{"a", 2}});
  reporter.flush();
  EXPECT_EQ(reporter.trouble(), "");
  EXPECT_EQ(read_metrics(bench.directory / "metrics.jsonl").size(), 2U);
}

std::map<std::string, std::string> files_in(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files[entry.path().filename().string()] = read_file(entry.path().string());
  return files;
}

TEST(Reporter, while_may_write_is_false_no_file_changes_and_no_record_is_lost) {
  for (const bool tensorboard : {true, false}) {
    Bench bench;
    bench.options_.tensorboard = tensorboard;
    {
      Reporter reporter = bench.make();
      for (int64_t step = 1; step <= 20; ++step) reporter.metrics(Step(step), step, {{"train/loss", 1}});
      reporter.hparams({{"lr", "1"}});
      reporter.finish(true);
    }
    std::ofstream(bench.directory / "metrics.jsonl", std::ios::app) << "{\"step\":21,\"tr";
    const auto before = files_in(bench.directory.path);
    bool turn = false;
    bench.options_.resumed_at = Step(12);
    ReporterOptions options = bench.options();
    options.may_write = [&] { return turn; };
    Reporter reporter(options, system_disk(), bench.clock);
    const auto train_step = [&](int64_t step) {
      reporter.metrics(Step(step), step, {{"train/loss", 2}});
      reporter.ledger(Step(step), {1, static_cast<uint64_t>(step)});
      reporter.say(Level::info, "x", "goes on");
      bench.clock.now += 1;
      reporter.flush();
    };
    for (int64_t step = 13; step <= 16; ++step) train_step(step);
    EXPECT_EQ(files_in(bench.directory.path), before);
    EXPECT_EQ(reporter.trouble(), "");
    EXPECT_EQ(bench.errors, "");
    EXPECT_EQ(bench.terminal.done.size(), 4U) << "the screen is nobody else's";
    turn = true;
    train_step(17);
    const auto records = read_metrics(bench.directory / "metrics.jsonl");
    ASSERT_EQ(records.size(), 17U);
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].step, static_cast<int64_t>(i) + 1);
      EXPECT_EQ(records[i].values.at("train/loss"), i < 12 ? 1 : 2);
    }
    EXPECT_EQ(bench.log().size(), 5U);
    if (tensorboard) {
      EXPECT_EQ(scalars_in(bench.directory.path).at("train/loss").size(), 17U);
    }
    turn = false;
    const auto then = files_in(bench.directory.path);
    train_step(18);
    reporter.finish(true);
    EXPECT_EQ(files_in(bench.directory.path), then);
  }
}

TEST(Reporter, records_of_a_process_that_never_may_write_are_lost_without_harm) {
  Bench bench;
  {
    ReporterOptions options = bench.options();
    options.may_write = [] { return false; };
    Reporter reporter(options, system_disk(), bench.clock);
    reporter.metrics(Step(1), 1, {{"a", 1}});
  }
  EXPECT_EQ(files_in(bench.directory.path).size(), 0U);
}

TEST(Reporter, without_tensorboard_writes_no_event_file) {
  Bench bench;
  bench.options_.tensorboard = false;
  {
    Reporter reporter = bench.make();
    reporter.hparams({{"lr", "1"}});
    reporter.metrics(Step(1), 1, {{"a", 1}});
    reporter.finish(true);
  }
  EXPECT_TRUE(event_files_in(bench.directory.path).empty());
}

}  // namespace
}  // namespace sinew::report
