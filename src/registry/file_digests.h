// Inside registry/: SHA-256 of files, remembered.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace sinew::registry {

struct FileFacts {
  int64_t bytes = 0, inode = 0, device = 0, modified_ns = 0, changed_ns = 0;
  bool operator==(const FileFacts&) const = default;
};
FileFacts look_at(const std::string& path);  // throws Error when it is not there, or no file

// A file that holds what was computed: a digest is believed while size, inode, device and both times are what they
// were. Of files that are asked for all are remembered, of others some. A file changed in the last two seconds may
// change again within one tick of its times: it is not remembered.
class FileDigests {
 public:
  FileDigests(std::string cache, Clock& clock);
  bool knows(const std::string& path, const FileFacts& facts);
  std::string digest(const std::string& path, const FileFacts& facts);
  void save();  // durably; what can not be saved is computed again

 private:
  struct Entry {
    FileFacts facts;
    std::string digest;
    bool asked_for = false;  // since it was read
  };
  std::string cache_;
  Clock& clock_;
  std::map<std::string, Entry> entries_;
  bool changed_ = false;
};

}  // namespace sinew::registry
