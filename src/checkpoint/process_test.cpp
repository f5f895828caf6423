// Real processes on the real disk: killed while they save, killed while they hold the lock.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
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

// Saves step after step and says each number on the pipe once save has returned.
[[noreturn]] void save_for_ever(const std::string& root, int64_t from, int pipe) {
  for (int64_t step = from;; ++step) {
    save(system_disk(), root, Sample(step).snapshot(), 1.0);
    if (::write(pipe, &step, sizeof step) != sizeof step) std::_Exit(1);
    for (const std::string& directory : list(system_disk(), root)) {
      if (parse_step_name(last_part(directory))->value < step - 3) fs::remove_all(directory);
    }
  }
}

int64_t last_said(int pipe, int64_t before) {
  int64_t step = before;
  while (::read(pipe, &step, sizeof step) == sizeof step) continue;
  return step;
}

TEST(Process, KilledFiftyTimesWhileSavingItIsLoadableEveryTime) {
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
    // Every other child is let live until its first save is done, so that deaths fall into later ones too.
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

TEST(RunLock, ASecondTakerIsToldWhoHoldsIt) {
  const Folder folder;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  {
    auto first = RunLock::take(folder.path());
    ASSERT_TRUE(first) << first.error();
    const auto second = RunLock::take(folder.path());
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().find("pid " + std::to_string(::getpid()) + " on " + host), std::string::npos)
        << second.error();
    EXPECT_NE(second.error().find(folder.path()), std::string::npos);
    RunLock moved = std::move(*first);
    EXPECT_FALSE(RunLock::take(folder.path()));
    std::ifstream(folder.path() + "/.lock").get();  // closing another opening of the file does not let go
    EXPECT_FALSE(RunLock::take(folder.path()));
  }
  const auto third = RunLock::take(folder.path());
  EXPECT_TRUE(third) << third.error();
}

TEST(RunLock, IsFreeWhenItsHolderWasKilled) {
  const Folder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = RunLock::take(folder.path());
    if (!lock || ::write(ends[1], "x", 1) != 1) std::_Exit(1);
    while (true) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  const auto refused = RunLock::take(folder.path());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("pid " + std::to_string(child) + " on "), std::string::npos) << refused.error();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunLock::take(folder.path()));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(RunLock, AMissingDirectoryIsAnErrorNotACrash) {
  const auto lock = RunLock::take("/nonexistent/directory");
  ASSERT_FALSE(lock);
  EXPECT_NE(lock.error().find("/nonexistent/directory"), std::string::npos);
}

TEST(RealDisk, AWriterWorksOnIt) {
  const Folder folder;
  const std::string root = folder.path() + "/checkpoints", mirror = folder.path() + "/mirror";
  {
    Writer writer(system_disk(), {root, mirror, 2, 1});
    for (const int64_t step : {1, 2, 3, 4}) {
      ASSERT_TRUE(writer.submit(Sample(step, 3'000'000).owned()));
      ASSERT_TRUE(writer.wait(60));
      EXPECT_EQ(writer.status().trouble, "");
      if (step == 1) writer.set_best({Step(1)});
      ASSERT_TRUE(writer.wait(60));
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

}  // namespace
}  // namespace sinew::checkpoint
