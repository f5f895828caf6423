#include "jobs/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace sinew::jobs {

OutputFile::OutputFile(std::string path, uint64_t most_bytes) : path_(std::move(path)), most_(most_bytes) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      most_(other.most_),
      size_(other.size_),
      lost_(other.lost_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      last_(other.last_) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool OutputFile::open() {
  if (descriptor_ >= 0) return true;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  struct stat facts {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0) return false;
  size_ = static_cast<uint64_t>(facts.st_size);
  return true;
}

bool OutputFile::rotate() {
  ::close(std::exchange(descriptor_, -1));
  return std::rename(path_.c_str(), (path_ + ".1").c_str()) == 0 || errno == ENOENT;
}

void OutputFile::write(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    if (!open()) break;
    // Switches the files between two lines. Cuts a line only if the rest of it would be longer than the limit.
    if (size_ >= most_ && (last_ == '\n' || size_ >= 2 * most_)) {
      if (!rotate()) break;
      continue;
    }
    std::string_view piece = bytes;
    if (size_ + piece.size() > most_) {
      const size_t room = size_ < most_ ? most_ - size_ : 0;
      const size_t line_end = piece.find('\n', room == 0 ? 0 : room - 1);
      piece = piece.substr(0, line_end == std::string_view::npos ? piece.size() : line_end + 1);
      piece = piece.substr(0, 2 * most_ - size_);
    }
    const ssize_t done = ::write(descriptor_, piece.data(), piece.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;
    size_ += static_cast<uint64_t>(done);
    last_ = bytes[static_cast<size_t>(done) - 1];
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  lost_ += bytes.size();
}

}  // namespace sinew::jobs
