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

TEST(FilePattern, ARangeInBracesNamesItsFilesOneByOne) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(files_of_pattern("no/a-{08..11}.tar"), (Names{"no/a-08.tar", "no/a-09.tar", "no/a-10.tar", "no/a-11.tar"}));
  EXPECT_EQ(files_of_pattern("{1..2}/{0..1}"), (Names{"1/0", "1/1", "2/0", "2/1"}));
  EXPECT_EQ(files_of_pattern("{x}/a-{9..10}"), (Names{"{x}/a-9", "{x}/a-10"}));
  EXPECT_TRUE(is_file_pattern("no/a-{08..11}.tar"));
  for (const char* other : {"a{}.tar", "a{1..}.tar", "a{..2}.tar", "a{2..1}.tar", "a{-1..2}.tar", "a{1..2", "a{b..c}"})
    EXPECT_FALSE(is_file_pattern(other)) << other;
  EXPECT_ERROR(error_of([&] { files_of_pattern("{0..999999}{0..999999}"); }), "DATA_BAD_SOURCE", "million");
  EXPECT_ERROR(error_of([&] { files_of_pattern("{0..18446744073709551615}"); }), "DATA_BAD_SOURCE", "million");
}

TEST(FilePattern, ManyRangesCostNoMemory) {
  const auto times = [](int count, const std::string& text) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_EQ(files_of_pattern(times(8, "{0..0}")), std::vector<std::string>{"00000000"});
  EXPECT_EQ(files_of_pattern("{00000000000000000001..1}"), std::vector<std::string>{"00000000000000000001"});
  const auto error = [](const std::string& pattern) { return error_of([&] { files_of_pattern(pattern); }); };
  EXPECT_ERROR(error(times(9, "{0..0}")), "DATA_BAD_SOURCE", "more than 8 ranges");
  EXPECT_ERROR(error("{" + std::string(21, '0') + "..1}"), "DATA_BAD_SOURCE", "more than 20 digits");
  EXPECT_ERROR(error("{0..999999}" + std::string(1000, 'x')), "DATA_BAD_SOURCE", "256 MiB");
  EXPECT_ERROR(error("{" + std::string(500000, '0') + "..1}"), "DATA_BAD_SOURCE", "more bytes than a path");
  EXPECT_ERROR(error(times(100000, "{0..0}")), "DATA_BAD_SOURCE", "more bytes than a path");
  EXPECT_FALSE(is_file_pattern(times(500000, "{") + "..}"));
}

}  // namespace
}  // namespace sinew
