#include "server/server.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/exit_code.h"
#include "cluster/cluster.h"
#include "registry/registry.h"
#include "server/access_file.h"
#include "server/indexer.h"
#include "server/lease.h"
#include "store/store.h"
#include "web/web.h"

namespace sinew::server {
namespace {

// Passes a request to the coordinator of a run, as `sinew control` and `sinew scale` do.
void control_run(const std::string& coordinators, const std::string& directory, const web::ControlRequest& request) {
  const auto info = cluster::read_coordinator_info(directory);
  if (!info || info->exit_code) {
    throw Error("SERVER_NO_COORDINATOR", directory + " has no coordinator",
                "only a run that trains with --workers N and has not ended can be controlled");
  }
  cluster::check_coordinator_address(*info, coordinators);
  const cluster::RequestKind* kind = cluster::request_kind(request.action);
  if (kind != nullptr && !kind->logged) {
    cluster::request_scale(*info, directory, static_cast<int64_t>(request.value));
    return;
  }
  const double value = request.action == "stop" ? static_cast<double>(kResumable) : request.value;
  cluster::request_control(*info, directory, request.action, value, request.reason);
}

}  // namespace

struct Server::State {
  explicit State(const Options& options)
      : store(options.store, store_options()),
        artifacts(options.artifacts),
        lease(claimed(), options.http.address + ":" + std::to_string(options.http.port)),
        api(api_options(options)),
        http(std::in_place, options.http, api.handler(), api.admission()),
        indexer(store, options.root, options.tokens, options.log) {}
  ~State() {
    indexer.stop();
    http.reset();  // stops the HTTP server before the destructor waits for the indexer
  }

  // A request does not wait until a lost database comes back: it gets status 503 within two seconds.
  static store::Options store_options() {
    store::Options given;
    given.reconnect_seconds = 1;
    return given;
  }
  store::Store& claimed() {
    registry::claim(store, artifacts);
    return store;
  }
  web::Options api_options(const Options& options) {
    web::Options api;
    api.store = &store;
    api.artifacts = &artifacts;
    api.runs_root = options.root;
    api.tokens = options.tokens;
    api.control = [coordinators = options.coordinators](const std::string& directory,
                                                        const web::ControlRequest& request) {
      control_run(coordinators, directory, request);
    };
    api.version = options.version;
    api.lease = lease.held();
    api.log = options.log;
    if (!options.access_log.empty()) {
      access.emplace(options.access_log);
      api.access_log = [this](const std::string& line) { access->write(line); };
    }
    api.requests_per_second = options.requests_per_second;
    return api;
  }

  store::Store store;
  registry::Artifacts artifacts;
  ServerLease lease;
  std::optional<AccessFile> access;
  web::Api api;
  std::optional<http::Server> http;
  Indexer indexer;
};

Server::Server(Options options) : state_(std::make_unique<State>(options)) {}
Server::~Server() = default;

std::string Server::url() const {
  return state_->http->url();
}

std::string Server::replaced() const {
  return state_->lease.lost();
}

void wait(const Server& server, const std::function<bool()>& stop_requested) {
  constexpr double kPollSeconds = 0.1;
  while (!stop_requested()) {
    if (const std::string why = server.replaced(); !why.empty()) {
      throw Error("SERVER_REPLACED", "another server has taken over this store: " + why,
                  "check which of the two servers should serve it, and stop the other");
    }
    system_clock().sleep_seconds(kPollSeconds);
  }
}

}  // namespace sinew::server
