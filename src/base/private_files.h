// While an object of this class lives, only the user of this process can read the files that the process creates, from
// the moment of their creation. The umask belongs to the whole process, so it also affects files of other threads.
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
