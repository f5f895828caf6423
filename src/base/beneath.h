// Opens files below a directory that other users or programs may write to.
//
// The server and the index use it for run directories. A path is resolved by one call, from a descriptor of the
// directory, so nobody can exchange a part of the path for a symbolic link between a check and the use: openat2(2) with
// RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS. Where the kernel (before 5.6) or a sandbox does not offer that call, each
// part of the path is opened by itself with O_NOFOLLOW from the descriptor of the part before, with the same effect.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace sinew {

// An open file or directory. The path goes through the descriptor, so whatever opens it gets the same file.
class BeneathFile {
 public:
  explicit BeneathFile(int descriptor) : descriptor_(descriptor) {}
  BeneathFile(BeneathFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  BeneathFile& operator=(BeneathFile&&) = delete;
  ~BeneathFile();
  int descriptor() const { return descriptor_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  bool is_directory() const;
  bool is_regular() const;

 private:
  int descriptor_;
};

// Opens a directory for reading. Follows symbolic links: the caller names the directory itself. Returns errno on
// failure.
std::expected<BeneathFile, int> open_directory(const std::string& path);
// Opens the file or directory at the relative path for reading. Returns errno on failure: ELOOP if a part of the path
// is a symbolic link, EXDEV if the path leaves the directory. Opening a pipe or a device does not wait.
std::expected<BeneathFile, int> open_beneath(const BeneathFile& directory, const std::string& path);
// The way without openat2, for tests.
std::expected<BeneathFile, int> open_beneath_by_parts(const BeneathFile& directory, const std::string& path);

}  // namespace sinew
