#include "supervise/sandbox_choice.h"

#include <arpa/inet.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/machine.h"
#include "http/http.h"
#include "sandbox/sandbox.h"

namespace sinew::supervise {
namespace {

std::vector<std::string> addresses(const std::string& list) {
  std::vector<std::string> found;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    in6_addr unused{};
    if (::inet_pton(AF_INET, word.c_str(), &unused) != 1 && ::inet_pton(AF_INET6, word.c_str(), &unused) != 1)
      throw UsageError("OPTION_INVALID", "--sandbox-hosts: '" + word + "' is not an IP address",
                       "a confined worker cannot resolve names: give addresses such as 10.0.0.2,10.0.0.3");
    found.push_back(word);
  }
  return found;
}

}  // namespace

std::vector<std::string> sources_of(const spec::Job& job, const std::string& job_file,
                                    const std::string& run_directory) {
  return {run_directory, job_file, job.model.file, job.model.init_from.path, job.loss.library, job.data.library};
}

void refuse_untrusted_command(const std::vector<std::string>& paths) {
  const auto untrusted = std::ranges::find_if(paths, sandbox::is_untrusted);
  if (untrusted == paths.end()) return;
  throw Error("SANDBOX_COMMAND",
              "the job has a command, and " + *untrusted + " comes from a confined run or from a registry",
              "the code of a model may have written the command: use a job file of your own, and do not use this run");
}

std::optional<task::Sandbox> sandbox_of(const SandboxChoice& choice, const SandboxNeeds& needs,
                                        const std::function<void(const std::string&)>& say) {
  if (choice.on && choice.off)
    throw UsageError("OPTION_INVALID", "--sandbox and --no-sandbox contradict each other", "leave one of them out");
  const auto untrusted = std::ranges::find_if(needs.sources, sandbox::is_untrusted);
  if (choice.off || (!choice.on && untrusted == needs.sources.end())) return std::nullopt;
  if (!needs.mirror.empty())
    throw UsageError("SANDBOX_MIRROR", "a confined worker cannot write checkpoint.mirror, " + needs.mirror,
                     "leave checkpoint.mirror out, or use --no-sandbox if you trust the model");
  if (!choice.on)
    say("the sandbox is on, because " + *untrusted +
        " comes from a confined run or from a registry; --no-sandbox switches it off");
  const sandbox::Protection protection = sandbox::protection_of_this_kernel();
  sandbox::check_complete(protection);
  task::Sandbox wanted{.hosts = addresses(choice.hosts)};
  if (!needs.coordinator_url.empty()) wanted.hosts.push_back(http::host_of(needs.coordinator_url));
  wanted.memory_bytes = machine_memory() / static_cast<uint64_t>(std::max<int64_t>(needs.workers, 1));
  say(sandbox::to_sentence(protection, needs.writable, needs.links, wanted.hosts, wanted.memory_bytes));
  return wanted;
}

}  // namespace sinew::supervise
