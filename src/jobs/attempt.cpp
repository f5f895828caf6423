#include "jobs/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/size_text.h"
#include "jobs/family.h"

extern char** environ;

namespace sinew::jobs {
namespace {

constexpr double kFinishSeconds = 60;
constexpr double kTurnSeconds = 0.1;  // with the lines of one output
constexpr int kPatientKills = 3;      // SIGKILLs asked of the guardian before it is thought to be stuck itself

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

// Of what others hold and let go of again.
bool is_missing_for_now(int code) {
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
      streams_.emplace_back(output_path(plan_.seat.run_directory, rank, errors ? "stderr" : "stdout"), visit);
    }
    Seat seat = plan_.seat;
    seat.rank = rank;
    if (rank > 0) seat.metrics_file = seat.run_directory + "/output/rank-" + std::to_string(rank) + ".metrics.jsonl";
    RankStart one;
    one.command = command_of(*plan_.job);
    for (const auto& [name, value] : environment_of(*plan_.job, seat, base))
      one.environment.push_back(name + "=" + value);
    one.output = streams_[streams_.size() - 2].write_end();
    one.errors = streams_.back().write_end();
    start.ranks.push_back(std::move(one));
  }
  guarded_ = std::make_unique<Guarded>(start);
}

std::vector<int> Attempt::descriptors() const {
  std::vector<int> all;
  if (!gone_) all.push_back(guarded_->descriptor());
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
    const auto word = guarded_->next();
    if (!word) break;
    switch (word->kind) {
      case GuardianWord::Kind::started: ++running_; break;
      case GuardianWord::Kind::no_start: {
        facts_.no_start = no_start_text(*word);
        facts_.for_now = is_missing_for_now(word->code);
        break;
      }
      case GuardianWord::Kind::ended: note_end(*word); break;
      case GuardianWord::Kind::gone: gone_ = true; break;
    }
  }
  if (!gone_) return false;
  facts_.guardian_lost = guarded_->lost() && !only_rest_left();
  return true;
}

bool Attempt::only_rest_left() const {
  const auto ranks = static_cast<size_t>(plan_.job->command.resources.nproc);
  return facts_.ends.size() == ranks || !facts_.no_start.empty();
}

std::string Attempt::no_start_text(const GuardianWord& word) const {
  const spec::CommandOptions& command = plan_.job->command;
  const std::string why = std::string(": ") + std::strerror(word.code);
  switch (word.fault) {
    case GuardianWord::Fault::program: break;
    case GuardianWord::Fault::workdir: return "cannot start the directory " + command.workdir + why;
    case GuardianWord::Fault::group: return "cannot start in its control group" + why;
  }
  return "cannot start " + command.words[0] + why;
}

void Attempt::note_end(const GuardianWord& word) {
  --running_;
  facts_.ends.push_back(word.end);
  facts_.ranks.push_back(word.rank);
  const bool failed = word.end.signal != 0 || word.end.code != 0;
  if (failed && running_ > 0 && failed_rank_.empty())
    failed_rank_ = "rank " + std::to_string(word.rank) + (word.end.signal != 0 ? " was " : " ") + to_string(word.end);
}

std::optional<std::pair<Cause, std::string>> Attempt::over_limit() const {
  const spec::ResourceOptions& resources = plan_.job->command.resources;
  const bool memory = resources.memory > 0 && !plan_.limits.enforced.contains("memory");
  const bool pids = resources.pids > 0 && !plan_.limits.enforced.contains("pids");
  if (gone_ || (!memory && !pids) || guarded_->guardian() == 0) return std::nullopt;
  int64_t used = 0, threads = 0;
  for (const ProcessRow& row : below(all_processes(), {guarded_->guardian()})) {
    used += row.memory_bytes;
    threads += row.threads;
  }
  if (memory && used > resources.memory) {
    return std::pair(Cause::memory,
                     "it uses " + size_text(used) + ", more than resources.memory: " + size_text(resources.memory));
  }
  if (pids && threads > resources.pids) {
    return std::pair(Cause::pids,
                     "it has " + std::to_string(threads) +
                         " processes and threads, more than resources.pids: " + std::to_string(resources.pids));
  }
  return std::nullopt;
}

void Attempt::kill() {
  guarded_->kill_all();
  if (++kills_ > kPatientKills) guarded_->force();
}

AttemptFacts Attempt::finish() {
  facts_.over_memory_limit = memory_kills(plan_.limits.groups) > 0;
  facts_.machine_out_of_memory = machine_memory_kills() > machine_kills_before_;
  facts_.left = !guarded_->finish(kFinishSeconds);
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
