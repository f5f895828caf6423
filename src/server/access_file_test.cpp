#include "server/access_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/expected_error.h"

namespace sinew::server {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(AccessFile, KeepsTheNewestLinesInAFewPrivateFiles) {
  std::string folder = "/tmp/sinew-access-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/access.log";
  {
    AccessFile file(path, 20, 2);
    for (int i = 0; i < 10; ++i) file.write("line " + std::to_string(i));  // 7 bytes with the line end
  }
  EXPECT_EQ(text_of(path), "line 8\nline 9\n");
  EXPECT_EQ(text_of(path + ".1"), "line 6\nline 7\n");
  EXPECT_EQ(text_of(path + ".2"), "line 4\nline 5\n");
  EXPECT_FALSE(std::filesystem::exists(path + ".3"));
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  AccessFile(path, 20, 2).write("line 10");
  EXPECT_EQ(text_of(path + ".1"), "line 8\nline 9\n") << "a new process goes on in the same file";
  ASSERT_EQ(::symlink("/tmp/nowhere", (folder + "/link").c_str()), 0);
  EXPECT_EQ(code_of([&] { AccessFile link(folder + "/link"); }), "DISK_FAILED");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sinew::server
