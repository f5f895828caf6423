// Ends a task whose output has no reader any more.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "worker/tasks.h"

namespace sinew::worker {

void output_failed() {
  if (errno == EPIPE) std::_Exit(128 + SIGPIPE);  // this process ignores the signal, which would have ended it
  throw Error("OUTPUT_FAILED", "cannot write to standard output",
              "check the file or program that receives it, or give -o FILE");
}

void flush_stdout() {
  if (std::fflush(stdout) != 0) output_failed();
}

}  // namespace sinew::worker
