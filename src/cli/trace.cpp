// Implements `sinew trace`: gives out the trace that a run has recorded.
#include <cstdio>

#include "base/disk.h"
#include "cli/options.h"
#include "rundir/rundir.h"

namespace sinew::cli {

int run_trace(const Arguments& arguments) {
  std::string root = "runs", name, output = "-";
  Options options("trace", "What each lane did in some steps of a run, for Perfetto and Chrome");
  options.argument("RUN", name, "a run directory, the end of a run's id, or last")
      .text("--root", "DIR", root, "directory of the runs")
      .text("-o, --output", "FILE", output, "where to write the trace; -: standard output")
      .notes("The trace is in the Trace Event Format: open it at https://ui.perfetto.dev or in chrome://tracing.")
      .example("sinew trace last -o trace.json");
  if (!options.parse(arguments)) return kDone;
  const std::string run = rundir::find_run(root, name), file = rundir::file_in(run, rundir::kTraceFile);
  if (!system_disk().exists(file))
    throw Error("TRACE_NONE", run + " has no trace",
                "a training records one in its sixth to tenth step, and at its end if it is shorter");
  const std::string text = read_text(system_disk(), file);
  output == "-" ? void(std::fwrite(text.data(), 1, text.size(), stdout)) : write_output(system_disk(), output, text);
  return kDone;
}

}  // namespace sinew::cli
