#include "supervise/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/number_text.h"
#include "base/proc.h"
#include "http/http.h"

namespace sinew::supervise {
namespace {

constexpr int64_t kMostProcesses = 1'000'000;

// Reads one launcher's variables and checks them.
class Reader {
 public:
  Reader(const Environment& environment, const char* launcher) : environment_(environment), launcher_(launcher) {}

  bool has(const char* name) const { return text(name) != nullptr; }
  int64_t number(const char* name, int64_t least, int64_t most) const {
    if (!has(name)) missing(name);
    return whole_number(name, *text(name), least, most);
  }
  const std::string* text(const char* name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() || found->second.empty() ? nullptr : &found->second;
  }
  [[noreturn]] void missing(const char* name) const {
    throw UsageError("LAUNCHER_INCOMPLETE",
                     std::string(name) + " is not set, though other variables of " + launcher_ + " are",
                     "start it with " + std::string(launcher_) + ", or unset those variables");
  }

 private:
  const Environment& environment_;
  const char* launcher_;
};

struct Names {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};

Launch launch_by(const Reader& reader, const Names& names, Launch::By by) {
  Launch launch;
  launch.by = by;
  launch.size = reader.number(names.size, 1, kMostProcesses);
  launch.rank = reader.number(names.rank, 0, launch.size - 1);
  launch.local_size = reader.number(names.local_size, 1, launch.size);
  launch.local_rank = reader.number(names.local_rank, 0, std::min(launch.local_size - 1, launch.rank));
  return launch;
}

// Returns the number of tasks of a machine. "2(x3),1" means two tasks on each of the first three machines, and one task
// on the fourth.
int64_t tasks_on_node(const char* name, const std::string& text, int64_t node) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view group = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(group.size() + 1, rest.size()));
    const size_t times = group.find("(x");
    int64_t nodes = 1;
    if (times != std::string_view::npos) {
      const size_t length = group.size() - std::min(group.size(), times + 3);
      if (!group.ends_with(')'))
        throw UsageError("LAUNCHER_CONTRADICTS", std::string(name) + "=" + text + " is not a list of tasks",
                         "2(x3),1 is one");
      nodes = whole_number(name, std::string(group.substr(times + 2, length)), 1, kMostProcesses);
    }
    const int64_t tasks = whole_number(name, std::string(group.substr(0, times)), 1, kMostProcesses);
    if (node < nodes) return tasks;
    node -= nodes;
  }
  throw UsageError("LAUNCHER_CONTRADICTS",
                   std::string(name) + "=" + text + " has no machine with the number SLURM_NODEID says",
                   "start it with srun, or unset both variables");
}

Launch launch_by_slurm(const Reader& reader) {
  // A Slurm step has variables of its own. If they are missing, those of the Slurm job apply to the step.
  const char* const size = reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const char* const tasks =
      reader.has("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  Launch launch;
  launch.by = Launch::By::slurm;
  launch.size = reader.number(size, 1, kMostProcesses);
  launch.rank = reader.number("SLURM_PROCID", 0, launch.size - 1);
  if (!reader.has(tasks)) reader.missing(tasks);
  const int64_t node = reader.number("SLURM_NODEID", 0, kMostProcesses);
  launch.local_size = tasks_on_node(tasks, *reader.text(tasks), node);
  if (launch.local_size > launch.size) {
    throw UsageError("LAUNCHER_CONTRADICTS",
                     std::string(tasks) + " says " + std::to_string(launch.local_size) + " tasks, and " + size +
                         " only " + std::to_string(launch.size) + " in all",
                     "start it with srun, or unset both variables");
  }
  launch.local_rank = reader.number("SLURM_LOCALID", 0, std::min(launch.local_size - 1, launch.rank));
  return launch;
}

}  // namespace

std::optional<Launch> launch_of(const Environment& environment) {
  const Reader torchrun(environment, "torchrun"), open_mpi(environment, "mpirun"), slurm(environment, "srun");
  if (torchrun.has(kTorchrun.rank) || torchrun.has(kTorchrun.size))
    return launch_by(torchrun, kTorchrun, Launch::By::torchrun);
  if (open_mpi.has(kOpenMpi.rank) || open_mpi.has(kOpenMpi.size))
    return launch_by(open_mpi, kOpenMpi, Launch::By::open_mpi);
  // A batch script has the other variables too, but only srun sets SLURM_STEP_ID.
  if (slurm.has("SLURM_STEP_ID")) return launch_by_slurm(slurm);
  return std::nullopt;
}

int64_t sharers(const Launch& launch, int64_t usable, int64_t all) {
  const bool own_cores = launch.by != Launch::By::torchrun && usable * launch.local_size <= all;
  return own_cores ? 1 : launch.local_size;
}

int64_t sharers_here(const std::optional<Launch>& launch) {
  const char* const said = std::getenv("SINEW_LOCAL_WORKERS");
  if (said != nullptr && *said != '\0') return whole_number("SINEW_LOCAL_WORKERS", said, 1, kMostProcesses);
  if (!launch) return 1;
  const int64_t all = ::sysconf(_SC_NPROCESSORS_ONLN);
  return sharers(*launch, static_cast<int64_t>(own_cores().size()), all);
}

bool is_exposed(const std::string& listen, const std::string& link_listen) {
  return !http::is_loopback(listen) || !(link_listen.empty() || http::is_loopback(link_listen));
}

Launch launch_from(const Environment& environment) {
  const auto launch = launch_of(environment);
  if (launch) return *launch;
  throw UsageError("LAUNCHER_MISSING",
                   "no launcher started this: there is no RANK, OMPI_COMM_WORLD_RANK or SLURM_STEP_ID",
                   "start it with srun, torchrun --no-python or mpirun; or leave --launcher out and say --workers N");
}

std::string listen_address(const std::optional<Launch>& launch) {
  // Stands for any other machine. The address is from a range reserved for documentation, and nothing is sent to it.
  constexpr const char* kAnywhere = "http://192.0.2.1";
  const bool one_machine = !launch || launch->size == launch->local_size;
  const std::string outwards = one_machine ? "" : http::address_towards(kAnywhere);
  return outwards.empty() ? "127.0.0.1" : outwards;
}

}  // namespace sinew::supervise
