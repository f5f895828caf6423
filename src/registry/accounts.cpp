// Reads what a run has spent, for those who watch it.
#include "base/disk.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

// A report has at most some hundred lines, but whoever trains may write any file into the directory of a run.
constexpr uint64_t kMostReportBytes = 1 << 20;

std::string report_in(const BeneathFile& run, const char* name) {
  const auto file = open_beneath(run, name);
  if (!file || !file->is_regular()) return "";
  try {
    if (system_disk().size(file->path()) > kMostReportBytes) return "";
    return read_text(system_disk(), file->path());
  } catch (const DiskError&) {
    return "";
  }
}

}  // namespace

std::optional<RunAccounts> accounts_in(const BeneathFile& run) {
  const std::string report = report_in(run, rundir::kOutcomeFile);
  const auto outcome =
      report.empty() ? rundir::parse_accounts(report_in(run, rundir::kAccountsFile)) : rundir::parse_outcome(report);
  if (!outcome) return std::nullopt;
  RunAccounts accounts{.running = outcome->status == rundir::kRunning,
                       .steps = outcome->steps,
                       .samples = outcome->samples,
                       .flops = outcome->model ? outcome->model->flops : 0,
                       .time = outcome->time,
                       .resources = outcome->resources};
  if (const auto& memory = outcome->memory)
    accounts.memory_bytes = {{"program", memory->program},
                             {"data", memory->data},
                             {"parameters", memory->parameters},
                             {"optimizer", memory->optimizer}};
  if (accounts.resources && accounts.resources->peak_memory_bytes > 0)
    accounts.memory_bytes["peak"] = accounts.resources->peak_memory_bytes;
  return accounts;
}

}  // namespace sinew::registry
