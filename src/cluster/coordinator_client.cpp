#include "cluster/coordinator_client.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "cluster/coordinator_connection.h"
#include "cluster/json.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

std::string control_body(const std::string& kind, double value, const std::string& reason) {
  return dump({{"kind", kind}, {"value", value}, {"reason", reason}});
}

std::string scale_body(int64_t wanted) {
  return dump({{"workers", wanted}});
}

// Makes a call, and makes it once more after a second if it failed: a successor of a dead coordinator answers within a
// fraction of a second.
std::string call_twice(const CoordinatorInfo& info, const std::string& run_directory, const std::string& method,
                       const std::string& path, const std::string& body) {
  for (bool again = false;; again = true) {
    const CoordinatorInfo newest = again ? read_coordinator_info(run_directory).value_or(info) : info;
    try {
      return call(newest.url, newest.secret, method, path, body);
    } catch (const Error& error) {
      if (again) {
        throw Error(
            error.code, run_directory + ": " + error.what(),
            error.hint.empty() ? "see whether the run goes on with: sinew runs show " + run_directory : error.hint);
      }
      system_clock().sleep_seconds(1);
    }
  }
}

}  // namespace

CoordinatorClient::CoordinatorClient(std::string url, std::string secret, double timeout_seconds)
    : url_(std::move(url)), secret_(std::move(secret)), timeout_seconds_(timeout_seconds) {}

std::optional<CoordinatorStatus> CoordinatorClient::status() const {
  try {
    return status_of_json(call(url_, secret_, "GET", "/v2/status", "", timeout_seconds_));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool CoordinatorClient::post(const std::string& path, const std::string& body) const {
  try {
    call(url_, secret_, "POST", path, body, timeout_seconds_);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool CoordinatorClient::lost(int64_t pid, const std::string& why) const {
  return post("/v2/lost", dump({{"pid", pid}, {"host", host_name()}, {"why", why}}));
}

bool CoordinatorClient::control(const std::string& kind, double value, const std::string& reason) const {
  return post("/v2/control", control_body(kind, value, reason));
}

bool CoordinatorClient::scale(int64_t wanted) const {
  return post("/v2/scale", scale_body(wanted));
}

std::string call(const std::string& url, const std::string& secret, const std::string& method, const std::string& path,
                 const std::string& body, double timeout_seconds) {
  http::ClientOptions options;
  options.shared_secret = secret;
  http::Client client(url, options);
  const auto response = client.send(request_with(secret, method, path, body), timeout_seconds);
  if (!response) {
    throw Error(kUnreachable, "the coordinator does not answer: " + response.error().what,
                "check that the run goes on; coordinator.json in its directory says where its coordinator listens");
  }
  if (const auto problem = problem_with(*response)) throw *problem;
  if (response->status < 200 || response->status >= 300) throw error_in(*response);
  return response->body;
}

std::string fetch_status(const CoordinatorInfo& info, const std::string& run_directory) {
  return call_twice(info, run_directory, "GET", "/v2/status", "");
}

void request_control(const CoordinatorInfo& info, const std::string& run_directory, const std::string& kind,
                     double value, const std::string& reason) {
  call_twice(info, run_directory, "POST", "/v2/control", control_body(kind, value, reason));
}

void request_scale(const CoordinatorInfo& info, const std::string& run_directory, int64_t wanted) {
  call_twice(info, run_directory, "POST", "/v2/scale", scale_body(wanted));
}

}  // namespace sinew::cluster
