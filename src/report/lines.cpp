#include "report/lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/disk.h"

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

struct Range {
  uint64_t begin = 0, end = 0;
};

std::string read_range(int descriptor, const std::string& path, Range range) {
  std::string text(range.end - range.begin, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        ::pread(descriptor, text.data() + done, text.size() - done, static_cast<off_t>(range.begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

// Replaces the file by a new one with only the kept ranges. This is necessary if they are not the beginning of the
// file, because its records were out of order.
void rewrite(const std::string& path, const std::vector<Range>& kept) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) fail("read", path, errno);
  std::string text;
  for (const Range& range : kept) text += read_range(file.value, path, range);
  write_durably(system_disk(), path, text);
}

// Opens the file first, because truncate(2) is forbidden in the sandbox of a worker.
void truncate(const std::string& path, uint64_t size) {
  const Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (file.value < 0 || ::ftruncate(file.value, static_cast<off_t>(size)) < 0) fail("truncate", path, errno);
}

void end_with_newline(const std::string& path) {
  const auto file = system_disk().append(path);
  const char newline = '\n';
  file->write(std::as_bytes(std::span(&newline, 1)));
  file->close();
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

void cut_after(const std::string& path, Step step,
               const std::function<std::optional<int64_t>(std::string_view)>& step_of) {
  std::vector<Range> kept;
  uint64_t previous_end = 0;
  bool keep = true, unfinished = false, torn = false;
  const auto place = [&](uint64_t end, bool stays) {  // keeps or drops the bytes from previous_end to `end`
    if (stays && !kept.empty() && kept.back().end == previous_end) {
      kept.back().end = end;
    } else if (stays) {
      kept.push_back({previous_end, end});
    }
    previous_end = end;
  };
  for_each_line(path, [&](const Line& line) {
    const std::optional<int64_t> its = line.too_long ? std::nullopt : step_of(line.text);
    if (its) keep = *its <= step.value;
    torn = !line.whole && !its;
    unfinished = !line.whole && its && keep;
    place(line.end, keep && !torn);
  });
  if (previous_end == 0) return;
  if (kept.size() > 1 || (!kept.empty() && kept[0].begin > 0)) {
    rewrite(path, kept);
  } else {
    truncate(path, kept.empty() ? 0 : kept.back().end);
  }
  if (unfinished) end_with_newline(path);
}

}  // namespace sinew::report
