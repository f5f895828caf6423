#include "cluster/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "rundir/rundir.h"

namespace sinew::cluster {

RunLog::RunLog(const std::string& run_directory, std::string writer, Clock& clock)
    : descriptor_(::open(rundir::file_in(run_directory, rundir::kCoordinatorLog).c_str(),
                         // The directory may come from elsewhere: no link is followed, and no pipe is waited for.
                         O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644)),
      writer_(std::move(writer)),
      clock_(clock) {}

RunLog::~RunLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RunLog::write(const std::string& sentence) {
  const std::string line = utc_iso(clock_.wall_seconds()) + " " + writer_ + ": " + sentence + "\n";
  if (descriptor_ >= 0) [[maybe_unused]]
    const ssize_t written = ::write(descriptor_, line.data(), line.size());
}

}  // namespace sinew::cluster
