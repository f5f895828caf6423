// Tests the end of a run as a member of a group: it waits for a lease, for a limited time, and for nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "rundir/rundir.h"
#include "train/small_run.h"

namespace sinew::train {
namespace {

// Counts the checks of membership, so that a test sees how often the run tried to end.
class Asked final : public Alone {
 public:
  explicit Asked(std::function<bool()> leased) : leased_(std::move(leased)) {}
  static inline int asked = 0;

 private:
  bool may_write() const override { return leased_(); }
  void check_membership() const override { ++asked; }
  std::function<bool()> leased_;
};

// The system's disk, on which no file can be created, or put in its place, whose path has this part.
class RefusingDisk final : public Disk {
 public:
  explicit RefusingDisk(std::string part) : part_(std::move(part)) {}
  std::unique_ptr<File> create(const std::string& path) override {
    check(path);
    return disk_.create(path);
  }
  std::unique_ptr<File> append(const std::string& path) override { return disk_.append(path); }
  std::vector<std::byte> read(const std::string& path) override { return disk_.read(path); }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    return disk_.read_at(path, offset, out);
  }
  std::vector<Entry> list(const std::string& directory) override { return disk_.list(directory); }
  bool exists(const std::string& path) override { return disk_.exists(path); }
  uint64_t size(const std::string& path) override { return disk_.size(path); }
  void make_directories(const std::string& path) override { disk_.make_directories(path); }
  void make_directory(const std::string& path) override { disk_.make_directory(path); }
  void symlink(const std::string& target, const std::string& path) override { disk_.symlink(target, path); }
  void sync_directory(const std::string& path) override { disk_.sync_directory(path); }
  void drop_cache(const std::string& path) override { disk_.drop_cache(path); }
  void rename(const std::string& from, const std::string& to) override {
    check(to);
    disk_.rename(from, to);
  }
  void remove_file(const std::string& path) override { disk_.remove_file(path); }
  void remove_all(const std::string& path) override { disk_.remove_all(path); }

 private:
  void check(const std::string& path) const {
    if (path.find(part_) != std::string::npos) throw DiskError("cannot write " + path + ": File too large", "", EFBIG);
  }
  const std::string part_;
  Disk& disk_ = system_disk();
};

class RunEnd : public SmallRun {
 protected:
  RunEnd() { job_.trainer.max_duration = {1, spec::Duration::Unit::epochs}; }

  void join_with(std::function<bool()> leased) {
    Asked::asked = 0;
    join_ = [leased = std::move(leased)](const Identity&) { return std::make_unique<Asked>(leased); };
  }
  // Runs the job as a member and returns the code and sentence of its failure, or an empty text.
  std::string failure_in(const std::string& name) {
    try {
      run_in(name);
    } catch (const Error& error) {
      return to_string(error);
    }
    return "";
  }
};

// The disk refuses the run's lines for good, as with `ulimit -f`. Waiting for a lease would not help, and the model is
// worth more than its ledger. A warning names the file, and the run ends with its checkpoint and its model.
TEST_F(RunEnd, LinesThatTheDiskRefusesHoldUpNeitherTheEndNorTheModel) {
  ledger_ = true;
  std::filesystem::create_directories(folder_ + "/run/ledger.jsonl");  // a directory, so no line can be written
  join_with([] { return true; });
  EXPECT_EQ(failure_in("run"), "");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/run/model/model.safetensors"));
  EXPECT_LT(Asked::asked, 5);
  const auto log = lines_of("log.jsonl");
  EXPECT_TRUE(std::ranges::any_of(log, [](const auto& line) { return line.at("event") == "records_lost"; }));
}

TEST_F(RunEnd, ACheckpointThatTheDiskRefusesEndsTheRunAtOnce) {
  RefusingDisk disk("/.saving-");
  disk_ = &disk;
  join_with([] { return true; });
  const std::string failure = failure_in("run");
  EXPECT_NE(failure.find("TRAIN_SAVE_FAILED"), std::string::npos) << failure;
  EXPECT_NE(failure.find("File too large"), std::string::npos) << failure;
  EXPECT_LT(Asked::asked, 5);
}

TEST_F(RunEnd, WaitsForALeaseAndSavesEverything) {
  int looks = 0;
  join_with([&looks] { return ++looks > 200; });
  EXPECT_EQ(run_in("run").exit_code, 0);
  EXPECT_GT(Asked::asked, 10);
  EXPECT_TRUE(rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json")));
}

// A run without report.json counts as interrupted, so it must not end as if it were done.
TEST_F(RunEnd, AReportThatTheDiskRefusesIsAnError) {
  RefusingDisk disk("report.json");
  disk_ = &disk;
  EXPECT_EQ(run_in("run").exit_code, 1);
  disk_ = &system_disk();
  EXPECT_EQ(run_in("run", true).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(run_directory_ + "/report.json"));
}

// report.html is there for people. A disk that refuses it costs a warning, and neither the report nor the exit code.
TEST_F(RunEnd, APageThatTheDiskRefusesIsAWarning) {
  RefusingDisk disk("report.html");
  disk_ = &disk;
  EXPECT_EQ(run_in("run").exit_code, 0);
  EXPECT_EQ(rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json"))->status, "done");
  EXPECT_NE(read_text(system_disk(), run_directory_ + "/log.jsonl").find("page_failed"), std::string::npos);
}

TEST_F(RunEnd, LeavesAPageAndTheEvaluationOfItsModel) {
  job_.data.split_val = 0.25;
  EXPECT_EQ(run_in("run").exit_code, 0);
  const std::string page = read_text(system_disk(), run_directory_ + "/report.html");
  EXPECT_NE(page.find("</html>"), std::string::npos);
  const auto kept = report::parse_evaluation(read_text(system_disk(), run_directory_ + "/eval-val.json"));
  ASSERT_TRUE(kept);
  const rundir::Outcome outcome = *rundir::parse_outcome(read_text(system_disk(), run_directory_ + "/report.json"));
  EXPECT_EQ(kept->step, outcome.steps);
  EXPECT_EQ(kept->metrics.at("accuracy"), outcome.last.at("val/accuracy"));
  ASSERT_EQ(kept->confusion.size(), 4U);
  const int64_t right = kept->confusion[0] + kept->confusion[3];
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / static_cast<double>(kept->samples), kept->metrics.at("accuracy"));
  ASSERT_FALSE(kept->thresholds.empty());
  EXPECT_EQ(kept->thresholds.back().true_positives, kept->confusion[2] + kept->confusion[3]);
}

TEST_F(RunEnd, SaysThatNoLeaseCame) {
  join_with([] { return false; });
  const std::string failure = failure_in("run");
  EXPECT_NE(failure.find("TRAIN_SAVE_FAILED"), std::string::npos) << failure;
  EXPECT_NE(failure.find("coordinator"), std::string::npos) << failure;
  EXPECT_FALSE(std::filesystem::exists(run_directory_ + "/report.json"));
}

}  // namespace
}  // namespace sinew::train
