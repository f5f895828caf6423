// Inside registry/: computes the SHA-256 of data files and caches it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace sinew::registry {

inline constexpr size_t kReadBytes = 1 << 20;  // files are read in blocks of this size

inline constexpr const char* kPathsHint = "check the paths of the job's data";

struct FileStamp {
  int64_t bytes = 0, inode = 0, device = 0, modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::string& path);  // throws Error if the path does not exist or is not a regular file

// Caches digests in one file. A cached digest is valid while the file's size, inode, device and both its times are
// unchanged. save() keeps all entries that this process used, and a limited number of others. If a file changed less
// than two seconds before it was read, its digest is not cached: the file may change again within one tick of its
// times.
class FileDigests {
 public:
  FileDigests(std::string cache, Clock& clock);
  bool knows(const std::string& path, const FileStamp& facts);
  std::string digest(const std::string& path, const FileStamp& facts);
  void save();  // durable; ignores errors, because lost digests can be computed again

 private:
  struct Entry {
    FileStamp facts;
    std::string digest;
    bool asked_for = false;  // true: this process used the entry
  };
  std::string cache_;
  Clock& clock_;
  std::map<std::string, Entry> entries_;
  bool changed_ = false;
};

}  // namespace sinew::registry
