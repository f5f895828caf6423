// One of several processes that a launcher started: what torchrun, Open MPI and Slurm tell it through its environment.
//
// Pure but for the last two. Where launchers stand inside each other (torchrun in a Slurm step, mpirun in an
// allocation) the innermost counts: torchrun, then Open MPI, then Slurm.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sinew::cli {

struct Launch {
  int64_t rank = 0, size = 1;              // among all processes
  int64_t local_rank = 0, local_size = 1;  // among those of this machine
  enum class By { torchrun, open_mpi, slurm } by = By::torchrun;
  bool operator==(const Launch&) const = default;
};

using Environment = std::map<std::string, std::string>;

// nullopt: nothing of a launcher in it. Throws UsageError that names the variable when one is missing, is no number, or
// contradicts another.
std::optional<Launch> launch_of(const Environment& environment);

// How many workers share the cores each of them may use. Slurm and Open MPI often give each process cores of its own
// (`usable` of the machine's `all`), torchrun never does.
int64_t sharers(const Launch& launch, int64_t usable, int64_t all);

Environment process_environment();
// The same with this machine's cores; SINEW_LOCAL_WORKERS, where it is set, says it instead.
int64_t sharers_here(const Launch& launch);

}  // namespace sinew::cli
