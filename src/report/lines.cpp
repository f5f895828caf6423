#include "report/lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

namespace sinew::report {
namespace {

constexpr size_t kLongestLine = 1 << 20;
constexpr size_t kChunk = 256 << 10;

[[noreturn]] void fail(const std::string& verb, const std::string& path, int code) {
  throw DiskError("cannot " + verb + " " + path + ": " + std::strerror(code), "", code);
}

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

// Splits chunks into lines. A line may span several chunks; at most a megabyte of it is kept.
class LineSplitter {
 public:
  explicit LineSplitter(const std::function<void(const Line&)>& visit) : visit_(visit) {}

  void take(std::string_view chunk) {
    while (!chunk.empty()) {
      const size_t newline = chunk.find('\n');
      const std::string_view part = chunk.substr(0, newline);
      if (newline != std::string_view::npos && held_.empty() && part.size() <= kLongestLine) {
        emit(part, part.size() + 1, true);  // usually a line is within one chunk and needs no copy
      } else {
        length_ += part.size();
        if (held_.size() < kLongestLine) held_.append(part.substr(0, kLongestLine - held_.size()));
        if (newline != std::string_view::npos) finish(true);
      }
      chunk.remove_prefix(newline == std::string_view::npos ? chunk.size() : newline + 1);
    }
  }
  void finish(bool whole) {
    if (length_ > 0 || whole) emit(held_, length_ + (whole ? 1 : 0), whole);
    held_.clear();
    length_ = 0;
  }

 private:
  void emit(std::string_view text, uint64_t length, bool whole) {
    offset_ += length;
    Line line{text, ++number_, offset_, whole, length > kLongestLine + 1};
    if (text.ends_with('\r')) line.text.remove_suffix(1);
    if (!line.text.empty()) visit_(line);
  }

  const std::function<void(const Line&)>& visit_;
  std::string held_;
  uint64_t length_ = 0, offset_ = 0;
  int64_t number_ = 0;
};

// The name of a copy of the file, until it replaces the file.
std::string hidden_beside(const std::string& path) {
  const std::filesystem::path target(path);
  return (target.parent_path() / ("." + target.filename().string() + ".kept")).string();
}

// What a file keeps of its lines.
struct Kept {
  std::vector<Range> ranges;
  uint64_t end = 0;         // the size of the file
  bool unfinished = false;  // the last line that is kept has no newline

  bool all() const { return end == 0 || (ranges.size() == 1 && ranges[0].begin == 0 && ranges[0].end == end); }
};

Kept kept_lines(Disk& disk, const std::string& path, Step step,
                const std::function<std::optional<int64_t>(std::string_view)>& step_of) {
  Kept kept;
  bool keep = true, torn = false;
  const auto place = [&](uint64_t end, bool stays) {  // keeps or drops the bytes from kept.end to `end`
    if (stays && !kept.ranges.empty() && kept.ranges.back().end == kept.end) {
      kept.ranges.back().end = end;
    } else if (stays) {
      kept.ranges.push_back({kept.end, end});
    }
    kept.end = end;
  };
  for_each_line(disk, path, [&](const Line& line) {
    const std::optional<int64_t> its = line.too_long ? std::nullopt : step_of(line.text);
    if (its) keep = *its <= step.value;
    torn = !line.whole && !its;
    kept.unfinished = !line.whole && its && keep;
    place(line.end, keep && !torn);
  });
  return kept;
}

}  // namespace

void for_each_line(const std::string& path, const std::function<void(const Line&)>& visit) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) {
    if (errno == ENOENT) return;
    fail("read", path, errno);
  }
  struct stat facts {};
  if (::fstat(file.value, &facts) < 0) fail("examine", path, errno);
  if (!S_ISREG(facts.st_mode)) throw DiskError("cannot read " + path + ": it is not a regular file", "", EINVAL);
  LineSplitter splitter(visit);
  std::vector<char> chunk(kChunk);
  while (true) {
    const ssize_t got = ::read(file.value, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) break;
    splitter.take({chunk.data(), static_cast<size_t>(got)});
  }
  splitter.finish(false);
}

void for_each_line(Disk& disk, const std::string& path, const std::function<void(const Line&)>& visit) {
  if (!disk.exists(path)) return;
  LineSplitter splitter(visit);
  std::vector<std::byte> chunk(kChunk);
  uint64_t at = 0;
  while (const size_t got = disk.read_at(path, at, chunk)) {
    splitter.take({reinterpret_cast<const char*>(chunk.data()), got});
    at += got;
  }
  splitter.finish(false);
}

bool must_copy(Disk& disk, const std::string& path) {
  const std::string beside = hidden_beside(path);
  return disk.staging(beside) != beside;
}

std::unique_ptr<Disk::File> keep_ranges(Disk& disk, const std::string& path, const std::vector<Range>& kept) {
  const std::string copy = disk.staging(hidden_beside(path));
  auto file = disk.create(copy);
  try {
    for (const Range& range : kept) copy_bytes(disk, path, range.begin, range.end, *file);
    file->sync();
    disk.rename(copy, path);
  } catch (const DiskError&) {
    try {
      disk.remove_file(copy);  // it takes space, which may be what is missing
    } catch (const Error&) {   // the caller gets the first error
    }
    throw;
  }
  return file;
}

std::unique_ptr<Disk::File> go_on_after(Disk& disk, const std::string& path, Step step,
                                        const std::function<std::optional<int64_t>(std::string_view)>& step_of) {
  if (!disk.exists(path)) return nullptr;
  const bool copies = must_copy(disk, path);
  const Kept kept = kept_lines(disk, path, step, step_of);
  auto file = copies || !kept.all() ? keep_ranges(disk, path, kept.ranges) : disk.append(path);
  const char newline = '\n';
  if (kept.unfinished) file->write(std::as_bytes(std::span(&newline, 1)));
  return file;
}

}  // namespace sinew::report
