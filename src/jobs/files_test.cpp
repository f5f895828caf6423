// Tests the files of a command's run: output files of limited size, the split of output into lines, attempts.jsonl, and
// the checkpoints that a command writes.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/faulty_disk.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/random.h"
#include "jobs/attempt_log.h"
#include "jobs/jobs.h"
#include "jobs/output_file.h"
#include "jobs/streams.h"
#include "rundir/rundir.h"

namespace sinew::jobs {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "sinew-jobs-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Files() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }

  std::string folder_;
};

TEST_F(Files, OutputKeepsTheNewestBytesWithinItsLimit) {
  constexpr uint64_t kMost = 1000;
  RandomStream random(random_key({3}));
  OutputFile file(path("out"), kMost);
  std::string all;
  for (int line = 0; line < 2000; ++line) {
    std::string text = "line " + std::to_string(line) + std::string(random.below(60), 'x') + "\n";
    all += text;
    while (!text.empty()) {  // written in pieces of random sizes
      const size_t n = 1 + random.below(text.size());
      file.write(text.substr(0, n));
      text.erase(0, n);
    }
    const std::string before = text_of(path("out.1")), now = text_of(path("out"));
    ASSERT_LE(now.size(), 2 * kMost);
    ASSERT_TRUE(all.ends_with(before + now));
    ASSERT_TRUE(before.empty() || before.ends_with("\n"));
    ASSERT_GE(before.size() + now.size(), std::min(all.size(), kMost));
  }
  EXPECT_EQ(file.lost_bytes(), 0U);
}

TEST_F(Files, OutputOfOneEndlessLineIsLimited) {
  OutputFile file(path("out"), 1000);
  for (int i = 0; i < 1000; ++i) file.write(std::string(77, 'x'));
  EXPECT_LE(text_of(path("out")).size(), 2100U);
  EXPECT_LE(text_of(path("out.1")).size(), 2100U);
}

TEST_F(Files, OutputWithoutLineEndsStaysWithinTwiceTheLimit) {
  constexpr uint64_t kMost = 1000;
  for (const size_t piece : {77, 999, 1000, 1001, 2500}) {
    const std::string name = "out-" + std::to_string(piece);
    OutputFile file(path(name), kMost);
    std::string all;
    for (int i = 0; i < 20; ++i) {
      const std::string text(piece, static_cast<char>('a' + i));
      all += text;
      file.write(text);
      const std::string before = text_of(path(name + ".1")), now = text_of(path(name));
      ASSERT_LE(before.size(), 2 * kMost) << piece;
      ASSERT_LE(now.size(), 2 * kMost) << piece;
      ASSERT_TRUE(all.ends_with(before + now));
    }
    file.write("\nnext\n");
    EXPECT_TRUE((text_of(path(name + ".1")) + text_of(path(name))).ends_with("\nnext\n"));
    EXPECT_EQ(file.lost_bytes(), 0U);
  }
}

TEST_F(Files, CountsOutputThatCannotBeWritten) {
  OutputFile file(path("no/such/folder"), 1000);
  file.write("12345");
  EXPECT_EQ(file.lost_bytes(), 5U);
}

TEST_F(Files, CountsOutputThatCannotBeRotated) {
  fs::create_directories(path("out.1"));
  OutputFile file(path("out"), 1000);
  for (int i = 0; i < 30; ++i) file.write(std::string(99, 'x') + "\n");
  EXPECT_EQ(text_of(path("out")).size(), 1000U);
  EXPECT_EQ(file.lost_bytes(), 2000U);
  fs::remove(path("out.1"));
  file.write("new\n");
  EXPECT_EQ(text_of(path("out")), "new\n");
}

TEST_F(Files, OutputBeginsAgainAfterItsFileWasRemoved) {
  OutputFile file(path("out"), 100);
  file.write(std::string(99, 'x') + "\n");
  fs::remove(path("out"));
  file.write("new\n");
  EXPECT_EQ(text_of(path("out")), "new\n");
  EXPECT_EQ(file.lost_bytes(), 0U);
}

// Another process writes as fast as this one reads.
TEST_F(Files, TheLastReadEndsWhileAnotherProcessWrites) {
  FileTail tail(path("metrics"));
  write("metrics", "1\n2\n");
  int lines = 0;
  const auto and_another = [&](const Line&) {
    ++lines;
    ASSERT_LT(lines, 10'000);
    std::ofstream(path("metrics"), std::ios::app) << "more\n";
  };
  tail.read(and_another, true);
  EXPECT_EQ(lines, 2);

  int writer = -1;
  lines = 0;
  RankStream stream(path("out"), [&](const Line&) {
    ++lines;
    ASSERT_EQ(::write(writer, "more\n", 5), 5);
  });
  writer = stream.write_end();
  ASSERT_EQ(::write(writer, "one\ntwo\n", 8), 8);
  stream.drain();
  EXPECT_GE(lines, 2);
  EXPECT_EQ(stream.descriptor(), -1);
  ::close(writer);
}

// The run handles signals and limits only between two turns. A slow visitor must therefore end a turn early.
TEST_F(Files, ASlowVisitorEndsATurnAndLosesNoLine) {
  int lines = 0;
  RankStream stream(path("out"), [&](const Line&) { ++lines; });
  std::string text;
  for (int i = 0; i < 6000; ++i) text += "a line\n";
  ASSERT_EQ(::write(stream.write_end(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_TRUE(stream.read(0));
  EXPECT_GT(lines, 0);
  EXPECT_LT(lines, 6000);
  stream.drain();
  EXPECT_EQ(lines, 6000);
  EXPECT_EQ(text_of(path("out")), text);
  ::close(stream.write_end());
}

TEST(LineSplitter, GivesWholeLinesFromPiecesOfAnySize) {
  RandomStream random(random_key({4}));
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (uint64_t n = random.below(200); n > 0; --n) text += random.below(6) == 0 ? '\n' : 'a';
    std::vector<std::string> wanted, got;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) wanted.push_back(line);
    LineSplitter splitter;
    const auto visit = [&](const Line& line) { got.emplace_back(line.text); };
    for (std::string rest = text; !rest.empty();) {
      const size_t n = 1 + random.below(rest.size());
      splitter.add(rest.substr(0, n), visit);
      rest.erase(0, n);
    }
    splitter.finish(visit);
    ASSERT_EQ(got, wanted);
  }
}

TEST(LineSplitter, DistinguishesOverwrittenLines) {
  const std::string text = "\r1%\r\r2%\rdone\nof windows\r\n\r\n\rlast\r";
  for (size_t n = 1; n <= text.size(); ++n) {
    LineSplitter splitter;
    std::string got;
    const auto visit = [&](const Line& line) { got += "[" + std::string(line.text) + (line.overwritten ? "~]" : "]"); };
    for (size_t at = 0; at < text.size(); at += n) splitter.add(std::string_view(text).substr(at, n), visit);
    splitter.finish(visit);
    EXPECT_EQ(got, "[1%~][2%~][done][of windows][][last]") << n;
  }
}

TEST_F(Files, ATailReadsNewLinesAndSurvivesTruncation) {
  write("metrics", "old\n");
  FileTail tail(path("metrics"));
  std::vector<std::string> got;
  const auto visit = [&](const Line& line) { got.emplace_back(line.text); };
  tail.read(visit);
  EXPECT_TRUE(got.empty());
  std::ofstream(path("metrics"), std::ios::app) << "one\ntw";
  tail.read(visit);
  std::ofstream(path("metrics"), std::ios::app) << "o\n";
  tail.read(visit);
  EXPECT_EQ(got, (std::vector<std::string>{"one", "two"}));
  std::ofstream(path("metrics"), std::ios::app) << "tor";
  tail.read(visit);
  write("metrics", "3\n");
  tail.read(visit);
  std::ofstream(path("metrics"), std::ios::app) << "n";
  tail.read(visit);
  fs::remove(path("metrics"));
  tail.read(visit);
  write("other", "four\nfive");
  fs::rename(path("other"), path("metrics"));
  tail.read(visit);
  tail.read(visit, true);
  EXPECT_EQ(got, (std::vector<std::string>{"one", "two", "3", "four", "five"}));
}

TEST_F(Files, AttemptsHaveOneEndEach) {
  AttemptLog log(system_disk(), folder_, system_clock());
  for (const int64_t attempt : {1, 2, 3}) {
    AttemptRecord record;
    record.attempt = attempt;
    record.host = "elsewhere";
    record.mark = "m" + std::to_string(attempt);
    record.groups = {"/no/such/group"};
    log.begin(record);
    if (attempt != 2) log.end(attempt, "crash", "it broke", 1.5);
  }
  std::ofstream(path("attempts.jsonl"), std::ios::app) << R"({"event":"end","att)";  // torn
  const auto open = log.close_interrupted();
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].attempt, 2);
  EXPECT_TRUE(log.close_interrupted().empty());
  const auto all = read_attempts(system_disk(), folder_);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].reason, "crash");
  EXPECT_EQ(all[1].reason, "interrupted");
  EXPECT_EQ(all[2].seconds, 1.5);
  EXPECT_EQ(all[2].groups, (std::vector<std::string>{"/no/such/group"}));
}

// If the sinew process of an attempt was killed, the attempt's time counts for the budget, too.
TEST_F(Files, AnInterruptedAttemptEndsAtItsNewestOutput) {
  AttemptLog log(system_disk(), folder_, system_clock());
  for (const int64_t attempt : {1, 2}) {
    AttemptRecord record;
    record.attempt = attempt;
    record.host = "elsewhere";
    record.began = system_clock().wall_seconds() - (attempt == 1 ? 1000 : -1000);
    log.begin(record);
  }
  write("output/stdout.log", "new\n");
  write("output/stderr.log", "old\n");
  const auto age = std::chrono::seconds(5000);
  fs::last_write_time(path("output/stderr.log"), fs::file_time_type::clock::now() - age);
  fs::last_write_time(path("output/stdout.log"), fs::file_time_type::clock::now() - age / 10);
  const auto open = log.close_interrupted();
  ASSERT_EQ(open.size(), 2U);
  EXPECT_NEAR(open[0].seconds, 500, 100);
  EXPECT_EQ(open[1].seconds, 0) << "a clock that was set back";
  EXPECT_EQ(read_attempts(system_disk(), folder_).at(0).seconds, open[0].seconds);
}

TEST_F(Files, AnAttemptThatBeganIsDurable) {
  FaultyDisk disk;
  disk.make_directories("/run");
  disk.sync_directory("/");
  AttemptLog log(disk, "/run", system_clock());
  AttemptRecord record;
  record.attempt = 1;
  log.begin(record);
  disk.crash(std::nullopt, true);
  EXPECT_EQ(read_attempts(disk, "/run").size(), 1U);
}

TEST_F(Files, TriesAgainToKillAnUnkillableProcess) {
  AttemptLog log(system_disk(), folder_, system_clock());
  AttemptRecord record;
  record.attempt = 1;
  record.host = host_name();
  record.boot = boot_id();
  record.mark = "files-test-" + folder_;
  log.begin(record);
  log.end(1, "crash", "it broke", 1, true);
  ASSERT_TRUE(read_attempts(system_disk(), folder_).at(0).unkillable);
  ::setenv("SINEW_JOB_ID", record.mark.c_str(), 1);
  ProcessOptions options;
  options.command = {"/bin/sleep", "1000"};
  Process process(options);
  ::unsetenv("SINEW_JOB_ID");
  EXPECT_TRUE(log.close_interrupted().empty()) << "it has its end";
  EXPECT_EQ(process.wait(60), (ProcessEnd{0, SIGKILL})) << "it was found by its mark";
}

TEST_F(Files, WaitsForTheReapersOfADeadSinew) {
  auto held = rundir::RunLock::take(folder_);  // held as by the reapers of a killed sinew
  ASSERT_TRUE(held);
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(dead), &info, WEXITED | WNOWAIT), 0);
  write(".lock", "pid " + std::to_string(dead) + " on " + host_name() + "\n");
  std::thread watchers([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const rundir::RunLock let_go = std::move(*held);
  });
  EXPECT_NO_THROW(lock_run(folder_, system_clock()));
  watchers.join();
  ::waitpid(dead, nullptr, 0);
}

TEST_F(Files, IgnoresACheckpointThatCannotBeRead) {
  write("step-9/model", "x");
  write("step-99/model", "x");
  fs::permissions(path("step-99"), fs::perms::none);
  fs::permissions(folder_, fs::perms::all);
  const uid_t user = ::geteuid();
  if (user == 0) {  // seteuid, because root can read every directory
    ASSERT_EQ(::seteuid(54321), 0);
  }
  const std::string newest = newest_checkpoint(folder_);
  ASSERT_EQ(::seteuid(user), 0);
  fs::permissions(path("step-99"), fs::perms::owner_all);
  EXPECT_EQ(newest, path("step-9"));
}

TEST_F(Files, TheNewestCheckpointIsTheCompleteOneWithTheLargestNumber) {
  EXPECT_EQ(newest_checkpoint(path("none")), "");
  EXPECT_EQ(newest_checkpoint(folder_), "");
  write("step-9/model", "x");
  EXPECT_EQ(newest_checkpoint(folder_), path("step-9"));
  write("step-10.pt", "x");
  EXPECT_EQ(newest_checkpoint(folder_), path("step-10.pt"));
  for (const char* name : {".step-11", "step-12.tmp", "step-13.part", "_step-14", "step-15.partial/model"})
    write(name, "x");
  write("step-16", "");
  fs::create_directories(path("step-17"));
  fs::create_symlink("step-9", path("step-18"));
  EXPECT_EQ(newest_checkpoint(folder_), path("step-10.pt"));
  write("final.pt", "x");
  EXPECT_EQ(newest_checkpoint(folder_), path("step-10.pt"));
  write("epoch2-step-1000.pt", "x");
  EXPECT_EQ(newest_checkpoint(folder_), path("epoch2-step-1000.pt"));
}

TEST_F(Files, CopiesTheNewestCheckpointUnderItsName) {
  EXPECT_FALSE(carry_checkpoint(path("none"), path("to")));
  write("from/step-9.pt", "older");
  write("from/step-10/model/weights", "newer");
  fs::create_symlink("model/weights", path("from/step-10/last"));
  write("to/.unfinished/left", "of a copy that was not finished");
  ASSERT_TRUE(carry_checkpoint(path("from"), path("to")));
  EXPECT_EQ(newest_checkpoint(path("to")), path("to/step-10"));
  EXPECT_EQ(text_of(path("to/step-10/model/weights")), "newer");
  EXPECT_EQ(fs::read_symlink(path("to/step-10/last")), "model/weights");
  EXPECT_FALSE(fs::exists(path("to/.unfinished")));
  EXPECT_FALSE(has_own_checkpoint(path("to"))) << "it is another one's";
  EXPECT_TRUE(has_own_checkpoint(path("from")));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than one tick of the file system's clock
  write("to/step-10/model/weights", "saved in its place");
  EXPECT_TRUE(has_own_checkpoint(path("to")));
  write("file/step-11.pt", "alone");
  ASSERT_TRUE(carry_checkpoint(path("file"), path("to")));
  EXPECT_EQ(text_of(newest_checkpoint(path("to"))), "alone");
  write("occupied", "a file where the directory should be");
  EXPECT_THROW(carry_checkpoint(path("from"), path("occupied")), Error);
}

}  // namespace
}  // namespace sinew::jobs
