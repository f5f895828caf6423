#include "base/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

namespace sinew {
namespace {

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;

mode_t type_of(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 ? facts.st_mode & S_IFMT : 0;
}

std::expected<BeneathFile, int> opened(int descriptor) {
  if (descriptor < 0) return std::unexpected(errno);
  return BeneathFile(descriptor);
}

// Returns nullopt if the system does not offer openat2.
std::optional<std::expected<BeneathFile, int>> open_by_openat2(int directory, const std::string& path) {
  open_how how{};
  how.flags = kReadFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  for (int tries = 0; tries < 100; ++tries) {
    const long descriptor = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (descriptor >= 0) return BeneathFile(static_cast<int>(descriptor));
    // EAGAIN: another process renamed a directory meanwhile. EPERM: a sandbox does not know this call.
    if (errno == EAGAIN || errno == EINTR) continue;
    if (errno == ENOSYS || errno == EPERM || errno == E2BIG) return std::nullopt;
    return std::unexpected(errno);
  }
  return std::unexpected(EAGAIN);
}

}  // namespace

BeneathFile::~BeneathFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool BeneathFile::is_directory() const {
  return type_of(descriptor_) == S_IFDIR;
}

bool BeneathFile::is_regular() const {
  return type_of(descriptor_) == S_IFREG;
}

std::expected<BeneathFile, int> open_directory(const std::string& path) {
  return opened(::open(path.c_str(), kReadFlags | O_DIRECTORY));
}

std::expected<BeneathFile, int> open_beneath_by_parts(const BeneathFile& directory, const std::string& path) {
  if (path.starts_with('/')) return std::unexpected(EXDEV);
  auto at = opened(::openat(directory.descriptor(), ".", kReadFlags | O_DIRECTORY));
  std::optional<BeneathFile> current;
  if (!at) return at;
  current.emplace(*std::move(at));
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") return std::unexpected(EXDEV);
    const bool last = path.find_first_not_of('/', end) == std::string::npos;
    // With O_NOFOLLOW | O_DIRECTORY the kernel answers ENOTDIR to a link. The caller gets ELOOP instead, as from
    // openat2.
    struct stat facts {};
    if (::fstatat(current->descriptor(), part.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(facts.st_mode))
      return std::unexpected(ELOOP);
    auto next =
        opened(::openat(current->descriptor(), part.c_str(), kReadFlags | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
    if (!next) return next;
    current.emplace(*std::move(next));
  }
  return *std::move(current);
}

std::expected<BeneathFile, int> open_beneath(const BeneathFile& directory, const std::string& path) {
  if (auto file = open_by_openat2(directory.descriptor(), path.empty() ? "." : path)) return *std::move(file);
  return open_beneath_by_parts(directory, path);
}

}  // namespace sinew
