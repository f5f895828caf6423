#include "cli/command_job.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/disk.h"
#include "base/json_text.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "jobs/jobs.h"
#include "report/report.h"
#include "rundir/rundir.h"
#include "server/server.h"

namespace sinew::cli {
namespace {

bool is_done(const std::string& directory) {
  const std::string path = directory + "/report.json";
  if (!system_disk().exists(path)) return false;
  const auto outcome = rundir::parse_outcome(read_text(system_disk(), path));
  return outcome && outcome->status == "done";
}

std::string megabytes(int64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

std::string as_json(const std::vector<jobs::AttemptSummary>& attempts, const std::vector<jobs::CommandProcess>& all) {
  nlohmann::ordered_json json = {{"attempts", nlohmann::ordered_json::array()},
                                 {"processes", nlohmann::ordered_json::array()}};
  for (const jobs::AttemptSummary& attempt : attempts) {
    json["attempts"].push_back({{"attempt", attempt.attempt},
                                {"began", attempt.began},
                                {"seconds", attempt.seconds},
                                {"ending", attempt.reason},
                                {"why", attempt.why}});
  }
  for (const jobs::CommandProcess& process : all) {
    json["processes"].push_back({{"pid", process.pid},
                                 {"parent", process.parent},
                                 {"rank", process.rank},
                                 {"cpu_seconds", process.cpu_seconds},
                                 {"memory_bytes", process.memory_bytes},
                                 {"command", process.command}});
  }
  return dump_json(json, 2) + "\n";
}

}  // namespace

int run_command_job(const spec::Job& job, const CommandOptions& options) {
  if (options.resume && is_done(options.run_directory)) {
    std::printf("%s is done already\n", options.run_directory.c_str());
    return kDone;
  }
  jobs::CommandRun run;
  run.job = job;
  run.directory = options.run_directory;
  run.server = options.server.empty() ? own_variable("SINEW_SERVER") : options.server;
  if (!run.server.empty()) {
    // These are the environment variables of MLflow's client. The command uses the same variables.
    const server::ClientOptions client{own_variable("MLFLOW_TRACKING_TOKEN"),
                                       own_variable("MLFLOW_TRACKING_SERVER_CERT_PATH")};
    run.run_id = [url = run.server, client, directory = run.directory](const std::string& resolved_yaml) {
      return server::run_id_at(url, client, directory, resolved_yaml, system_clock());
    };
    run.logged = [url = run.server, client](const std::string& id, const std::set<std::string>& except) {
      return server::logged_metrics(url, client, id, except, system_clock());
    };
  }
  run.format = options.json ? report::LogFormat::json : report::LogFormat::human;
  run.terminal = terminal_of;
  jobs::prepare_process();
  Signals signals({SIGINT, SIGTERM, SIGHUP, SIGUSR1});
  return jobs::run_command(run, signals, system_clock());
}

std::string command_status(const std::string& run_directory, bool json) {
  const std::vector<jobs::AttemptSummary> attempts = jobs::attempts_of(run_directory);
  if (attempts.empty()) return "";
  const std::vector<jobs::CommandProcess> processes = jobs::processes_of(run_directory);
  if (json) return as_json(attempts, processes);
  const auto run = report::read_run(run_directory);
  std::string text = run_directory + ": " + (run ? run->status : "no run") + "\n";
  for (const jobs::AttemptSummary& attempt : attempts) {
    text += "attempt " + std::to_string(attempt.attempt) + "  " + utc_iso(attempt.began) + "  " +
            (attempt.reason.empty() ? "no end yet" : attempt.reason + ": " + attempt.why) + "\n";
  }
  for (const jobs::CommandProcess& process : processes) {
    char times[48];
    std::snprintf(times, sizeof times, "%.1f s", process.cpu_seconds);
    text += "pid " + std::to_string(process.pid) + (process.rank < 0 ? "" : "  rank " + std::to_string(process.rank)) +
            "  " + times + "  " + megabytes(process.memory_bytes) + "  " + process.command + "\n";
  }
  return text;
}

}  // namespace sinew::cli
