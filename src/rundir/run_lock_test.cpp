#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/process.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

struct Folder {
  Folder() : name(testing::TempDir() + "lock-" + std::to_string(::getpid()) + "-" + std::to_string(++count)) {
    std::filesystem::create_directories(name);
  }
  ~Folder() { std::filesystem::remove_all(name); }
  const std::string& path() const { return name; }
  static inline int count = 0;
  std::string name;
};

TEST(RunLock, RefusalNamesTheHolder) {
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
    // closing another descriptor of the lock file does not release the lock
    std::ifstream(folder.path() + "/.lock").get();
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

// lock_is_held() holds the lock for an instant. This clock simulates that: it releases the lock during the sleep with
// the number `at`.
class LetsGoInSleep final : public Clock {
 public:
  LetsGoInSleep(std::optional<RunLock>& held, int at) : held_(held), at_(at) {}
  double monotonic_seconds() const override { return slept; }
  double wall_seconds() const override { return slept; }
  void sleep_seconds(double seconds) override {
    slept += seconds;
    if (++sleeps_ == at_) held_.reset();
  }
  double slept = 0;

 private:
  std::optional<RunLock>& held_;
  int at_, sleeps_ = 0;
};

TEST(RunLock, AStudyRunsWhileOneOfItsLeadersLives) {
  const Folder folder;
  EXPECT_EQ(running_place(folder.path()), "");
  const std::string leaders = file_in(folder.path(), kLeaders);
  std::filesystem::create_directories(leaders + "/dead");
  std::filesystem::create_directories(leaders + "/living");
  EXPECT_FALSE(is_running(folder.path()));
  {
    const auto alive = RunLock::take(leaders + "/living");
    EXPECT_EQ(running_place(folder.path()), leaders + "/living");
    const auto own = RunLock::take(folder.path());
    EXPECT_EQ(running_place(folder.path()), folder.path());
  }
  EXPECT_FALSE(is_running(folder.path()));
}

TEST(RunLock, WaitsForABriefHolder) {
  const Folder folder;
  for (const int at : {1, 2, 10}) {
    std::optional<RunLock> held = std::move(*RunLock::take(folder.path()));
    LetsGoInSleep clock(held, at);
    EXPECT_TRUE(RunLock::take(folder.path(), clock)) << at;
  }
}

TEST(RunLock, DoesNotWaitLongForALastingHolder) {
  const Folder folder;
  std::optional<RunLock> held = std::move(*RunLock::take(folder.path()));
  LetsGoInSleep clock(held, 1000);
  EXPECT_FALSE(RunLock::take(folder.path(), clock));
  EXPECT_GT(clock.slept, 0);
  EXPECT_LT(clock.slept, 2 * RunLock::kPatienceSeconds);
}

TEST(RunLock, ThrowsIfTheDirectoryDoesNotExist) {
  try {
    (void)RunLock::take("/nonexistent/directory");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/directory"), std::string::npos);
  }
}

TEST(RunLock, LockFileNamesItsHolder) {
  const Folder folder;
  EXPECT_FALSE(lock_holder(folder.path()));
  const auto lock = RunLock::take(folder.path());
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock_holder(folder.path()), (LockHolder{::getpid(), host_name()}));
  for (const char* text : {"", "pid", "pid x on y", "pid -3 on y", "pid 12", "pid 12 at y"}) {
    std::ofstream(folder.path() + "/.lock") << text;
    EXPECT_FALSE(lock_holder(folder.path())) << text;
  }
}

// A user who can open the file can lock it.
TEST(RunLock, OnlyTheOwnerCanOpenTheFile) {
  namespace fs = std::filesystem;
  const Folder folder;
  const fs::path file = folder.path() + "/.lock";
  constexpr fs::perms kOwner = fs::perms::owner_read | fs::perms::owner_write;
  ASSERT_TRUE(RunLock::take(folder.path()));
  EXPECT_EQ(fs::status(file).permissions(), kOwner);
  fs::permissions(file, kOwner | fs::perms::group_read | fs::perms::others_read);  // like an earlier version
  ASSERT_TRUE(RunLock::take(folder.path()));
  EXPECT_EQ(fs::status(file).permissions(), kOwner);
}

TEST(RunLock, AnotherUserSeesWhetherItIsHeld) {
  const bool is_root = ::getuid() == 0;
  const Folder folder;
  const auto held_for_others = [&] {
    // Only root can become another user. Any other user is kept out by a file without permissions.
    if (!is_root) std::filesystem::permissions(folder.path() + "/.lock", std::filesystem::perms::none);
    const pid_t child = ::fork();
    if (child == 0) {
      if (is_root && (::setgid(65534) != 0 || ::setuid(65534) != 0)) std::_Exit(2);
      if (std::ifstream(folder.path() + "/.lock")) std::_Exit(4);
      const auto holder = lock_holder(folder.path());
      if (holder != (lock_is_held(folder.path()) ? std::optional(LockHolder{::getppid(), host_name()}) : std::nullopt))
        std::_Exit(3);
      std::_Exit(holder ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  {
    const auto lock = RunLock::take(folder.path());
    ASSERT_TRUE(lock);
    EXPECT_EQ(held_for_others(), 1);
  }
  EXPECT_EQ(held_for_others(), 0);
}

TEST(RunPlace, NoticesThatTheDirectoryIsNoLongerTheRuns) {
  namespace fs = std::filesystem;
  const Folder folder;
  const std::string run = folder.path() + "/run", lock = run + "/.lock";
  const struct {
    std::function<void()> change;
    const char* says;
  } cases[] = {
      {[&] { fs::remove(lock); }, ".lock was removed"},
      {[&] { fs::remove_all(run); }, "was moved or removed"},
      {[&] { fs::rename(run, folder.path() + "/moved"); }, "was moved or removed"},
      {[&] {
         fs::remove(lock);
         std::ofstream(lock) << "pid 1 on elsewhere\n";
       },
       "another lock file"},
      {[&] {
         fs::rename(run, folder.path() + "/other");
         fs::create_directories(run);
         EXPECT_TRUE(RunLock::take(run));
       },
       "another lock file"},
  };
  for (const auto& [change, says] : cases) {
    fs::create_directories(run);
    const auto held = RunLock::take(run);
    ASSERT_TRUE(held);
    const RunPlace place(run, held->descriptor());
    const RunPlace of_worker(run);  // like a worker of a group, which does not hold the lock itself
    std::ofstream(lock, std::ios::app) << "a change of its text does not count\n";
    EXPECT_EQ(place.lost() + of_worker.lost(), "");
    change();
    EXPECT_NE(place.lost().find(says), std::string::npos) << place.lost();
    EXPECT_EQ(of_worker.lost(), place.lost());
    fs::remove_all(run);
  }
  EXPECT_EQ(RunPlace(folder.path()).lost(), "") << "a directory that nobody locked cannot be lost";
}

}  // namespace
}  // namespace sinew::rundir
