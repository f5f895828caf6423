#include "cli/server_run.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "http/http.h"
#include "registry/registry.h"

namespace sinew::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kPatienceSeconds = 5;  // a server looks at its directories every second
constexpr double kPauseSeconds = 0.2;
constexpr size_t kDeepest = 8;  // below the server's root

// A run's id is made of its place below the server's root, which is one of the directories above it.
std::vector<std::string> possible_ids(const std::string& run_directory, const std::string& resolved_yaml) {
  std::vector<std::string> ids;
  const fs::path directory = fs::absolute(run_directory).lexically_normal();
  const std::string job = run_directory + "/job.yaml";
  const std::string job_yaml = system_disk().exists(job) ? read_text(system_disk(), job) : "";
  fs::path place;
  for (fs::path at = directory; at.has_relative_path() && ids.size() < kDeepest; at = at.parent_path()) {
    if (!at.has_filename()) continue;  // "runs/x/"
    place = place.empty() ? at.filename() : at.filename() / place;
    ids.push_back(registry::run_id_of(place.string(), job_yaml, resolved_yaml));
  }
  return ids;
}

// As MLflow's client is told them, which the answer is for.
std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::expected<std::string, std::string> run_id_at(const std::string& server, const std::string& run_directory,
                                                  const std::string& resolved_yaml, Clock& clock) {
  const std::vector<std::string> ids = possible_ids(run_directory, resolved_yaml);
  http::ClientOptions options;
  options.certificate_authority = setting("MLFLOW_TRACKING_SERVER_CERT_PATH");
  http::Client client(server, options);
  http::Request request;
  const std::string token = setting("MLFLOW_TRACKING_TOKEN");
  if (!token.empty()) request.headers["authorization"] = "Bearer " + token;
  const double end = clock.monotonic_seconds() + kPatienceSeconds;
  while (true) {
    for (const std::string& id : ids) {
      const double left = end - clock.monotonic_seconds();
      if (left <= 0) break;
      request.target = "/api/v1/runs/" + id;
      const auto answer = client.send(request, left);
      if (!answer) return std::unexpected(answer.error().what);
      if (answer->status == 200) return id;
      if (answer->status == 401 || answer->status == 403)
        return std::unexpected(server + " wants another token (MLFLOW_TRACKING_TOKEN)");
      if (answer->status != 404)
        return std::unexpected(server + " answers with status " + std::to_string(answer->status));
    }
    if (clock.monotonic_seconds() + kPauseSeconds > end)
      return std::unexpected(server + " does not know it; is it below that server's --root?");
    clock.sleep_seconds(kPauseSeconds);
  }
}

}  // namespace sinew::cli
