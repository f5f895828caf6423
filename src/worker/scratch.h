// A directory for a short run, which vanishes with this process, however it ends. Private to worker/.
#pragma once

#include <sys/types.h>

#include <string>

namespace sinew::worker {

// Another process removes the directory, once this one has ended or has destroyed the object: a process that is
// confined to the directory cannot remove it, and one that is killed removes nothing. Make it while this process has a
// single thread. Throws Error (PLAN_NO_SCRATCH).
class Scratch {
 public:
  Scratch();   // below TMPDIR
  ~Scratch();  // returns when the directory is gone
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int alive_ = -1;  // the other process sees the end of this pipe
  pid_t remover_ = -1;
};

}  // namespace sinew::worker
