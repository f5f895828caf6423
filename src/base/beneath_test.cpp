#include "base/beneath.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/disk.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

using Open = std::expected<BeneathFile, int> (*)(const BeneathFile&, const std::string&);

class Beneath : public testing::TestWithParam<Open> {
 protected:
  Beneath() {
    std::string name = "/tmp/sinew-beneath-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    fs::create_directories(folder_ + "/inside/deep");
    write("inside/deep/file", "mine");
    write("secret", "theirs");
    fs::create_symlink("deep", folder_ + "/inside/link");
    fs::create_symlink("deep/file", folder_ + "/inside/file");
    fs::create_symlink("../secret", folder_ + "/inside/out");
    fs::create_symlink(folder_ + "/secret", folder_ + "/inside/absolute");
  }
  ~Beneath() override { fs::remove_all(folder_); }
  void write(const std::string& name, const char* text) const { std::ofstream(folder_ + "/" + name) << text; }
  // Returns the file's text, or the error number.
  std::string text_at(const std::string& path) const {
    const auto directory = open_directory(folder_ + "/inside");
    if (!directory) return "no directory";
    const auto file = GetParam()(*directory, path);
    if (!file) return std::to_string(file.error());
    return file->is_regular() ? read_text(system_disk(), file->path()) : file->is_directory() ? "directory" : "other";
  }

  std::string folder_;
};
INSTANTIATE_TEST_SUITE_P(Both, Beneath, testing::Values(&open_beneath, &open_beneath_by_parts));

TEST_P(Beneath, OpensWhatLiesInTheDirectory) {
  EXPECT_EQ(text_at("deep/file"), "mine");
  EXPECT_EQ(text_at("deep"), "directory");
  EXPECT_EQ(text_at(""), "directory");
  EXPECT_EQ(text_at("nothing"), std::to_string(ENOENT));
  EXPECT_EQ(text_at("deep/file/x"), std::to_string(ENOTDIR));
}

TEST_P(Beneath, FollowsNoLinkAndDoesNotLeave) {
  for (const char* path : {"link/file", "file", "out", "absolute"})
    EXPECT_EQ(text_at(path), std::to_string(ELOOP)) << path;
  for (const char* path : {"../secret", "/etc/passwd", "deep/../../secret"})
    EXPECT_EQ(text_at(path), std::to_string(EXDEV)) << path;
}

// A thread exchanges the folder and a symbolic link as fast as it can, while the test opens a file.
TEST_P(Beneath, AnExchangeBetweenCheckAndUseChangesNothing) {
  fs::create_directories(folder_ + "/elsewhere");
  write("elsewhere/file", "theirs");
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) {
      ::rename((folder_ + "/inside/deep").c_str(), (folder_ + "/aside").c_str());
      (void)!::symlink("../elsewhere", (folder_ + "/inside/deep").c_str());
      ::unlink((folder_ + "/inside/deep").c_str());
      ::rename((folder_ + "/aside").c_str(), (folder_ + "/inside/deep").c_str());
    }
  });
  for (int i = 0; i < 5000; ++i) EXPECT_NE(text_at("deep/file"), "theirs");
  stop = true;
  other.join();
}

}  // namespace
}  // namespace sinew
