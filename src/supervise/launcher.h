// What torchrun, Open MPI and Slurm say in the environment of each process they start.
//
// If launchers stand inside each other (torchrun in a Slurm step, mpirun in an allocation), the innermost one counts:
// torchrun, then Open MPI, then Slurm.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sinew::supervise {

struct Launch {
  int64_t rank = 0, size = 1;              // among all processes
  int64_t local_rank = 0, local_size = 1;  // among those on this machine
  enum class By { torchrun, open_mpi, slurm } by = By::torchrun;
  bool operator==(const Launch&) const = default;
};

using Environment = std::map<std::string, std::string>;

// nullopt: no launcher started this process. Throws UsageError that names the variable if one is missing, is not a
// number, or contradicts another.
std::optional<Launch> launch_of(const Environment& environment);

// How many workers share the cores that each of them may use. Slurm and Open MPI often give each process cores of its
// own (`usable` of the machine's `all`); torchrun never does.
int64_t sharers(const Launch& launch, int64_t usable, int64_t all);

// The same for this machine's cores. SINEW_LOCAL_WORKERS overrides it. Without a launcher: SINEW_LOCAL_WORKERS, else 1.
int64_t sharers_here(const std::optional<Launch>& launch);

}  // namespace sinew::supervise
