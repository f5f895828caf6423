// Inside registry/: computes the SHA-256 of data files, with a cache.
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

// A cache of digests in one file. A cached digest is valid while size, inode, device, and both times of the file are
// unchanged. save() keeps all entries that this process used and a limited number of others. A file that changed less
// than two seconds before it was read is not cached, because it may change again within one tick of its times.
class FileDigests {
 public:
  FileDigests(std::string cache, Clock& clock);
  bool knows(const std::string& path, const FileStamp& facts);
  std::string digest(const std::string& path, const FileStamp& facts);
  void save();  // durable; ignores errors, because lost digests are computed again

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
