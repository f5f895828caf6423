// `sinew server`: the HTTP API, MLflow's, and Prometheus' text over one store; and an index of the run directories.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/registry_place.h"
#include "cli/server_lease.h"
#include "cluster/cluster.h"
#include "http/http.h"
#include "registry/registry.h"
#include "store/store.h"
#include "web/web.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew server [options]\n"
    "       sinew server token add --role read|submit|admin NAME [--root DIR | --tokens FILE]\n"
    "       sinew server token list|remove NAME [--root DIR | --tokens FILE]\n"
    "       sinew server openapi\n\n"
    "Serves runs, metrics, artifacts and models over HTTP, also to MLflow's client and to Prometheus. Run directories\n"
    "are indexed as they grow. 'sinew server token add' prints a token once; it is kept nowhere.\n\n"
    "options:\n"
    "  --root DIR         run directories (default: runs)\n"
    "  --store WHERE      a file, or postgresql://... (default: ROOT/.sinew/store.db)\n"
    "  --artifacts DIR    where files are kept (default: ROOT/.sinew/artifacts)\n"
    "  --address ADDRESS  to listen on (default: 127.0.0.1); another than this machine's own needs TLS\n"
    "  --port N           default: 4711; 0: a free one, which is printed\n"
    "  --tls-cert FILE, --tls-key FILE   PEM files\n"
    "  --tokens FILE      who may come in (default: ROOT/.sinew/tokens.json; made with one for an admin)\n"
    "  --no-auth          everybody who reaches it may do everything; on this machine's own address only\n"
    "  --insecure         listen on other addresses without TLS: tokens can be read on the way\n"
    "  --rate N           requests a second of one caller (default: 1000; 0: any number)\n"
    "  --connections N    at a time (default: 20000, as far as the system allows)\n\n"
    "SIGTERM: answers under way are finished, within seconds; a second one ends it at once.";

struct Wishes {
  RegistryPlace place;
  std::string address = "127.0.0.1", certificate, key, tokens, role;
  std::vector<std::string> words;
  int64_t port = 4711, rate = 1000, connections = 20'000;
  bool no_auth = false, insecure = false;
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  const std::pair<const char*, std::string*> texts[] = {{"--address", &wishes.address},
                                                        {"--tls-key", &wishes.key},
                                                        {"--tls-cert", &wishes.certificate},
                                                        {"--tokens", &wishes.tokens},
                                                        {"--role", &wishes.role}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew server --help");
      return arguments[++i];
    };
    bool taken = false;
    for (const auto& [name, text] : texts) {
      if (taken = word == name; taken) {
        *text = value();
        break;
      }
    }
    if (taken) continue;
    if (RegistryPlace().take(word, "")) {
      wishes.place.take(word, value());
    } else if (word == "--port") {
      wishes.port = whole_number(word, value(), 0, 65535);
    } else if (word == "--rate") {
      wishes.rate = whole_number(word, value(), 0, 1'000'000);
    } else if (word == "--connections") {
      wishes.connections = whole_number(word, value(), 1, 1'000'000);
    } else if (word == "--no-auth") {
      wishes.no_auth = true;
    } else if (word == "--insecure") {
      wishes.insecure = true;
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew server --help");
    } else {
      wishes.words.push_back(word);
    }
  }
  if (wishes.tokens.empty()) wishes.tokens = wishes.place.root + "/.sinew/tokens.json";
  return wishes;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

void judge(const Wishes& wishes) {
  if (!wishes.words.empty()) {
    throw UsageError("server takes no '" + wishes.words[0] + "'", "sinew server token ... is for tokens");
  }
  if (is_loopback(wishes.address)) return;
  if (wishes.no_auth) {
    throw UsageError("--no-auth on " + wishes.address + " would let everybody on the network do everything",
                     "leave --no-auth out, or listen on 127.0.0.1");
  }
  if (wishes.certificate.empty() && !wishes.insecure) {
    throw UsageError("without TLS whoever is on the way to " + wishes.address + " can read the tokens",
                     "give --tls-cert and --tls-key, or --insecure if something else protects the way");
  }
}

int run_token(const Wishes& wishes) {
  const std::string verb = wishes.words.size() > 1 ? wishes.words[1] : "";
  const std::string name = wishes.words.size() > 2 ? wishes.words[2] : "";
  if (verb == "list" && name.empty()) {
    for (const web::Token& token : web::read_tokens(wishes.tokens)) {
      std::printf("%-8s %s  made %s\n", web::to_string(token.role), token.name.c_str(),
                  utc_iso(static_cast<double>(token.made_ms) / 1000).c_str());
    }
    return kDone;
  }
  if ((verb != "add" && verb != "remove") || name.empty() || wishes.words.size() > 3) {
    throw UsageError("token takes add NAME, remove NAME or list", "sinew server --help");
  }
  if (verb == "remove") {
    if (!web::remove_token(wishes.tokens, name))
      throw Error("there is no token '" + name + "'", "sinew server token list");
    return kDone;
  }
  const auto role = web::role_of(wishes.role);
  if (!role) throw UsageError("--role is one of read, submit, admin, not '" + wishes.role + "'", "sinew server --help");
  registry::make_registry_directory(wishes.place.root);
  std::printf("%s\n", web::add_token(wishes.tokens, name, *role).c_str());
  return kDone;
}

// SIGINT and SIGTERM, and a reason from inside, as something to wait for. Made before any thread is.
class End {
 public:
  void because(const std::string& why) {
    const std::lock_guard lock(mutex_);
    why_ = why;
    kill(getpid(), SIGTERM);
  }
  // Empty: a signal. The next one ends the process: whatever it is at then, nothing acknowledged is lost.
  std::string wait() {
    pollfd waiting{signals_.descriptor(), POLLIN, 0};
    while (poll(&waiting, 1, -1) < 1) continue;
    signals_.let_through();
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  Signals signals_{SIGINT, SIGTERM, SIGHUP};
  mutable std::mutex mutex_;
  std::string why_;
};

// Run directories into the store, again and again, until told to end. What can not be read is said once.
class Indexing {
 public:
  Indexing(store::Store& store, const std::string& root) : thread_([this, &store, root] { work(store, root); }) {}
  ~Indexing() {
    end();
    thread_.join();
  }
  void end() { ending_ = true; }  // as soon as what it is at is done

 private:
  void work(store::Store& store, const std::string& root) {
    constexpr double kBetweenPasses = 1, kStep = 0.1;
    registry::Index index(store, {.root = root, .should_stop = [this] { return ending_.load(); }});
    std::set<std::string> said;
    const auto say = [&](const std::string& problem) {
      if (said.size() < 1000 && said.insert(problem).second) std::fprintf(stderr, "index: %s\n", problem.c_str());
    };
    while (!ending_) {
      bool at_once = false;
      try {
        const registry::PassReport report = index.pass();
        for (const std::string& problem : report.problems) say(problem);
        at_once = report.unfinished;
      } catch (const std::exception& error) {
        say(error.what());
      }
      for (double slept = 0; !ending_ && !at_once && slept < kBetweenPasses; slept += kStep) {
        system_clock().sleep_seconds(kStep);
      }
    }
  }

  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

// As `sinew control` and `sinew scale` reach a run.
void control_run(const std::string& directory, const web::ControlRequest& request) {
  const auto file = cluster::read_coordinator_info(directory);
  if (!file || file->exit_code) {
    throw Error(directory + " has no coordinator to ask",
                "a run that trains with --workers N can be steered; one that is over can not");
  }
  if (request.action == "scale") {
    cluster::request_scale(*file, directory, static_cast<int64_t>(request.value));
    return;
  }
  const bool stops = request.action == "stop" || request.action == "pause";
  cluster::request_control(*file, directory, stops ? "stop" : request.action,
                           stops ? static_cast<double>(kResumable) : request.value, request.reason);
}

int serve(const Wishes& wishes) {
  End end;
  registry::make_registry_directory(wishes.place.root);
  store::Store store(wishes.place.store_place());
  registry::Artifacts artifacts(wishes.place.artifacts_place());
  registry::claim(store, artifacts);
  if (!wishes.no_auth && web::read_tokens(wishes.tokens).empty()) {
    const std::string secret = web::add_token(wishes.tokens, "admin", web::Role::kAdmin);
    std::printf("a token for an admin, shown once (kept as a hash in %s):\n  %s\n", wishes.tokens.c_str(),
                secret.c_str());
  }
  const std::string place = wishes.address + ":" + std::to_string(wishes.port);
  const ServerLease lease(store, place, [&end](const std::string& why) { end.because(why); });

  web::Options options;
  options.store = &store;
  options.artifacts = &artifacts;
  options.runs_root = wishes.place.root;
  options.tokens = wishes.no_auth ? "" : wishes.tokens;
  options.control = control_run;
  options.version = SINEW_VERSION;
  options.lease = lease.held();
  options.requests_per_second = static_cast<double>(wishes.rate);
  web::Api api(options);

  http::ServerOptions http;
  http.address = wishes.address;
  http.port = static_cast<uint16_t>(wishes.port);
  http.certificate = wishes.certificate;
  http.key = wishes.key;
  http.max_body_bytes = 16 << 20;
  http.max_connections = http::connection_limit(static_cast<size_t>(wishes.connections));
  http.shutdown_grace_seconds = 5;
  http.await_answers = true;  // what was asked for may be done already
  http.threads = 2;
  std::string why;
  {
    std::optional<http::Server> server(std::in_place, http, api.handler(), api.admission());
    std::printf("listening on %s\n", server->url().c_str());
    std::fflush(stdout);
    Indexing indexing(store, wishes.place.root);
    why = end.wait();
    indexing.end();
    server.reset();  // first: while the last run is looked at nobody is answered any more
  }
  if (!why.empty()) throw Error("another server took this store over: " + why, "is the other one meant to serve it?");
  return kDone;
}

}  // namespace

int run_server(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Wishes wishes = parse(arguments);
  if (!wishes.words.empty() && wishes.words[0] == "token") return run_token(wishes);
  if (wishes.words == std::vector<std::string>{"openapi"}) {
    std::fputs(web::openapi_text().c_str(), stdout);
    return kDone;
  }
  judge(wishes);
  return serve(wishes);
}

}  // namespace sinew::cli
