#include "jobs/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/process.h"
#include "base/size_text.h"
#include "jobs/descendants.h"

namespace sinew::jobs {
namespace {

constexpr double kFinishSeconds = 60;
constexpr double kTurnSeconds = 0.1;  // longest time for the lines of one output in one turn
constexpr int kPatientKills = 3;      // after this many requests to kill, the inner reaper itself counts as stuck

// Returns whether the error is the lack of a resource that other processes may release.
bool is_transient(int code) {
  return code == EAGAIN || code == ENOMEM || code == EMFILE || code == ENFILE;
}

}  // namespace

std::string output_path(const std::string& run_directory, int64_t rank, const char* stream) {
  const std::string before = rank == 0 ? "" : "rank-" + std::to_string(rank) + ".";
  return run_directory + "/output/" + before + stream + ".log";
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool found = socket >= 0 && ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (socket >= 0) ::close(socket);
  return found ? ntohs(address.sin_port) : 29500;
}

Attempt::Attempt(Plan plan) : plan_(std::move(plan)), machine_kills_before_(machine_memory_kills()) {
  const spec::CommandOptions& command = plan_.job->command;
  const std::map<std::string, std::string> base = own_environment();
  AttemptStart start;
  start.workdir = command.workdir;
  start.groups = plan_.limits.groups;
  start.kept = plan_.kept;
  const int64_t ranks = command.resources.nproc;
  streams_.reserve(static_cast<size_t>(2 * ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    for (const bool errors : {false, true}) {
      const auto visit = [this, rank, errors](const Line& line) { plan_.visit(rank, errors, line); };
      streams_.emplace_back(output_path(plan_.context.run_directory, rank, errors ? "stderr" : "stdout"), visit);
    }
    RankContext context = plan_.context;
    context.rank = rank;
    if (rank > 0)
      context.metrics_file = context.run_directory + "/output/rank-" + std::to_string(rank) + ".metrics.jsonl";
    RankStart one;
    one.command = command_of(*plan_.job);
    for (const auto& [name, value] : environment_of(*plan_.job, context, base))
      one.environment.push_back(name + "=" + value);
    one.output = streams_[streams_.size() - 2].write_end();
    one.errors = streams_.back().write_end();
    start.ranks.push_back(std::move(one));
  }
  processes_ = std::make_unique<RankProcesses>(start);
}

std::vector<int> Attempt::descriptors() const {
  std::vector<int> all;
  if (!gone_) all.push_back(processes_->descriptor());
  for (const RankStream& stream : streams_) {
    if (stream.descriptor() >= 0) all.push_back(stream.descriptor());
  }
  return all;
}

bool Attempt::turn() {
  for (RankStream& stream : streams_) {
    if (stream.descriptor() >= 0) stream.read(kTurnSeconds);
  }
  while (!gone_) {
    const auto event = processes_->next();
    if (!event) break;
    handle(*event);
  }
  if (!gone_) return false;
  facts_.reaper_lost = processes_->lost() && !only_leftovers_remain();
  return true;
}

void Attempt::handle(const ReaperEvent& event) {
  switch (event.kind) {
    case ReaperEvent::Kind::started: ++running_; break;
    case ReaperEvent::Kind::no_start:
      facts_.no_start = no_start_text(event);
      facts_.transient = is_transient(event.code);
      break;
    case ReaperEvent::Kind::ended: note_end(event); break;
    case ReaperEvent::Kind::gone: gone_ = true; break;
  }
}

bool Attempt::only_leftovers_remain() const {
  const auto ranks = static_cast<size_t>(plan_.job->command.resources.nproc);
  return facts_.ends.size() == ranks || !facts_.no_start.empty();
}

std::string Attempt::no_start_text(const ReaperEvent& event) const {
  const spec::CommandOptions& command = plan_.job->command;
  const std::string why = std::string(": ") + std::strerror(event.code);
  switch (event.fault) {
    case ReaperEvent::Fault::program: break;
    case ReaperEvent::Fault::workdir: return "cannot enter the working directory " + command.workdir + why;
    case ReaperEvent::Fault::group: return "cannot enter the control group" + why;
  }
  return "cannot start " + command.words[0] + why;
}

void Attempt::note_end(const ReaperEvent& event) {
  --running_;
  facts_.ends.push_back(event.end);
  facts_.ranks.push_back(event.rank);
  const bool failed = event.end.signal != 0 || event.end.code != 0;
  if (failed && running_ > 0 && failed_rank_.empty())
    failed_rank_ =
        "rank " + std::to_string(event.rank) + (event.end.signal != 0 ? " was " : " ") + to_string(event.end);
}

std::optional<std::pair<StopReason, std::string>> Attempt::over_limit() const {
  const spec::ResourceOptions& resources = plan_.job->command.resources;
  const bool memory = resources.memory > 0 && !plan_.limits.enforced.contains("memory");
  const bool pids = resources.pids > 0 && !plan_.limits.enforced.contains("pids");
  if (gone_ || (!memory && !pids) || processes_->inner_reaper() == 0) return std::nullopt;
  int64_t used = 0, threads = 0;
  for (const ProcessRow& row : below(all_processes(), {processes_->inner_reaper()})) {
    used += row.memory_bytes;
    threads += row.threads;
  }
  if (memory && used > resources.memory) {
    return std::pair(StopReason::memory,
                     "it uses " + size_text(used) + ", more than resources.memory: " + size_text(resources.memory));
  }
  if (pids && threads > resources.pids) {
    return std::pair(StopReason::pids,
                     "it has " + std::to_string(threads) +
                         " processes and threads, more than resources.pids: " + std::to_string(resources.pids));
  }
  return std::nullopt;
}

void Attempt::kill() {
  processes_->kill_all();
  if (++kills_ > kPatientKills) processes_->kill_reapers();
}

AttemptFacts Attempt::finish() {
  facts_.over_memory_limit = memory_kills(plan_.limits.groups) > 0;
  facts_.machine_out_of_memory = machine_memory_kills() > machine_kills_before_;
  facts_.unkillable = !processes_->finish(kFinishSeconds);
  for (RankStream& stream : streams_) stream.drain();
  remove_groups(plan_.limits.groups);
  return facts_;
}

int64_t Attempt::lost_bytes() const {
  uint64_t lost = 0;
  for (const RankStream& stream : streams_) lost += stream.lost_bytes();
  return static_cast<int64_t>(lost);
}

}  // namespace sinew::jobs
