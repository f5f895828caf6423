#include "base/disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/atomic_write.h"
#include "base/random.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "sinew-disk-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> random_bytes(size_t size, uint64_t seed) {
  RandomStream random(random_key({seed}));
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.bits32());
  return bytes;
}

int code_of(auto call) {
  try {
    call();
  } catch (const DiskError& error) {
    EXPECT_NE(std::string(error.what()), "");
    return error.system_code;
  }
  return 0;
}

TEST(SystemDisk, WritesTextAsItsBytes) {
  const Folder folder;
  Disk& disk = system_disk();
  std::string every;
  for (int i = 0; i < 256; ++i) every.push_back(static_cast<char>(i));
  for (const std::string& text : {std::string(), std::string("a line\r\n"), std::string("\0\0", 2), every}) {
    write_durably(disk, folder / "a", text);
    EXPECT_EQ(read_text(disk, folder / "a"), text);
    EXPECT_EQ(disk.read(folder / "a"), bytes_of(text));
  }
  write_durably(disk, folder / "b", "a literal is text too");
  write_atomically(disk, folder / "a", "newer");
  EXPECT_EQ(read_text(disk, folder / "a"), "newer");
  EXPECT_EQ(read_text(disk, folder / "b"), "a literal is text too");
  EXPECT_EQ(code_of([&] { read_text(disk, folder / "absent"); }), ENOENT);
}

TEST(SystemDisk, ReadsBackWhatItWroteWhateverTheSize) {
  const Folder folder;
  Disk& disk = system_disk();
  for (const size_t size : {0, 1, 4095, 4096, 4097, 100'000, 3'000'001}) {
    const auto bytes = random_bytes(size, size);
    const auto file = disk.create(folder / "a");
    const size_t cut = size / 3;
    file->write(std::span(bytes).first(cut));
    file->write(std::span(bytes).subspan(cut));
    file->sync();
    file->close();
    EXPECT_EQ(disk.read(folder / "a"), bytes) << size;
    EXPECT_EQ(disk.size(folder / "a"), size);
  }
}

TEST(SystemDisk, ReadAtAgreesWithReadAndWithTheDefault) {
  const Folder folder;
  Disk& disk = system_disk();
  const auto bytes = random_bytes(10'000, 1);
  write_durably(disk, folder / "a", bytes);
  RandomStream random(random_key({2}));
  for (int i = 0; i < 200; ++i) {
    const uint64_t offset = random.below(12'000);
    std::vector<std::byte> mine(random.below(5'000)), theirs(mine.size());
    const size_t got = disk.read_at(folder / "a", offset, mine);
    EXPECT_EQ(got, std::min<uint64_t>(mine.size(), offset > 10'000 ? 0 : 10'000 - offset));
    EXPECT_EQ(disk.Disk::read_at(folder / "a", offset, theirs), got);
    EXPECT_EQ(mine, theirs);
    EXPECT_TRUE(std::equal(mine.begin(), mine.begin() + static_cast<long>(got),
                           bytes.begin() + static_cast<long>(std::min<uint64_t>(offset, 10'000))));
  }
  std::byte one{};
  EXPECT_EQ(disk.read_at(folder / "a", ~uint64_t{0}, {&one, 1}), 0U);
}

TEST(SystemDisk, ReadsAFileThatReportsNoSize) {
  const auto bytes = system_disk().read("/proc/self/status");
  EXPECT_GT(bytes.size(), 100U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 5), "Name:");
}

TEST(SystemDisk, AppendAddsAtTheEndAndCreateTruncates) {
  const Folder folder;
  Disk& disk = system_disk();
  for (const char* text : {"one", "two"}) {
    const auto file = disk.append(folder / "log");
    file->write(bytes_of(text));
    file->close();
  }
  EXPECT_EQ(disk.read(folder / "log"), bytes_of("onetwo"));
  disk.create(folder / "log")->close();
  EXPECT_EQ(disk.size(folder / "log"), 0U);
}

TEST(SystemDisk, ErrorsNameTheFailedCall) {
  const Folder folder;
  Disk& disk = system_disk();
  EXPECT_EQ(code_of([&] { disk.read(folder / "none"); }), ENOENT);
  EXPECT_EQ(code_of([&] { disk.read(folder.path()); }), EISDIR);
  EXPECT_EQ(code_of([&] { disk.create(folder / "none/file"); }), ENOENT);
  EXPECT_EQ(code_of([&] { disk.list(folder / "none"); }), ENOENT);
  EXPECT_EQ(code_of([&] { disk.size(folder / "none"); }), ENOENT);
  EXPECT_EQ(code_of([&] { disk.sync_directory(folder / "none"); }), ENOENT);
  EXPECT_EQ(code_of([&] { disk.rename(folder / "none", folder / "b"); }), ENOENT);
  disk.symlink("x", folder / "link");
  EXPECT_EQ(code_of([&] { disk.symlink("y", folder / "link"); }), EEXIST);
  EXPECT_EQ(code_of([&] { disk.remove_file(folder / "none"); }), 0);
  EXPECT_EQ(code_of([&] { disk.remove_all(folder / "none"); }), 0);
  EXPECT_EQ(code_of([&] { disk.create("/dev/full")->write(bytes_of("x")); }), ENOSPC);
}

// The server shows the hint of a full disk, too, and has other options than `sinew train`.
TEST(SystemDisk, AHintNamesNoOptionOfACommand) {
  Disk& disk = system_disk();
  try {
    disk.create("/dev/full")->write(bytes_of("x"));
    ADD_FAILURE() << "the device is full";
  } catch (const Error& error) {
    EXPECT_NE(error.hint.find("free some space"), std::string::npos) << error.hint;
    EXPECT_EQ(error.hint.find("--"), std::string::npos) << error.hint;
  }
}

TEST(SystemDisk, NeverWaitsForAPipeAndNeverReadsADevice) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { system_disk().read(folder / "pipe"); }), EINVAL);
  std::byte one{};
  EXPECT_EQ(code_of([&] { system_disk().read_at(folder / "pipe", 0, {&one, 1}); }), EINVAL);
  EXPECT_EQ(code_of([&] { system_disk().read("/dev/zero"); }), EINVAL);
}

// Limits the address space first, because the kernel may promise more memory than it has.
[[noreturn]] void read_in_small_address_space(const std::string& path) {
  const rlimit bound{rlim_t{1} << 40, rlim_t{1} << 40};
  ::setrlimit(RLIMIT_AS, &bound);
  std::_Exit(code_of([&] { system_disk().read(path); }) == ENOMEM ? 0 : 1);
}

TEST(SystemDisk, AFileLargerThanMemoryIsAnErrorOfTheFile) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have their own idea of memory";
#endif
  const Folder folder;
  const std::string path = folder / "sparse";
  system_disk().create(path)->close();
  if (::truncate(path.c_str(), int64_t{1} << 43) != 0) GTEST_SKIP() << "no sparse files of 8 TiB here";
  EXPECT_EXIT(read_in_small_address_space(path), testing::ExitedWithCode(0), "");
}

TEST(SystemDisk, ExistsThrowsIfItCannotFindOut) {
  const Folder folder;
  Disk& disk = system_disk();
  EXPECT_TRUE(disk.exists(folder.path()));
  EXPECT_FALSE(disk.exists(folder / "none"));
  disk.create(folder / "file")->close();
  EXPECT_FALSE(disk.exists(folder / "file/below"));
  disk.symlink("round", folder / "round");
  EXPECT_EQ(code_of([&] { disk.exists(folder / "round"); }), ELOOP);
  EXPECT_EQ(code_of([&] { disk.exists(folder / std::string(300, 'x')); }), ENAMETOOLONG);
}

TEST(SystemDisk, ListsByNameAndMarksDirectories) {
  const Folder folder;
  Disk& disk = system_disk();
  disk.make_directories(folder / "b/deep");
  disk.make_directories(folder / "b/deep");  // making them again is no error
  for (const char* name : {"c", "a", ".hidden"}) disk.create(folder / name)->close();
  std::string seen;
  for (const auto& entry : disk.list(folder.path())) seen += entry.name + (entry.directory ? "/ " : " ");
  EXPECT_EQ(seen, ".hidden a b/ c ");
  EXPECT_NE(code_of([&] { disk.make_directories(folder / "a/below"); }), 0);
}

TEST(SystemDisk, RemoveAllRemovesALinkAndNotItsTarget) {
  const Folder folder;
  Disk& disk = system_disk();
  disk.make_directories(folder / "kept");
  disk.create(folder / "kept/file")->close();
  disk.symlink("kept", folder / "link");
  disk.remove_all(folder / "link");
  EXPECT_TRUE(disk.exists(folder / "kept/file"));
  disk.remove_all(folder / "kept");
  EXPECT_TRUE(disk.list(folder.path()).empty());
}

TEST(SystemDisk, DropCacheLeavesNoPageOfASyncedFile) {
  const Folder folder;
  struct statfs facts {};
  ASSERT_EQ(::statfs(folder.path().c_str(), &facts), 0);
  constexpr long kTmpfs = 0x01021994, kOverlay = 0x794c7630;
  if (facts.f_type == kTmpfs || facts.f_type == kOverlay) GTEST_SKIP() << "the temporary directory has no device";
  constexpr size_t kSize = 1 << 20, kPage = 4096;
  write_durably(system_disk(), folder / "a", random_bytes(kSize, 3));
  const auto resident = [&] {
    const int file = ::open((folder / "a").c_str(), O_RDONLY);
    void* at = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, file, 0);
    std::vector<unsigned char> pages(kSize / kPage);
    EXPECT_EQ(::mincore(at, kSize, pages.data()), 0);
    ::munmap(at, kSize);
    ::close(file);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  };
  ASSERT_GT(resident(), 0);
  system_disk().drop_cache(folder / "a");
  EXPECT_EQ(resident(), 0);
}

TEST(SystemDisk, CreateNewTakesNoNameThatIsThere) {
  const Folder folder;
  write_durably(system_disk(), folder / "file", "theirs");
  fs::create_symlink(folder / "file", folder / "link");
  fs::create_symlink(folder / "nothing", folder / "dangling");
  for (const char* name : {"file", "link", "dangling"})
    EXPECT_EQ(code_of([&] { system_disk().create_new(folder / name); }), EEXIST) << name;
  EXPECT_EQ(read_text(system_disk(), folder / "file"), "theirs");
  EXPECT_FALSE(fs::exists(folder / "nothing"));
  system_disk().create_new(folder / "fresh")->close();
  EXPECT_EQ(system_disk().size(folder / "fresh"), 0U);
}

// A user who may write to the directory must not be able to predict the name of a temporary file.
TEST(WriteDurably, ItsTemporaryNamesAreNotCounted) {
  const Folder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    write_durably(system_disk(), folder / "value", [&](Disk::File&) {
      for (const Disk::Entry& entry : system_disk().list(folder.path())) {
        if (entry.name.ends_with(".tmp")) names.push_back(entry.name);
      }
    });
  }
  ASSERT_EQ(names.size(), 2U);
  for (const std::string& name : names) {
    // remove_abandoned_writes needs the process id in the name; the 16 random digits keep the name from being guessed.
    const std::string begin = ".value." + std::to_string(::getpid()) + "-";
    EXPECT_TRUE(name.starts_with(begin)) << name;
    EXPECT_EQ(name.size(), begin.size() + 16 + 4) << name;
  }
  EXPECT_NE(names[0].substr(0, names[0].size() - 12), names[1].substr(0, names[1].size() - 12));
}

TEST(WriteDurably, ReplacesWholeFilesUnderReadersAndWriters) {
  const Folder folder;
  Disk& disk = system_disk();
  const std::string path = folder / "value";
  write_durably(disk, path, std::vector<std::byte>(50'000, std::byte{0}));
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int i = 1; i <= 3; ++i) {
    writers.emplace_back([&, i] {
      while (!stop) write_durably(disk, path, std::vector<std::byte>(50'000, static_cast<std::byte>(i)));
    });
  }
  for (int i = 0; i < 200; ++i) {
    const auto bytes = disk.read(path);
    ASSERT_EQ(bytes.size(), 50'000U);
    ASSERT_EQ(std::count(bytes.begin(), bytes.end(), bytes[0]), 50'000) << "two writes were mixed";
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(disk.list(folder.path()).size(), 1U) << "temporaries were left";
}

TEST(WriteOutput, WritesToADeviceOrAPipeAndReplacesAFile) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string pipe = "/dev/fd/" + std::to_string(ends[1]);
  write_output(system_disk(), pipe, "text");
  char got[8] = {};
  EXPECT_EQ(::read(ends[0], got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  ::close(ends[0]);
  ::close(ends[1]);
  const std::string null = testing::TempDir() + "output-null";
  ::unlink(null.c_str());
  ASSERT_EQ(::symlink("/dev/null", null.c_str()), 0);
  write_output(system_disk(), null, "text");
  EXPECT_TRUE(std::filesystem::is_symlink(null));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const std::string file = testing::TempDir() + "output-file";
  write_output(system_disk(), file, "one");
  write_output(system_disk(), file, "two");
  EXPECT_EQ(read_text(system_disk(), file), "two");
}

TEST(WriteDurably, LeavesNoTemporaryFileWhenItFails) {
  const Folder folder;
  Disk& disk = system_disk();
  disk.make_directories(folder / "target/inside");  // a directory, which a file cannot replace
  EXPECT_NE(code_of([&] { write_durably(disk, folder / "target", bytes_of("x")); }), 0);
  EXPECT_EQ(disk.list(folder.path()).size(), 1U);
}

TEST(WriteDurably, AcceptsABareName) {
  const Folder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_durably(system_disk(), "bare", bytes_of("x"));
  make_directories_durably(system_disk(), "one/two/");
  fs::current_path(before);
  EXPECT_EQ(system_disk().read(folder / "bare"), bytes_of("x"));
  EXPECT_TRUE(system_disk().exists(folder / "one/two"));
}

TEST(SystemDisk, RemovesWhatKilledWritersLeftAndNothingElse) {
  const Folder folder;
  const pid_t ended = ::fork();
  if (ended == 0) {
    write_durably(system_disk(), folder / "report.json", [&](Disk::File& file) {
      file.write(bytes_of("half"));
      ::raise(SIGKILL);
    });
  }
  ASSERT_EQ(::waitpid(ended, nullptr, 0), ended);
  ASSERT_EQ(system_disk().list(folder.path()).size(), 1U) << "the test needs what the writer left";
  const std::string dead = std::to_string(ended), alive = std::to_string(::getpid());
  const std::vector<std::string> others = {
      "." + dead + "-0.tmp",  ".x." + alive + "-0.tmp", ".x." + dead + ".tmp",     ".x.-" + dead + "-0.tmp",
      "x." + dead + "-0.tmp", ".x." + dead + "-0.tm",   ".x.99999999999999-0.tmp", ".x.0-0.tmp",
      "report.json"};
  for (const std::string& name : others) std::ofstream(folder / name) << "kept";
  fs::create_directory(folder / (".d." + dead + "-0.tmp"));
  remove_abandoned_writes(system_disk(), folder.path());
  EXPECT_EQ(system_disk().list(folder.path()).size(), others.size() + 1);
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder / name)) << name;
}

}  // namespace
}  // namespace sinew
