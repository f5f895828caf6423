#include "report/append_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/faulty_disk.h"
#include "base/random.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

using namespace testing;

// While this object lives, the files of this process cannot grow beyond `bytes`. The system cuts a write short that
// crosses the limit, and fails the next one, as on a full disk.
class FullDiskAt {
 public:
  explicit FullDiskAt(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDiskAt() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST(AppendFile, a_disk_that_fills_up_and_empties_leaves_no_hole_and_no_half_record) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(random_key({seed}));
    const TemporaryDirectory directory;
    std::string expected;
    AppendFile file(system_disk(), directory / "x");
    const auto append = [&] {
      const std::string record(1 + random.below(200), static_cast<char>('a' + random.below(26)));
      file.append(record + "\n");
      expected += record + "\n";
    };
    for (int i = 0; i < 10; ++i) append();
    file.flush();
    EXPECT_EQ(file.trouble(), "");
    {
      const FullDiskAt full(expected.size() + random.below(150));
      for (int i = 0; i < 20; ++i) {
        append();
        if (random.below(2) == 0) file.flush();
      }
      file.flush();
      EXPECT_NE(file.trouble(), "");
      EXPECT_NE(file.trouble().find(directory / "x"), std::string::npos);
    }
    append();
    file.flush();
    EXPECT_EQ(file.trouble(), "");
    EXPECT_EQ(read_file(directory / "x"), expected);
  }
}

TEST(AppendFile, memory_is_bounded_and_losses_are_counted) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory / "x");
  AppendFile file(system_disk(), directory / "x");
  const std::string record(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) file.append(record);
  file.flush();
  EXPECT_TRUE(file.trouble().starts_with("cannot write " + (directory / "x") + ": No space left on device"));
  EXPECT_TRUE(file.trouble().ends_with("; 12 records are lost")) << file.trouble();
}

TEST(AppendFile, records_wait_and_no_file_changes_while_may_write_is_false) {
  const TemporaryDirectory directory;
  bool turn = false;
  AppendFile file(system_disk(), directory / "x", [&] { return turn; });
  file.append("one\n");
  file.flush();
  EXPECT_FALSE(std::filesystem::exists(directory / "x"));
  EXPECT_EQ(file.trouble(), "");
  turn = true;
  file.flush();
  EXPECT_EQ(read_file(directory / "x"), "one\n");
  turn = false;
  const std::string record(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) file.append(record);
  EXPECT_EQ(read_file(directory / "x"), "one\n");
  EXPECT_EQ(file.trouble(),
            "12 records are missing from " + (directory / "x") + ": another process writes the files of this run now");
  turn = true;
  file.flush();
  EXPECT_EQ(read_file(directory / "x").size(), 4U + (8 << 20));
}

TEST(AppendFile, tells_the_error_of_the_disk_and_what_to_try) {
  FaultyDisk disk;
  AppendFile file(disk, "metrics.jsonl");
  file.append("one\n");
  disk.fail_at(1, EIO);
  file.flush();
  for (const char* part : {"metrics.jsonl", "injected failure", "a hint"})
    EXPECT_NE(file.trouble().find(part), std::string::npos) << file.trouble();
  file.flush();
  EXPECT_EQ(file.trouble(), "");

  AppendFile earlier(disk, "ledger.jsonl", nullptr, []() -> std::unique_ptr<Disk::File> {
    throw DiskError("cannot read ledger.jsonl: it is not a regular file", "remove it", EINVAL);
  });
  earlier.flush();
  EXPECT_EQ(earlier.trouble(), "cannot read ledger.jsonl: it is not a regular file [DISK_FAILED] (try: remove it)");
}

TEST(AppendFile, creates_the_file_once_its_directory_exists) {
  const TemporaryDirectory directory;
  AppendFile file(system_disk(), directory / "later/x");
  file.append("one\n");
  file.flush();
  EXPECT_NE(file.trouble().find("No such file"), std::string::npos);
  std::filesystem::create_directory(directory / "later");
  file.flush();
  EXPECT_EQ(file.trouble(), "");
  EXPECT_EQ(read_file(directory / "later/x"), "one\n");
}

TEST(AppendFile, creates_no_file_without_records) {
  const TemporaryDirectory directory;
  { AppendFile file(system_disk(), directory / "x"); }
  EXPECT_FALSE(std::filesystem::exists(directory / "x"));
}

}  // namespace
}  // namespace sinew::report
