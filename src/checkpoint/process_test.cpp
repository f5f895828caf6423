// Tests with real processes on the real disk. The tests kill them while they save or while they hold the lock.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "sinew-checkpoint-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Saves step after step. When save has returned, writes the number of the step to the pipe.
[[noreturn]] void save_for_ever(const std::string& root, int64_t from, int pipe) {
  for (int64_t step = from;; ++step) {
    save(system_disk(), root, Sample(step).snapshot(), 1.0);
    if (::write(pipe, &step, sizeof step) != sizeof step) std::_Exit(1);
    for (const std::string& directory : list(system_disk(), root)) {
      if (parse_step_name(base_name(directory))->value < step - 3) fs::remove_all(directory);
    }
  }
}

int64_t last_said(int pipe, int64_t before) {
  int64_t step = before;
  while (::read(pipe, &step, sizeof step) == sizeof step) continue;
  return step;
}

TEST(Process, IsLoadableAfterEachOfFiftyKillsDuringASave) {
  const Folder folder;
  const std::string root = folder.path() + "/checkpoints";
  RandomStream random(random_key({77}));
  int64_t said = 0;
  save(system_disk(), root, Sample(0).snapshot(), 1.0);
  for (int i = 0; i < 50; ++i) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      save_for_ever(root, said + 1, ends[1]);
    }
    ::close(ends[1]);
    // Every other child lives until its first save is done, so that the kill interrupts later saves too.
    if (i % 2 == 0) {
      ASSERT_EQ(::read(ends[0], &said, sizeof said), static_cast<ssize_t>(sizeof said));
    }
    ::usleep(static_cast<useconds_t>(random.below(25'000)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    said = last_said(ends[0], said);
    ::close(ends[0]);
    const Newest newest = load_newest(system_disk(), root);
    ASSERT_TRUE(newest.loaded) << i;
    const int64_t step = newest.loaded->step.value;
    ASSERT_TRUE(step == said || step == said + 1) << step << " after " << said;
    ASSERT_TRUE(Sample(step).equals(*newest.loaded));
    ASSERT_TRUE(newest.damaged.empty()) << newest.damaged[0].what;
  }
  EXPECT_GE(said, 25);
  save(system_disk(), root, Sample(said + 2).snapshot(), 1.0);
  for (const auto& entry : system_disk().list(root)) EXPECT_NE(entry.name[0], '.') << entry.name << " was left";
}

TEST(RealDisk, AWriterWorks) {
  const Folder folder;
  const std::string root = folder.path() + "/checkpoints", mirror = folder.path() + "/mirror";
  {
    Writer writer(system_disk(), {root, mirror, 2, 1});
    for (const int64_t step : {1, 2, 3, 4}) {
      ASSERT_TRUE(writer.submit(Sample(step, 3'000'000).owned()));
      ASSERT_TRUE(writer.wait(300));
      EXPECT_EQ(writer.status().trouble, "");
      if (step == 1) writer.set_best({Step(1)});
      ASSERT_TRUE(writer.wait(300));
    }
  }
  EXPECT_EQ(list(system_disk(), root).size(), 3U);
  EXPECT_EQ(list(system_disk(), mirror).size(), 3U);
  EXPECT_EQ(fs::read_symlink(root + "/last"), "step-00000004");
  EXPECT_EQ(fs::read_symlink(root + "/best"), "step-00000001");
  EXPECT_TRUE(Sample(4, 3'000'000).equals(*load_newest(system_disk(), root).loaded));
  const auto summary = verify(system_disk(), root + "/last", true);
  ASSERT_TRUE(summary);
  EXPECT_GT(summary->bytes, 6'000'000U);
}

// Tests of the program sinew; skipped if it was not built beside this test.
class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kProgram)) GTEST_SKIP() << kProgram << " is not built";
  }
  struct Outcome {
    int code;
    std::string text;
  };
  static Outcome sinew(const std::string& words) {
    FILE* pipe = ::popen((std::string(kProgram) + " checkpoint " + words + " 2>&1").c_str(), "r");
    Outcome outcome;
    char piece[4096];
    while (const size_t got = std::fread(piece, 1, sizeof piece, pipe)) outcome.text.append(piece, got);
    outcome.code = WEXITSTATUS(::pclose(pipe));
    return outcome;
  }
  static constexpr const char* kProgram = SINEW_BINARY_DIR "/bin/sinew";
};

TEST_F(CommandLine, ListsVerifiesAndShowsARunAFolderAndAStep) {
  const Folder run;
  const std::string root = run.path() + "/checkpoints";
  for (const int64_t step : {10, 20}) save(system_disk(), root, Sample(step).snapshot(), 1763694902.25);
  point_link(system_disk(), root, "last", Step(20));
  for (const std::string& given : {run.path(), root, root + "/", root + "/step-00000020", root + "/last"}) {
    for (const char* verb : {"list ", "verify ", "show "}) {
      const Outcome outcome = sinew(verb + given);
      EXPECT_EQ(outcome.code, 0) << verb << given << outcome.text;
      EXPECT_NE(outcome.text.find("step 20, "), std::string::npos) << verb << given << outcome.text;
      EXPECT_NE(outcome.text.find(to_hex(Sample(20).snapshot().digest)), std::string::npos);
    }
  }
  EXPECT_NE(sinew("list " + run.path()).text.find("2025-11-21T03:15:02.250Z"), std::string::npos);
  EXPECT_NE(sinew("show " + run.path()).text.find("layer.bf16"), std::string::npos);
}

TEST_F(CommandLine, NamesTheDamagedFileAndReportsIfThereIsNoCheckpoint) {
  const Folder run;
  EXPECT_EQ(sinew("verify " + run.path()).code, 1);
  EXPECT_NE(sinew("verify " + run.path()).text.find("no checkpoints in"), std::string::npos);
  const std::string root = run.path() + "/checkpoints";
  for (const int64_t step : {10, 20}) save(system_disk(), root, Sample(step).snapshot(), 1.0);
  std::fstream file(root + "/step-00000020/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  const auto last = static_cast<char>(file.peek() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(last).flush();
  const Outcome outcome = sinew("verify " + run.path());
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.text.find("step-00000020: DAMAGED: model.safetensors chunk 0"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("1 of 2 intact"), std::string::npos) << outcome.text;
  const Outcome shown = sinew("show " + run.path());
  EXPECT_EQ(shown.code, 4);
  EXPECT_NE(shown.text.find("step 10, intact"), std::string::npos) << shown.text;
  EXPECT_EQ(sinew("list " + run.path()).code, 0) << "list does not read the data";
  fs::remove(root + "/step-00000020/manifest.json");
  EXPECT_EQ(sinew("list " + run.path()).code, 4);
  EXPECT_EQ(sinew("verify " + root + "/step-00000020").code, 4);
  EXPECT_EQ(sinew("verify " + run.path() + "/none").code, 1);
  EXPECT_EQ(sinew("verify").code, 2);
  EXPECT_EQ(sinew("frobnicate x").code, 2);
  EXPECT_EQ(sinew("--help").code, 0);
}

}  // namespace
}  // namespace sinew::checkpoint
