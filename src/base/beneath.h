// Opens files below a directory that other users or programs may write to.
//
// The server and the index use it for run directories. Nobody can replace a part of the path by a symbolic link between
// a check and the use: one call, openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, resolves the whole path from
// a descriptor of the directory. Kernels before 5.6 and some sandboxes do not offer that call. Then each part of the
// path is opened with O_NOFOLLOW from the descriptor of the part before it, with the same effect.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace sinew {

// An open file or directory. path() names the descriptor, so code that opens this path gets the same file.
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
// Does the same without openat2. For tests.
std::expected<BeneathFile, int> open_beneath_by_parts(const BeneathFile& directory, const std::string& path);

}  // namespace sinew
