#include <filesystem>
#include <vector>

#include "http/http.h"
#include "registry/registry.h"
#include "server/server.h"

namespace sinew::server {
namespace {

namespace fs = std::filesystem;

constexpr double kTimeoutSeconds = 5;  // long enough, because a server indexes its directories every second
constexpr double kPauseSeconds = 0.2;
constexpr size_t kMaxDepth = 8;  // how many levels below the server's root a run directory may be

// Returns the ids that the run may have on the server. The id depends on the run's path relative to the server's root.
// The root is one of the directories above the run, but the caller does not know which.
std::vector<std::string> possible_ids(const std::string& run_directory, const std::string& resolved_yaml) {
  std::vector<std::string> ids;
  const fs::path directory = fs::absolute(run_directory).lexically_normal();
  const std::string job = run_directory + "/job.yaml";
  const std::string job_yaml = system_disk().exists(job) ? read_text(system_disk(), job) : "";
  fs::path relative;
  for (fs::path at = directory; at.has_relative_path() && ids.size() < kMaxDepth; at = at.parent_path()) {
    if (!at.has_filename()) continue;  // a path that ends with a slash, such as "runs/x/", has no last name
    relative = relative.empty() ? at.filename() : at.filename() / relative;
    ids.push_back(registry::run_id_of(relative.string(), job_yaml, resolved_yaml));
  }
  return ids;
}

// Returns whether nothing on the network can read what is sent to the server.
bool keeps_secrets(const std::string& url) {
  const std::string host = http::host_of(url);
  return host.empty() || !url.starts_with("http://") || http::is_this_machine(host);
}

}  // namespace

std::expected<std::string, std::string> run_id_at(const std::string& url, const ClientOptions& options,
                                                  const std::string& run_directory, const std::string& resolved_yaml,
                                                  Clock& clock) {
  const std::vector<std::string> ids = possible_ids(run_directory, resolved_yaml);
  if (!options.token.empty() && !keeps_secrets(url)) {
    return std::unexpected("the token (MLFLOW_TRACKING_TOKEN) is not sent to " + url +
                           ", where the network could read it; use https://, or unset the variable");
  }
  http::ClientOptions http;
  http.certificate_authority = options.certificate_authority;
  http::Client client(url, http);
  http::Request request;
  if (!options.token.empty()) request.headers["authorization"] = "Bearer " + options.token;
  const double end = clock.monotonic_seconds() + kTimeoutSeconds;
  while (true) {
    for (const std::string& id : ids) {
      const double left = end - clock.monotonic_seconds();
      if (left <= 0) break;
      request.target = "/api/v1/runs/" + id;
      const auto answer = client.send(request, left);
      if (!answer) return std::unexpected(answer.error().what);
      if (answer->status == 200) return id;
      if (answer->status == 401 || answer->status == 403)
        return std::unexpected(url + " refuses the token (MLFLOW_TRACKING_TOKEN)");
      if (answer->status != 404) return std::unexpected(url + " answers with status " + std::to_string(answer->status));
    }
    if (clock.monotonic_seconds() + kPauseSeconds > end)
      return std::unexpected(url + " does not know the run; it must be inside that server's --root");
    clock.sleep_seconds(kPauseSeconds);
  }
}

}  // namespace sinew::server
