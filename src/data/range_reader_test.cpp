#include "data/range_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/expected_error.h"
#include "data/fixtures.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

std::string range_of(const RangeReader& reader, const std::string& path, uint64_t offset, size_t size) {
  std::string text(size, '\0');
  reader.read(path, offset, std::as_writable_bytes(std::span(text)));
  return text;
}

// The descriptors of this process that lead into the folder.
int64_t open_below(const std::string& folder) {
  int64_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor of this listing
    count += fs::read_symlink(entry.path(), gone).string().starts_with(folder) ? 1 : 0;
  }
  return count;
}

TEST(RangeReader, ReadsRangesAndKeepsFewFilesOpen) {
  const Folder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 10; ++i) paths.push_back(folder.write("f" + std::to_string(i), std::to_string(i) + "abcdef"));
  const RangeReader reader(3);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < paths.size(); ++i) {
      EXPECT_EQ(range_of(reader, paths[i], 0, 3), std::to_string(i) + "ab");
      EXPECT_EQ(range_of(reader, paths[i], 4, 3), "def");
      EXPECT_EQ(open_below(folder.path()), std::min<int64_t>(3, round * 10 + static_cast<int64_t>(i) + 1));
    }
  }
  EXPECT_EQ(range_of(reader, paths[0], 7, 0), "");
}

TEST(RangeReader, ThreadsShareTheFiles) {
  const Folder folder;
  std::vector<std::string> paths, contents;
  for (uint64_t i = 0; i < 8; ++i) {
    contents.push_back(random_bytes(i, 10'000));
    paths.push_back(folder.write("f" + std::to_string(i), contents.back()));
  }
  const RangeReader reader(2);
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (uint64_t thread = 0; thread < 6; ++thread) {
      threads.emplace_back([&, thread] {
        RandomStream draws(random_key({thread}));
        for (int i = 0; i < 300; ++i) {
          const size_t file = draws.below(8), offset = draws.below(9'000), size = draws.below(1'000);
          wrong += range_of(reader, paths[file], offset, size) == contents[file].substr(offset, size) ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(open_below(folder.path()), 2);
}

TEST(RangeReader, WhatCannotBeReadIsAnError) {
  const Folder folder;
  const std::string path = folder.write("file", "0123456789");
  const RangeReader reader;
  EXPECT_ERROR(error_of([&] { range_of(reader, path, 8, 3); }), "DATA_UNREADABLE_FILE", "file: it ends at byte 10");
  EXPECT_ERROR(error_of([&] { range_of(reader, path, 100, 1); }), "DATA_UNREADABLE_FILE", "it ends at byte 100");
  EXPECT_ERROR(error_of([&] { range_of(reader, folder.path("none"), 0, 1); }), "DATA_UNREADABLE_FILE", "none");
  EXPECT_ERROR(error_of([&] { range_of(reader, folder.path(), 0, 1); }), "DATA_UNREADABLE_FILE", "it is no file");
}

}  // namespace
}  // namespace sinew::data
