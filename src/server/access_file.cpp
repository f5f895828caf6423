#include "server/access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/disk.h"

namespace sinew::server {

AccessFile::AccessFile(std::string path, int64_t max_bytes, int kept)
    : path_(std::move(path)), max_bytes_(max_bytes), kept_(kept) {
  open();
  if (descriptor_ >= 0) return;
  const int code = errno;
  throw DiskError("cannot open the access log " + path_ + ": " + std::strerror(code),
                  "name another file with --access-log", code);
}

AccessFile::~AccessFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AccessFile::open() {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  struct stat facts {};
  bytes_ = descriptor_ >= 0 && ::fstat(descriptor_, &facts) == 0 ? facts.st_size : 0;
}

void AccessFile::rotate() {
  if (descriptor_ >= 0) ::close(descriptor_);
  for (int number = kept_ - 1; number >= 1; --number)
    (void)std::rename((path_ + "." + std::to_string(number)).c_str(),
                      (path_ + "." + std::to_string(number + 1)).c_str());
  (void)std::rename(path_.c_str(), (path_ + ".1").c_str());
  open();
}

void AccessFile::write(const std::string& line) {
  const std::string text = line + "\n";
  const auto size = static_cast<int64_t>(text.size());
  const std::lock_guard lock(mutex_);
  if (bytes_ > 0 && bytes_ + size > max_bytes_) rotate();
  if (descriptor_ < 0) open();
  if (descriptor_ >= 0 && ::write(descriptor_, text.data(), text.size()) > 0) bytes_ += size;
}

}  // namespace sinew::server
