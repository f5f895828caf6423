#include "cluster/standby.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/signals.h"
#include "cluster/coordinator.h"
#include "cluster/run_log.h"
#include "rundir/rundir.h"

namespace sinew::cluster {
namespace {

constexpr double kLookSeconds = 0.2;
constexpr double kQuietSeconds = 1;  // if a coordinator has answered within this time, the files are not read
constexpr double kEndSeconds = 10;   // how long wait_for_end() waits for the members to learn that the run is over

}  // namespace

struct Standby::Impl {
  const StandbyOptions options;
  const StandbyMember member;
  Clock& clock;
  RunLog log;
  SignalQueue stop;
  std::string last_line;                // the last line that note() wrote
  std::optional<CoordinatorInfo> file;  // coordinator.json when it last changed
  double file_since = 0;

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, leading = false;
  std::thread thread;

  Impl(StandbyOptions given, StandbyMember the_member, Clock& the_clock)
      : options(std::move(given)),
        member(std::move(the_member)),
        clock(the_clock),
        log(options.run_directory, "standby", the_clock),
        file_since(the_clock.monotonic_seconds()) {}

  // Writes a line for the log, unless it is the same as the last one.
  void note(const std::string& line) {
    if (std::exchange(last_line, line) != line) log.write(line);
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      changed.wait_for(lock, std::chrono::duration<double>(kLookSeconds), [&] { return stopping; });
      if (stopping) return;
      lock.unlock();
      const bool over = look();
      lock.lock();
      if (over) return;
    }
  }

  // Returns true if this member has nothing more to stand by for.
  bool look() try {
    if (member.unled_seconds() < kQuietSeconds) return false;
    Candidate now = member.candidate();
    now.same_file_seconds = seconds_of_the_same_file();
    const ElectionStep step = next_election_step(now, options.election);
    return step.stand && stand(step.why);
  } catch (const std::exception& error) {  // the disk may be full, or the machine may have no descriptor left
    note(std::string("cannot lead the run: ") + error.what());
    return false;
  }

  double seconds_of_the_same_file() {
    const auto found = coordinator_info_now(options.run_directory);
    const auto key = [](const CoordinatorInfo& info) { return std::tie(info.url, info.pid, info.incarnation); };
    const double now = clock.monotonic_seconds();
    if (found && (!file || key(*found) != key(*file))) {
      file = found;
      file_since = now;
    }
    return now - file_since;
  }

  bool stand(const std::string& why) {
    const auto lock = rundir::RunLock::take(options.run_directory, clock);
    if (!lock) {
      note("no election: " + lock.error());
      return false;
    }
    const Candidate now = member.candidate();  // a coordinator may have answered meanwhile
    const Candidate& me = now;
    const std::string refused = me.out ? "this member's part in the run is over"
                                : me.unled_seconds < options.election.wait_seconds
                                    ? "a coordinator has answered"
                                    : why_not_elected(me, read_run_record(options.run_directory));
    if (!refused.empty()) {
      note("member " + std::to_string(me.me.value) + " does not lead: " + refused);
      return false;
    }
    return lead(me, why);
  }

  // Returns true if the run is over.
  bool lead(const Candidate& me, const std::string& why) {
    set_leading(true);
    const std::string said = "member " + std::to_string(me.me.value) + " leads the run now: " + why +
                             ", and nobody holds the run directory's lock";
    log.write(said);
    if (options.say) options.say(said + "; sinew join adds workers, and no process starts them again");
    RunCoordinatorOptions run;
    run.run_directory = options.run_directory;
    run.job = options.job;
    run.workers = me.view ? static_cast<int64_t>(me.view->computing().size()) : 1;
    run.listen = options.listen;
    run.advertise = options.advertise;
    run.elected = true;
    run.keep_address = options.keep_address;
    run.log = [this](const std::string& line) { log.write(line); };
    int code = kRejoin;
    try {
      code = run_coordinator(run, stop, clock);
    } catch (...) {
      set_leading(false);
      throw;
    }
    set_leading(false);
    if (code != kRejoin) return true;
    if (options.say) options.say("another coordinator leads the run; this member steps down");
    return false;
  }

  void set_leading(bool now) {
    const std::lock_guard lock(mutex);
    leading = now;
    changed.notify_all();
  }
};

Standby::Standby(StandbyOptions options, StandbyMember member, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(member), clock)) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Standby::~Standby() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->stop.send(SIGTERM);
  impl_->thread.join();
}

void Standby::wait_for_end() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait_for(lock, std::chrono::duration<double>(kEndSeconds), [&] { return !impl_->leading; });
}

}  // namespace sinew::cluster
