// Reads what a run has spent, for those who watch it.
#include <algorithm>
#include <cmath>

#include "base/disk.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

// A report has at most some hundred lines, but whoever trains may write any file into the directory of a run.
constexpr uint64_t kMostReportBytes = 1 << 20;

bool is_amount(double value) {
  return std::isfinite(value) && value >= 0;
}

// A figure that cannot be would make the sums of all runs useless.
bool is_possible(const rundir::Outcome& outcome) {
  bool possible = outcome.steps >= 0 && outcome.samples >= 0 && (!outcome.model || is_amount(outcome.model->flops));
  if (outcome.time) possible = possible && std::ranges::all_of(outcome.time->seconds, is_amount);
  if (const auto& used = outcome.resources) {
    possible = possible && is_amount(used->cpu_seconds) && is_amount(used->queued_seconds) &&
               is_amount(used->throttled_seconds) && used->major_faults >= 0 && used->disk_read_bytes >= 0 &&
               used->disk_written_bytes >= 0 && used->network.sent_bytes >= 0 && used->network.received_bytes >= 0 &&
               used->peak_memory_bytes >= 0;
  }
  if (const auto& memory = outcome.memory)
    possible = possible && std::min({memory->program, memory->data, memory->parameters, memory->optimizer}) >= 0;
  return possible;
}

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
  if (!outcome || !is_possible(*outcome)) return std::nullopt;
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
