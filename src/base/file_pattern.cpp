#include "base/file_pattern.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "base/wildcards.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostNamed = 1'000'000;
constexpr uint64_t kMostBytes = 1ULL << 28;  // of all names together
constexpr size_t kMostRanges = 8;
constexpr size_t kMostDigits = 20;  // those of the largest number

// A range {FIRST..LAST} within a text.
struct Braces {
  size_t begin = 0, end = 0;
  uint64_t first = 0, last = 0;
  size_t digits = 0;  // of FIRST
};

bool whole(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Returns the first range that begins at `from` or later.
std::optional<Braces> first_braces(std::string_view text, size_t from = 0) {
  for (size_t open = text.find('{', from); open != std::string_view::npos; open = text.find('{', open + 1)) {
    const size_t close = text.find('}', open), dots = text.find("..", open);
    if (close == std::string_view::npos) return std::nullopt;
    if (dots == std::string_view::npos || dots > close) continue;
    const std::string_view first = text.substr(open + 1, dots - open - 1),
                           last = text.substr(dots + 2, close - dots - 2);
    Braces found{open, close + 1, 0, 0, first.size()};
    if (whole(first, found.first) && whole(last, found.last) && found.first <= found.last) return found;
  }
  return std::nullopt;
}

[[noreturn]] void refuse_pattern(const std::string& pattern, const std::string& why) {
  throw Error("DATA_BAD_SOURCE", printable_start(pattern, 200) + ": the pattern " + why,
              "correct the numbers in its braces");
}

// Returns all ranges of the pattern. Refuses one whose names would not fit into the memory, before any name is made.
std::vector<Braces> ranges_of(const std::string& pattern) {
  std::vector<Braces> ranges;
  uint64_t names = 1;
  for (auto found = first_braces(pattern); found; found = first_braces(pattern, found->end)) {
    if (ranges.size() == kMostRanges) refuse_pattern(pattern, "has more than 8 ranges");
    if (found->digits > kMostDigits) refuse_pattern(pattern, "has a number of more than 20 digits");
    const uint64_t more = found->last - found->first;
    if (more >= kMostNamed || names * (more + 1) > kMostNamed)
      refuse_pattern(pattern, "names more than a million files");
    names *= more + 1;
    ranges.push_back(*found);
  }
  if (names * (pattern.size() + ranges.size() * kMostDigits) > kMostBytes)
    refuse_pattern(pattern, "names files with more than 256 MiB of names");
  return ranges;
}

// The last range counts fastest.
std::vector<std::string> names_of_ranges(const std::string& pattern, const std::vector<Braces>& ranges) {
  std::vector<std::string> names = {""};
  size_t end = 0;  // of the part of the pattern that the names have
  for (const Braces& range : ranges) {
    std::vector<std::string> longer;
    longer.reserve(names.size() * static_cast<size_t>(range.last - range.first + 1));
    for (const std::string& name : names) {
      const std::string start = name + pattern.substr(end, range.begin - end);
      for (uint64_t offset = 0; offset <= range.last - range.first; ++offset) {
        const std::string number = std::to_string(range.first + offset);
        longer.push_back(start + std::string(range.digits - std::min(range.digits, number.size()), '0') + number);
      }
    }
    names = std::move(longer);
    end = range.end;
  }
  for (std::string& name : names) name += pattern.substr(end);
  return names;
}

}  // namespace

bool is_file_pattern(const std::string& path) {
  if (path.size() > PATH_MAX) return false;  // no file can have such a path
  std::error_code ignored;
  return (path.find_first_of("*?") != std::string::npos || first_braces(path)) && !fs::exists(path, ignored);
}

std::vector<std::string> files_of_pattern(const std::string& path) {
  if (path.size() > PATH_MAX)
    throw Error("DATA_BAD_SOURCE",
                printable_start(path, 200) + ": the pattern has more bytes than a path can have (" +
                    std::to_string(PATH_MAX) + ")",
                "shorten it");
  if (const std::vector<Braces> ranges = ranges_of(path); !ranges.empty()) return names_of_ranges(path, ranges);
  const fs::path whole(path);
  const std::string pattern = whole.filename().string();
  const bool here = !whole.has_parent_path();
  std::vector<std::string> files;
  std::error_code code;
  for (fs::directory_iterator it(here ? fs::path(".") : whole.parent_path(), code), end; !code && it != end;
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') != pattern.starts_with('.') || !fits_wildcards(name, pattern, {'*', '?'})) continue;
    if (it->is_regular_file(ignored)) files.push_back(here ? name : (whole.parent_path() / name).string());
  }
  if (code)
    throw Error("DATA_FILE_UNREADABLE", "cannot list the folder of " + path + ": " + code.message(),
                "check the path: it is relative to the directory in which the command runs");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace sinew
