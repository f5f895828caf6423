#include "cli/group_log.h"

#include <fcntl.h>
#include <unistd.h>

namespace sinew::cli {

GroupLog::GroupLog(const std::string& run_directory, std::string who, Clock& clock)
    : descriptor_(
          ::open((run_directory + "/coordinator.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
      who_(std::move(who)),
      clock_(clock) {}

GroupLog::~GroupLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void GroupLog::write(const std::string& sentence) {
  const std::string line = utc_iso(clock_.wall_seconds()) + " " + who_ + ": " + sentence + "\n";
  if (descriptor_ >= 0) [[maybe_unused]]
    const ssize_t written = ::write(descriptor_, line.data(), line.size());
}

}  // namespace sinew::cli
