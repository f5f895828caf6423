// Runs a coordinator together with the files of its run directory.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "base/disk.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/process.h"
#include "base/write_fence.h"
#include "cluster/coordinator.h"
#include "cluster/coordinator_info.h"
#include "cluster/join_token.h"
#include "cluster/view_json.h"
#include "http/http.h"
#include "rundir/rundir.h"

namespace sinew::cluster {
namespace {

// Each incarnation of the coordinator may give this many ids and generations. The next one begins after them, so that
// no number is given twice.
constexpr int64_t kNumbersOfAnIncarnation = 1'000'000;
constexpr double kTickSeconds = 0.05;
constexpr int64_t kViewFileVersion = 2;
constexpr const char* kTlsScheme = "https://";

// Returns what a predecessor left in coordinator.json. Moves a damaged file aside, because this coordinator writes a
// new one. `incarnations` is the most coordinators that the run can have had; it is used if the file is damaged.
std::optional<CoordinatorInfo> predecessor(const std::string& run_directory, int64_t incarnations,
                                           const std::function<void(const std::string&)>& log) {
  try {
    return read_coordinator_info(run_directory);
  } catch (const DiskError&) {
    throw;
  } catch (const Error& error) {
    if (error.code != ErrorCode("COORDINATOR_FILE_INVALID")) throw;
    const std::string path = rundir::file_in(run_directory, rundir::kCoordinatorFile);
    const bool tls = read_text(system_disk(), path).find(kTlsScheme) != std::string::npos;
    log(std::string(error.what()) + "; it is kept as " + path + ".damaged, and a new one replaces it");
    system_disk().rename(path, path + ".damaged");
    CoordinatorInfo unknown;
    if (tls) unknown.url = kTlsScheme;  // a run that began with TLS keeps it
    unknown.pid = ::getpid();           // without an address: see has_ended()
    unknown.secret = new_secret();
    unknown.incarnation = incarnations;
    return unknown;
  }
}

// Reserves this incarnation's numbers on disk before it gives any of them. The file keeps the predecessor's url and pid
// until this coordinator listens. Until then the calls of members fail, and the members try again.
CoordinatorInfo begin_incarnation(const std::string& run_directory, Clock& clock,
                                  const std::function<void(const std::string&)>& log) {
  // A run has far fewer than one coordinator a minute. The minutes since 1970 are therefore more than the incarnation
  // of any predecessor.
  const auto minutes = static_cast<int64_t>(clock.wall_seconds() / 60);
  CoordinatorInfo info;
  if (const auto before = predecessor(run_directory, minutes, log)) {
    info = *before;
    info.incarnation = before->incarnation + 1;
    info.exit_code.reset();
  } else {
    info.secret = new_secret();
  }
  write_coordinator_info(run_directory, info);
  return info;
}

// Writes the newest view for the coordinator that replaces this one on this machine. The file is not synced, because
// the recovery from a lost member must not wait for a disk. If the disk is full, the next coordinator has to rely on
// what the members report.
void write_view(const std::string& path, const View& view) {
  Json json = {{"version", kViewFileVersion}};
  json.update(json_of(view));
  const std::string text = dump(json) + "\n";
  Disk& disk = system_disk();
  try {
    disk.remove_file(path + ".new");  // of a coordinator that was killed, or a link that somebody put there
    const auto file = disk.create_new(path + ".new");
    file->write(std::as_bytes(std::span(text)));
    file->close();
    disk.rename(path + ".new", path);
  } catch (const DiskError&) {
  }
}

// Returns nullopt if there is no view or the file is damaged, which can happen after a power failure. Version 1 had no
// "version".
std::optional<View> read_view(const std::string& path) {
  if (!system_disk().exists(path)) return std::nullopt;
  const auto json = parse_json(read_text(system_disk(), path));
  if (!json) return std::nullopt;
  const bool names_version = json->contains("version");
  if (!names_version && !json->contains("generation")) return std::nullopt;
  const auto version = names_version ? whole_of(*json, "version", 1) : std::optional<int64_t>(1);
  if (!version) return std::nullopt;
  if (*version != kViewFileVersion) {
    throw Error("COORDINATOR_FILE_VERSION",
                path + " has version " + std::to_string(*version) + ", and this program reads version " +
                    std::to_string(kViewFileVersion),
                "use the version of sinew that started the run, or stop the run and resume it");
  }
  return view_of(*json);
}

// Returns whether it is sure that this coordinator has ended, or that there was none. It is not sure if the file that
// named it was damaged: then it has a pid, which means nothing, and no address.
bool has_ended(const CoordinatorInfo& before) {
  if (before.pid == 0) return true;
  if (before.pid > std::numeric_limits<pid_t>::max() || !http::is_this_machine(http::host_of(before.url))) return false;
  return ::kill(static_cast<pid_t>(before.pid), 0) != 0 && errno == ESRCH;
}

// `info` has the address and the pid of the coordinator before.
CoordinatorOptions options_of(const RunCoordinatorOptions& given, const CoordinatorInfo& info,
                              const rundir::RunPlace& place) {
  CoordinatorOptions options;
  options.term = info.incarnation;
  options.confirm_seconds = kConfirmSeconds;
  if (!has_ended(info)) options.cluster.settle_seconds = kCautiousSettleSeconds;
  options.cluster.minimum = given.minimum;
  options.cluster.wanted = given.workers;
  options.most_workers = given.most;
  options.secret = info.secret;
  options.revoked = revoked_tokens(system_disk(), given.run_directory);
  options.tls = given.tls || info.with_tls();  // a run that began with TLS keeps it
  options.run_directory = given.run_directory;
  options.job = given.job;
  options.listen = given.listen;
  options.port = given.port;
  options.at_least = Generation(info.incarnation * kNumbersOfAnIncarnation);
  // A member that becomes the leader writes under its id. The ids are above those of all earlier writers, also of those
  // that trained alone.
  options.first_id = MemberId(std::max(info.incarnation * kNumbersOfAnIncarnation,
                                       WriteFence::highest_number(system_disk(), given.run_directory)));
  const std::string path = rundir::file_in(given.run_directory, rundir::kViewFile);
  options.last_view = read_view(path);
  options.on_view = [path, &place](const View& view) {
    if (place.lost().empty()) write_view(path, view);  // else the path may lead to the directory of another run
  };
  options.log = given.log;
  return options;
}

// Makes the coordinator. `old_url` is that of the coordinator before this one. If it can, it listens at the old port:
// workers that joined by a URL have no access to coordinator.json, so they know no other one.
std::unique_ptr<Coordinator> begin_to_listen(const RunCoordinatorOptions& given, const CoordinatorOptions& options,
                                             const std::string& old_url, Clock& clock) {
  const std::string host = http::host_of(old_url);
  if (given.keep_address && (given.elected || options.port == 0) && http::is_this_machine(host)) {
    CoordinatorOptions same = options;
    if (given.elected) same.listen = host;
    same.port = http::port_of(old_url);
    try {
      return std::make_unique<Coordinator>(same, clock);
    } catch (const Error&) {  // another process has the port
    }
  }
  return std::make_unique<Coordinator>(options, clock);
}

// Returns nullopt if the file is missing or damaged: then this coordinator writes it again. Throws Error if a later
// version wrote it, and DiskError if it cannot be read now.
std::optional<CoordinatorInfo> intact_info(const std::string& run_directory) {
  try {
    return read_coordinator_info(run_directory);
  } catch (const Error& error) {
    if (error.code != ErrorCode("COORDINATOR_FILE_INVALID")) throw;
    return std::nullopt;
  }
}

// What a look at the run directory tells a coordinator.
struct Look {
  bool leads = false;            // coordinator.json names this coordinator
  std::optional<int64_t> newer;  // the term of another coordinator that has taken over
  std::string trouble;           // why the look tells neither
};

// If an older coordinator wrote coordinator.json late, or the file is missing or damaged, writes it again. The next
// look then tells: a coordinator that has taken over does the same.
Look look_who_leads(const std::string& run_directory, const rundir::RunPlace& place, const CoordinatorInfo& own) try {
  Look look;
  look.trouble = place.lost();  // then the file may be that of another run
  if (!look.trouble.empty()) return look;
  const auto now = intact_info(run_directory);
  look.leads = now && now->incarnation == own.incarnation && now->pid == own.pid;
  if (look.leads) return look;
  if (now && now->incarnation >= own.incarnation) {
    look.newer = now->incarnation;
    return look;
  }
  write_coordinator_info(run_directory, own);
  look.trouble = now ? "an older coordinator wrote coordinator.json" : "coordinator.json was missing or damaged";
  return look;
} catch (const Error& error) {
  return {.trouble = error.what()};
}

// Looks now and then whether this coordinator still leads. A look that fails confirms nothing, so without a good one
// the coordinator soon decides nothing (CoordinatorOptions::confirm_seconds). If the looks fail for kBlindSeconds, it
// gives up.
class Lead {
 public:
  Lead(const std::string& run_directory, const rundir::RunPlace& place, CoordinatorInfo own,
       std::function<void(const std::string&)> log)
      : run_directory_(run_directory), place_(place), own_(std::move(own)), log_(std::move(log)) {}

  // Throws Error (COORDINATOR_LEAD_UNKNOWN) if it gives up.
  void check(Coordinator& coordinator, double now) {
    if (now < next_look_) return;
    next_look_ = now + kLookAtFileSeconds;
    const Look look = look_who_leads(run_directory_, place_, own_);
    if (look.newer) return coordinator.supersede(*look.newer);
    if (look.leads) {
      blind_since_.reset();
      return coordinator.confirm(now);
    }
    if (!blind_since_) {
      blind_since_ = now;
      log_("it is not known whether this coordinator still leads the run: " + look.trouble);
    }
    if (now - *blind_since_ < kBlindSeconds) return;
    throw Error("COORDINATOR_LEAD_UNKNOWN",
                "this coordinator ends, because it could not find out whether it still leads the run: " + look.trouble,
                "check the disk of the run directory; `sinew ps` shows whether another coordinator has begun");
  }

 private:
  const std::string run_directory_;
  const rundir::RunPlace& place_;
  const CoordinatorInfo own_;
  const std::function<void(const std::string&)> log_;
  double next_look_ = 0;
  std::optional<double> blind_since_;  // since when no look has told who leads
};

// Takes the lock of the directory. Returns nullopt if another process holds it or the directory cannot be locked. The
// coordinator then works without the lock; where there are no locks, members cannot elect another coordinator.
std::optional<rundir::RunLock> lock_if_free(const std::string& run_directory, Clock& clock) {
  if (rundir::lock_is_held(run_directory)) return std::nullopt;
  try {
    if (auto taken = rundir::RunLock::take(run_directory, clock)) return *std::move(taken);
  } catch (const Error&) {
  }
  return std::nullopt;
}

// Writes the address of a coordinator that listens. Returns false if another coordinator has begun meanwhile.
bool publish(const std::string& run_directory, const CoordinatorInfo& own) {
  const auto now = intact_info(run_directory);
  if (now && now->incarnation > own.incarnation) return false;
  write_coordinator_info(run_directory, own);
  return true;
}

}  // namespace

RunRecord read_run_record(const std::string& run_directory) {
  return {read_coordinator_info(run_directory), read_view(rundir::file_in(run_directory, rundir::kViewFile))};
}

std::string why_not_last(const std::string& run_directory, MemberId me) try {
  return why_not_last(read_run_record(run_directory), me);
} catch (const Error& error) {
  return error.what();
}

int run_coordinator(const RunCoordinatorOptions& options, SignalSource& stop, Clock& clock) {
  const auto log = [&](const std::string& line) {
    if (options.log) options.log(line);
  };
  const rundir::RunPlace place(options.run_directory);
  CoordinatorInfo info = begin_incarnation(options.run_directory, clock, log);
  const auto made = begin_to_listen(options, options_of(options, info, place), info.url, clock);
  Coordinator& coordinator = *made;
  info.url = options.advertise.empty() ? coordinator.url() : http::with_host(coordinator.url(), options.advertise);
  info.pid = getpid();
  if (!publish(options.run_directory, info)) {
    log("another coordinator has begun; this one ends");
    return kRejoin;
  }
  log("listens at " + info.url + ", pid " + std::to_string(info.pid));
  const auto lock = options.elected ? std::nullopt : lock_if_free(options.run_directory, clock);
  Lead lead(options.run_directory, place, info, log);
  while (true) {
    lead.check(coordinator, clock.monotonic_seconds());
    if (coordinator.superseded_by()) return kRejoin;  // it has logged why
    coordinator.tick();
    if (const auto code = coordinator.over()) {
      try {
        if (place.lost().empty()) record_end(options.run_directory, info.pid, *code);
      } catch (const Error& error) {  // the supervisor has received the exit code, and tries to record it as well
        log(error.what());
      }
      log("the run is over with exit code " + std::to_string(*code));
      return static_cast<int>(*code);
    }
    if (const int signal = stop.next()) {
      log("ends by " + signal_name(signal));
      return 128 + signal;
    }
    clock.sleep_seconds(kTickSeconds);
  }
}

}  // namespace sinew::cluster
