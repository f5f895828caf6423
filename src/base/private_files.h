// While one lives, files that this process makes are its user's alone: there is no moment at which others could read
// them. The mask is the whole process's, other threads' files are made under it, too.
#pragma once

#include <sys/stat.h>

namespace sinew {

class PrivateFiles {
 public:
  PrivateFiles() : before_(::umask(077)) {}
  ~PrivateFiles() { ::umask(before_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  mode_t before_;
};

}  // namespace sinew
