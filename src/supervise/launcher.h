// Reads the environment variables that torchrun, Open MPI and Slurm set for each process they start.
//
// If launchers are nested (torchrun in a Slurm step, mpirun in an allocation), the innermost one counts. The order is
// torchrun, then Open MPI, then Slurm.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sinew::supervise {

struct Launch {
  int64_t rank = 0, size = 1;  // this process's number among all processes of the launcher, and how many there are
  int64_t local_rank = 0, local_size = 1;  // its number among those on this machine, and how many there are
  enum class By { torchrun, open_mpi, slurm } by = By::torchrun;
  bool operator==(const Launch&) const = default;
};

using Environment = std::map<std::string, std::string>;

// Returns nullopt if no launcher started this process. Throws UsageError if a variable is missing, is not a number or
// contradicts another one; the error names the variable.
std::optional<Launch> launch_of(const Environment& environment);

// Like launch_of, but throws UsageError if no launcher started this process.
Launch launch_from(const Environment& environment);

// Returns the address at which the coordinator listens unless the user names one: 127.0.0.1 if all processes of the
// launcher are on this machine, otherwise the address of this machine on the network.
std::string listen_address(const std::optional<Launch>& launch);

// Returns how many workers share the cores that each of them may use. Slurm and Open MPI often give each process its
// own cores (`usable` of the machine's `all`); torchrun never does.
int64_t sharers(const Launch& launch, int64_t usable, int64_t all);

// Returns sharers() for the cores of this machine. The environment variable SINEW_LOCAL_WORKERS overrides the result.
// Returns 1 if there is neither the variable nor a launcher.
int64_t sharers_here(const std::optional<Launch>& launch);

// Returns whether other machines can reach a run whose coordinator listens at `listen` and whose workers listen at
// `link_listen`. If `link_listen` is empty, workers listen at the address from which they reach the coordinator. A run
// that others can reach uses TLS unless the user says otherwise.
bool is_exposed(const std::string& listen, const std::string& link_listen = "");

}  // namespace sinew::supervise
