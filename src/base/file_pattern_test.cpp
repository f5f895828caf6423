#include "base/file_pattern.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/expected_error.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

TEST(FilePattern, FindsFilesByTheLastPartOfThePath) {
  std::string made = (fs::temp_directory_path() / "sinew-pattern-XXXXXX").string();
  const fs::path folder = mkdtemp(made.data());
  for (const char* name : {"b-2.csv", "b-10.csv", "a.csv", ".b-3.csv", "b-1.txt", "odd*.csv"})
    std::ofstream(folder / name);
  fs::create_directory(folder / "b-9.csv");
  const auto names = [&](const std::string& pattern) {
    std::vector<std::string> found;
    for (const std::string& path : files_of_pattern((folder / pattern).string())) {
      EXPECT_EQ(fs::path(path).parent_path(), folder);
      found.push_back(fs::path(path).filename().string());
    }
    return found;
  };
  EXPECT_EQ(names("b-*.csv"), (std::vector<std::string>{"b-10.csv", "b-2.csv"}));
  EXPECT_EQ(names("b-?.csv"), (std::vector<std::string>{"b-2.csv"}));
  EXPECT_EQ(names("*.tsv"), std::vector<std::string>());
  EXPECT_TRUE(is_file_pattern((folder / "b-*.csv").string()));
  EXPECT_FALSE(is_file_pattern((folder / "odd*.csv").string())) << "a file has this name";
  EXPECT_FALSE(is_file_pattern((folder / "none.csv").string()));
  EXPECT_ERROR(error_of([&] { files_of_pattern((folder / "nowhere" / "*.csv").string()); }), "DATA_FILE_UNREADABLE",
               "nowhere");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sinew
