#include "study/processes.h"

#include <unistd.h>

#include "base/hex.h"
#include "base/process.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::study {
namespace {

constexpr double kBelieveSeconds = 1;

std::string processes_in(const std::string& directory) {
  return directory + "/.sinew/processes";
}

std::string own_name() {
  std::string name = host_name() + "-" + std::to_string(::getpid()) + "-" + random_hex(4);
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name;
}

}  // namespace

StudyProcess::StudyProcess(Disk& disk, std::string directory, Clock& clock)
    : disk_(disk), directory_(std::move(directory)), clock_(clock), name_(own_name()) {
  const auto turn = next_turn();  // nobody else sweeps while this one has made its place and not locked it yet
  forget_the_dead();
  const std::string own = processes_in(directory_) + "/" + name_;
  disk_.make_directories(own);
  auto lock = rundir::RunLock::take(own, clock_);
  if (!lock) throw Error(lock.error(), "is the study's directory on a file system with locks?");
  here_ = std::move(*lock);
}

StudyProcess::~StudyProcess() {
  try {
    disk_.remove_all(processes_in(directory_) + "/" + name_);
  } catch (const Error&) {
    // The next one sweeps it.
  }
}

void StudyProcess::forget_the_dead() const {
  if (!disk_.exists(processes_in(directory_))) return;
  for (const Disk::Entry& entry : disk_.list(processes_in(directory_))) {
    const std::string path = processes_in(directory_) + "/" + entry.name;
    if (!rundir::lock_is_held(path)) disk_.remove_all(path);
  }
}

std::optional<rundir::RunLock> StudyProcess::turn() const {
  auto lock = rundir::RunLock::take(directory_, clock_);
  if (!lock) return std::nullopt;
  return std::move(*lock);
}

rundir::RunLock StudyProcess::next_turn() const {
  const double began = clock_.monotonic_seconds();
  while (true) {
    auto lock = rundir::RunLock::take(directory_, clock_);
    if (lock) return std::move(*lock);
    if (clock_.monotonic_seconds() - began >= kTurnSeconds)
      throw Error(lock.error(), "its turn should be over in an instant: is it stopped?");
  }
}

bool StudyProcess::abandoned(const std::string& process, const std::string& run_directory) {
  const double now = clock_.monotonic_seconds();
  const auto [seen, first] = seen_.try_emplace(process);
  if (first || now - seen->second.at >= kBelieveSeconds) {
    const bool a_name = !process.empty() && process.find('/') == std::string::npos;
    seen->second = {now, a_name && rundir::lock_is_held(processes_in(directory_) + "/" + process)};
  }
  return !seen->second.alive && !rundir::lock_is_held(run_directory);
}

}  // namespace sinew::study
