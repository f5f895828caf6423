// While an object of this class lives, only the user of this process can read the files that the process creates. The
// umask belongs to the whole process, so files that other threads create are private, too.
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
