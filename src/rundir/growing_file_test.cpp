#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/random.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

TEST(GrowingFile, GivesEachLineOnceHoweverTheFileIsCutAndGrows) {
  const std::string folder = testing::TempDir() + "growing-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(RandomKey{seed});
    const std::string path = folder + "/f" + std::to_string(seed);
    std::string file, seen;
    FilePosition position;
    for (int turn = 0; turn < 60; ++turn) {
      if (random.below(6) == 0) file.resize(random.below(file.size() + 1));
      for (uint64_t lines = random.below(5); lines > 0; --lines)
        file +=
            std::to_string(random.bits64()) + std::string(random.below(40), 'x') + (random.below(8) == 0 ? "" : "\n");
      std::ofstream(path, std::ios::binary) << file;
      FilePiece piece;
      do {
        piece = read_piece(path, position, 64 + static_cast<int64_t>(random.below(300)));
        if (piece.cut_back) seen.clear();
        seen += piece.text;
        position = piece.after;
      } while (piece.more);
      const size_t end = file.rfind('\n');
      std::string expected = end == file.npos ? "" : file.substr(0, end + 1);
      if (piece.too_long == 0 && seen != expected) {  // the reader skips lines that are longer than a piece
        size_t at = 0;
        for (size_t from = 0; from < expected.size();) {
          const size_t to = expected.find('\n', from) + 1;
          if (seen.compare(at, to - from, expected, from, to - from) == 0)
            at += to - from;
          else
            ASSERT_GT(to - from, 64u) << seed << " " << turn;
          from = to;
        }
        ASSERT_EQ(at, seen.size());
      }
    }
  }
}

// If a file is cut and then grows beyond its old size, its size does not show the cut. Only its content does.
TEST(GrowingFile, SeesACutThatGrewPastTheOldEnd) {
  const std::string path = testing::TempDir() + "cut-" + std::to_string(::getpid());
  std::ofstream(path) << "a1\na2\na3\n";
  GrowingFile file(path);
  EXPECT_EQ(file.next().lines, (std::vector<std::string>{"a1", "a2", "a3"}));
  std::ofstream(path) << "a1\nb2\nb3\nb4\n";
  const auto news = file.next();
  EXPECT_TRUE(news.cut_back);
  EXPECT_EQ(news.lines, (std::vector<std::string>{"a1", "b2", "b3", "b4"}));
  std::ofstream(path, std::ios::app) << "b5\nhalf";
  const auto more = file.next();
  EXPECT_FALSE(more.cut_back);
  EXPECT_EQ(more.lines, (std::vector<std::string>{"b5"}));
  EXPECT_TRUE(file.next().lines.empty());
}

// A writer that takes over a run replaces the file by a copy. The path then leads to another file.
TEST(GrowingFile, GoesOnInTheCopyThatANewWriterMakes) {
  const std::string path = testing::TempDir() + "copied-" + std::to_string(::getpid());
  const auto replace = [&](const std::string& text) {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  };
  std::ofstream old(path);
  old << "a1\na2\n" << std::flush;
  GrowingFile file(path);
  EXPECT_EQ(file.next().lines, (std::vector<std::string>{"a1", "a2"}));
  replace("a1\na2\na3\n");
  old << "late\n" << std::flush;
  auto news = file.next();
  EXPECT_FALSE(news.cut_back);
  EXPECT_EQ(news.lines, (std::vector<std::string>{"a3"}));
  replace("a1\nb2\nb3\n");  // cut after a1
  news = file.next();
  EXPECT_TRUE(news.cut_back);
  EXPECT_EQ(news.lines, (std::vector<std::string>{"a1", "b2", "b3"}));
}

}  // namespace
}  // namespace sinew::rundir
