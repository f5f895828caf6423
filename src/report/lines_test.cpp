#include "report/lines.h"

#include <gtest/gtest.h>

#include "base/faulty_disk.h"
#include "base/random.h"
#include "base/write_fence.h"
#include "report/metric_lines.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

using namespace testing;

std::string record(int64_t step) {
  return "{\"step\":" + std::to_string(step) + ",\"a\":1}";
}

void write(Disk::File& file, std::string_view text) {
  file.write(std::as_bytes(std::span(text)));
}

std::string cut(const std::string& text, int64_t step) {
  const TemporaryDirectory directory;
  write_file(directory / "x", text);
  const auto file = go_on_after(system_disk(), directory / "x", Step(step), step_of_line);
  file->write({});
  return read_file(directory / "x");
}

TEST(Lines, reads_the_same_lines_wherever_chunks_end) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomStream random(random_key({seed}));
    const TemporaryDirectory directory;
    std::string text;
    std::vector<std::string> lines;
    while (text.size() < 600'000) {
      lines.emplace_back(1 + random.below(random.below(20) == 0 ? 300'000 : 100),
                         static_cast<char>('a' + random.below(26)));
      text += lines.back() + "\n";
    }
    const bool torn = random.below(2) == 0;
    if (torn) text.pop_back();
    write_file(directory / "x", text);
    size_t seen = 0;
    for_each_line(directory / "x", [&](const Line& line) {
      ASSERT_LT(seen, lines.size());
      EXPECT_EQ(line.text, lines[seen]);
      EXPECT_EQ(line.number, static_cast<int64_t>(++seen));
      EXPECT_EQ(line.whole, !(torn && seen == lines.size()));
      EXPECT_EQ(line.end == text.size(), seen == lines.size());
    });
    EXPECT_EQ(seen, lines.size());
  }
}

TEST(Lines, cut_keeps_records_up_to_the_step) {
  const std::string kept = record(1) + "\n" + record(5) + "\n" + record(5) + "\n";
  EXPECT_EQ(cut(kept + record(6) + "\n" + record(9) + "\n", 5), kept);
  EXPECT_EQ(cut(kept, 5), kept);
  EXPECT_EQ(cut(kept, 100), kept);
  EXPECT_EQ(cut(kept, 0), "");
  EXPECT_EQ(cut("", 3), "");
}

TEST(Lines, cut_drops_a_torn_end_and_completes_a_full_record) {
  const std::string kept = record(1) + "\n";
  const std::string next = record(2);
  for (size_t length = 1; length < next.size(); ++length)
    EXPECT_EQ(cut(kept + next.substr(0, length), 9), kept) << length;
  EXPECT_EQ(cut(kept + next, 9), kept + next + "\n");
  EXPECT_EQ(cut(kept + next, 1), kept);
  EXPECT_EQ(cut(kept + std::string(4096, '\0'), 9), kept);  // after a power failure, a file system may leave zeros
}

TEST(Lines, a_line_without_step_is_kept_or_dropped_with_the_line_before) {
  EXPECT_EQ(cut(record(1) + "\nrubbish\n" + record(3) + "\nrubbish\n", 1), record(1) + "\nrubbish\n");
}

TEST(Lines, cut_drops_late_records_out_of_order) {
  const std::string one = record(1) + "\n", two = record(2) + "\n", nine = record(9) + "\n";
  EXPECT_EQ(cut(one + nine + two + nine, 2), one + two);
  EXPECT_EQ(cut(nine + one, 2), one);
}

// A writer of a run directory replaces the file of the earlier writer, who may have it open, by a copy.
TEST(Lines, a_writer_that_takes_over_copies_a_file_once) {
  const std::string one = record(1) + "\n", five = record(5) + "\n", path = "run/x";
  for (const int64_t last : {1, 5}) {
    FaultyDisk disk;
    disk.make_directories("run");
    write(*disk.create(path), one + five);
    WriteFence fence(disk, "run", 1);
    int copies = 0;
    disk.after_rename = [&](const std::string&, const std::string& to) { copies += to == path ? 1 : 0; };
    const auto file = go_on_after(fence, path, Step(last), step_of_line);
    EXPECT_EQ(copies, 1) << last;
    write(*file, five);
    EXPECT_EQ(read_text(disk, path), one + (last == 1 ? "" : five) + five);
  }
}

// The earlier writer appends a line before each call of the disk.
TEST(Lines, what_was_read_is_what_stays) {
  const std::string path = "run/x", line = record(1) + "\n", late = record(2) + "\n";
  for (int64_t k = 1, call = k; call >= k; ++k) {
    FaultyDisk disk;
    disk.make_directories("run");
    WriteFence first(disk, "run", 1), second(disk, "run", 2);
    const auto old = first.append(path);
    write(*old, line);
    call = 0;
    bool within = false;
    disk.before_call = [&] {
      if (within || ++call != k) return;
      within = true;
      write(*old, late);
      within = false;
    };
    std::string read;
    const auto file = go_on_after(second, path, Step(9), [&](std::string_view text) {
      read += std::string(text) + "\n";
      return step_of_line(text);
    });
    disk.before_call = nullptr;
    write(*old, late);
    EXPECT_EQ(read_text(disk, path), read) << k;
  }
}

TEST(Lines, ledger_lines_have_steps_too) {
  std::string line;
  append_ledger_line(line, 7, {1, 2});
  EXPECT_EQ(line, "{\"step\":7,\"digest\":\"00000000000000010000000000000002\"}\n");
  EXPECT_EQ(step_of_line(std::string_view(line).substr(0, line.size() - 1)), 7);
}

TEST(Lines, step_of_line_agrees_with_the_parser) {
  EXPECT_EQ(step_of_line("{\"step\":1,\"step\":2}"), 2);
  EXPECT_EQ(step_of_line("{\"step\":1,\"st\\u0065p\":2}"), 2);
  EXPECT_EQ(step_of_line("{\"a\":1,\"step\":2}"), 2);
  EXPECT_EQ(step_of_line("{\"step\":18446744073709551615}"), std::nullopt);
  EXPECT_EQ(step_of_line("{\"step\":-1}"), std::nullopt);
  EXPECT_EQ(step_of_line("{\"step\":1"), std::nullopt);
}

}  // namespace
}  // namespace sinew::report
