// `sinew token` makes and revokes join tokens: the secrets by which workers of other machines join a run.
#include <cstdio>

#include "base/clock.h"
#include "base/disk.h"
#include "base/joined.h"
#include "base/process.h"
#include "cli/options.h"
#include "cluster/cluster.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

struct Given {
  std::string root = "runs";
  double expires = 24 * 3600;
};

std::string directory_of(const Given& given, const std::string& run) {
  const bool is_path = system_disk().exists(rundir::file_in(run, rundir::kCoordinatorFile));
  return is_path ? run : rundir::find_run(given.root, run);
}

int create(const Given& given, const std::string& run) {
  const std::string directory = directory_of(given, run);
  const cluster::CoordinatorInfo info = cluster::info_with_secret(directory);
  const auto expires = static_cast<int64_t>(system_clock().wall_seconds() + given.expires);
  const std::string token = cluster::new_join_token(info.secret, expires);
  const std::string id = cluster::id_of_token(token);
  std::printf("%s\n", token.c_str());
  std::fprintf(
      stderr,
      "token %s, valid until %s\n  on the other machine, with the token in FILE: sinew join %s --secret-file FILE JOB "
      "DIRECTORY\n  to lock its worker out: sinew token revoke %s %s\n",
      id.c_str(), utc_iso(static_cast<double>(expires)).c_str(), info.url.c_str(), directory.c_str(), id.c_str());
  return kDone;
}

int revoke(const Given& given, const std::string& run, const std::string& word) {
  const std::string directory = directory_of(given, run);
  const cluster::CoordinatorInfo info = cluster::info_with_secret(directory);
  const std::string id = cluster::id_in_run(word, info.secret);
  if (id.empty())
    throw UsageError("OPTION_INVALID", "'" + word + "' is neither the id of a join token nor a token of " + directory,
                     "`sinew ps` shows the ids of the workers' tokens");
  cluster::check_coordinator_address(info, own_variable("SINEW_COORDINATORS"));
  // The record comes first, so that a coordinator that starts from now on knows it, whatever happens to the call.
  cluster::record_revocation(system_disk(), directory, id, system_clock().wall_seconds());
  const auto members = info.exit_code ? "" : joined_numbers(cluster::request_revocation(info, directory, id), ", ");
  std::printf("%s: the join token %s is revoked; %s\n", directory.c_str(), id.c_str(),
              members.empty() ? "no member has it now" : ("these members had it: " + members).c_str());
  return kDone;
}

}  // namespace

int run_token(const Arguments& arguments) {
  Given given;
  Options options("token", "Lets workers of other machines join a run, and locks them out again");
  options
      .about(
          "With a join token, a machine adds workers to the run (sinew join URL --secret-file FILE). The token does "
          "not allow it to scale, stop or change the run. Make one for each machine, so that you can revoke one alone.")
      .verb("create", "RUN", "prints a new token on stdout, and on stderr its id and how to use it",
            [&](const auto& words) { return create(given, words[0]); })
      .verb("revoke", "RUN ID", "ends the membership of the token's workers at once and for good",
            [&](const auto& words) { return revoke(given, words[0], words[1]); })
      .duration("--expires", given.expires, "create: how long the token is valid; then its workers leave")
      .text("--root", "DIR", given.root, "where RUN is found by name")
      .notes("Both need the run's directory with its coordinator.json, which has the run's secret.")
      .example("sinew token create last --expires 7d > node7.token");
  return options.parse(arguments) ? options.run_verb() : kDone;
}

}  // namespace sinew::cli
