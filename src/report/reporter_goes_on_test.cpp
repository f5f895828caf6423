// Tests a Reporter that continues where another process or attempt stopped. It must neither lose nor repeat a record.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/write_fence.h"
#include "report/report.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

using namespace testing;

struct Files {
  ReporterOptions options() {
    ReporterOptions options;
    options.directory = directory.path;
    options.output = options.errors = [](std::string_view) {};
    options.ledger = true;
    return options;
  }
  // Returns the options of a process that becomes the leader.
  ReporterOptions successor() {
    ReporterOptions options = this->options();
    options.takes_over = true;
    return options;
  }
  std::vector<MetricRecord> records() const { return read_metrics(directory / "metrics.jsonl"); }
  // Returns the first step of each TensorBoard session, in the order of the files.
  std::vector<uint64_t> starts() const {
    std::vector<uint64_t> steps;
    for (const std::string& path : event_files_in(directory.path)) {
      for (const Wire& event : read_tfrecords(read_file(path))) {
        if (event.fields.contains(7)) steps.push_back(event.fields.contains(2) ? event.integer(2) : 0);
      }
    }
    return steps;
  }
  TemporaryDirectory directory;
  FakeClock clock;
};

// Writes the records of a first leader, which trained to step 5, evaluated there and died.
void first_lead(Files& files) {
  Reporter reporter(files.options(), system_disk(), files.clock);
  for (int64_t step = 1; step <= 4; ++step) reporter.metrics(Step(step), step, {{"train/loss", 1}});
  reporter.metrics(Step(5), 5, {{"train/loss", 1}, {"val/loss", 2}});
}

TEST(Reporter, a_new_leader_starts_after_the_written_records) {
  Files files;
  first_lead(files);
  Reporter reporter(files.successor(), system_disk(), files.clock);
  reporter.metrics(Step(6), 6, {{"train/loss", 3}});
  reporter.flush();
  EXPECT_EQ(files.starts(), (std::vector<uint64_t>{0, 6}));
  EXPECT_EQ(files.records().size(), 6U);
}

TEST(Reporter, a_new_leader_writes_missing_records_and_none_twice) {
  Files files;
  first_lead(files);
  Reporter reporter(files.successor(), system_disk(), files.clock);
  reporter.metrics(Step(4), 4, {{"train/loss", 1}});
  reporter.metrics(Step(5), 5, {{"train/loss", 1}, {"val/loss", 2}, {"throughput/samples_per_sec", 7}});
  reporter.metrics(Step(5), 5, {{"test/loss", 4}});
  reporter.metrics(Step(3), 3, {{"test/loss", 5}});  // the test uses the best weights, which are those of step 3
  reporter.flush();
  const auto records = files.records();
  ASSERT_EQ(records.size(), 7U);
  EXPECT_EQ(records[5].values, (Metrics{{"test/loss", 4}}));
  EXPECT_EQ(records[6].step, 3);
  EXPECT_EQ(records[6].values, (Metrics{{"test/loss", 5}}));
}

// The first process was suspended and does not know that another one has taken over.
TEST(Reporter, a_replaced_process_changes_no_file) {
  Files files;
  WriteFence first_disk(system_disk(), files.directory.path, 1), second_disk(system_disk(), files.directory.path, 2);
  Reporter first(files.options(), first_disk, files.clock);
  const auto write = [](Reporter& reporter, int64_t step) {
    reporter.metrics(Step(step), step, {{"train/loss", 1}});
    reporter.ledger(Step(step), {1, static_cast<uint64_t>(step)});
    reporter.say(Level::info, "x", "step");
    reporter.flush();
  };
  for (int64_t step = 1; step <= 3; ++step) write(first, step);
  second_disk.take_over();
  Reporter second(files.successor(), second_disk, files.clock);
  const auto contents = [&] {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(files.directory.path)) {
      if (entry.is_regular_file()) all[entry.path().filename()] = read_file(entry.path());
    }
    return all;
  };
  const auto before = contents();
  EXPECT_EQ(before.size(), 5U) << "metrics, ledger, log and two files of events";
  write(first, 4);
  EXPECT_EQ(contents(), before);
  for (int64_t step = 3; step <= 5; ++step) write(second, step);
  EXPECT_EQ(files.records().size(), 5U);
  EXPECT_EQ(std::ranges::count(read_file(files.directory / "ledger.jsonl"), '\n'), 5);
  // A replaced reporter that opens the files only now changes nothing, either.
  const auto now = contents();
  EXPECT_THROW(Reporter(files.successor(), first_disk, files.clock), WriterReplaced);
  EXPECT_EQ(contents(), now);
}

TEST(Reporter, a_finished_run_that_is_resumed_tests_once) {
  for (const int64_t tested_at : {5, 3}) {
    Files files;
    first_lead(files);
    for (int attempt = 0; attempt < 3; ++attempt) {
      ReporterOptions options = files.options();
      options.resumed_at = Step(5);
      Reporter reporter(options, system_disk(), files.clock);
      reporter.metrics(Step(tested_at), tested_at, {{"test/accuracy", 0.5}, {"test/loss", 4}});
      reporter.finish(true);
    }
    EXPECT_EQ(files.records().size(), 6U) << tested_at;
  }
}

TEST(Reporter, records_that_a_resume_cut_off_are_written_again) {
  Files files;
  first_lead(files);
  ReporterOptions options = files.options();
  options.resumed_at = Step(3);
  Reporter reporter(options, system_disk(), files.clock);
  for (int64_t step = 4; step <= 5; ++step) reporter.metrics(Step(step), step, {{"train/loss", 9}});
  reporter.flush();
  const auto records = files.records();
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records[4].values, (Metrics{{"train/loss", 9}}));
}

}  // namespace
}  // namespace sinew::report
