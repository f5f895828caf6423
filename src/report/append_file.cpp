#include "report/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sinew::report {
namespace {

constexpr size_t kMaxWaiting = 8 << 20;

}  // namespace

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AppendFile::append(std::string_view record) {
  if (waiting_.size() + record.size() > kMaxWaiting) flush();
  if (waiting_.size() + record.size() > kMaxWaiting) {
    ++dropped_;
    why_dropped_ = refused_ ? "another process writes the files of this run now" : std::strerror(code_);
    return;
  }
  waiting_.append(record);
}

bool AppendFile::open() {
  if (descriptor_ >= 0) return true;
  do {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  } while (descriptor_ < 0 && errno == EINTR);
  return descriptor_ >= 0;
}

void AppendFile::flush() noexcept {
  if (waiting_.empty()) return;
  refused_ = may_write_ && !may_write_();
  if (refused_) return;
  if (!open()) {
    code_ = errno;
    return;
  }
  size_t done = 0;
  code_ = 0;
  while (done < waiting_.size()) {
    const ssize_t written = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      code_ = written < 0 ? errno : EIO;
      break;
    }
    done += static_cast<size_t>(written);
  }
  waiting_.erase(0, done);
}

std::string AppendFile::trouble() const {
  if (code_ != 0) {
    std::string text = "cannot write " + path_ + ": " + std::strerror(code_);
    if (dropped_ > 0) text += " (" + std::to_string(dropped_) + " records lost)";
    return text;
  }
  if (dropped_ > 0) {
    return std::to_string(dropped_) + " records are missing from " + path_ + ": " + why_dropped_;
  }
  return other_trouble_;
}

}  // namespace sinew::report
