// `sinew server` parses the command line, runs a server of src/server, and manages its tokens.
#include "server/server.h"

#include <poll.h>

#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/signals.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cli/registry_place.h"
#include "registry/registry.h"
#include "web/web.h"

namespace sinew::cli {
namespace {

struct Given {
  RegistryPlace place;
  std::string verb, address = "127.0.0.1", certificate, key, tokens, role;
  std::vector<std::string> words;  // the arguments after the verb
  int64_t port = 4711, rate = 1000, connections = 20'000;
  bool no_auth = false, insecure = false;
};

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

void check(const Given& given) {
  if (is_loopback(given.address)) return;
  if (given.no_auth) {
    throw UsageError("SERVER_UNSAFE_ADDRESS",
                     "--no-auth on " + given.address + " would let everyone on the network do everything",
                     "leave out --no-auth, or listen on 127.0.0.1");
  }
  if (given.certificate.empty() && !given.insecure) {
    throw UsageError("SERVER_UNSAFE_ADDRESS",
                     "without TLS others on the network can read the tokens that clients send to " + given.address,
                     "give --tls-cert and --tls-key, or --insecure if something else protects the network");
  }
}

int run_token(const Given& given) {
  const std::string verb = given.words.empty() ? "" : given.words[0];
  const std::string name = given.words.size() > 1 ? given.words[1] : "";
  if (verb == "list" && name.empty()) {
    for (const web::Token& token : web::read_tokens(given.tokens)) {
      std::printf("%-8s %s  made %s\n", web::to_string(token.role), token.name.c_str(),
                  utc_iso(static_cast<double>(token.made_ms) / 1000).c_str());
    }
    return kDone;
  }
  if ((verb != "add" && verb != "remove") || name.empty() || given.words.size() > 2) {
    throw UsageError("OPTION_INVALID", "sinew server token has the commands add NAME, remove NAME and list",
                     "sinew server --help");
  }
  if (verb == "remove") {
    if (!web::remove_token(given.tokens, name))
      throw Error("SERVER_NO_TOKEN", "there is no token '" + name + "'", "`sinew server token list` lists the tokens");
    return kDone;
  }
  const auto role = web::role_of(given.role);
  if (!role) {
    throw UsageError("OPTION_INVALID", "--role must be read, submit or admin, not '" + given.role + "'",
                     "sinew server --help");
  }
  registry::make_registry_directory(given.place.root);
  std::printf("%s\n", web::add_token(given.tokens, name, *role).c_str());
  return kDone;
}

// Returns true once SIGINT, SIGTERM or SIGHUP has arrived. From then on a signal kills the process at once. No
// acknowledged write is lost.
bool signal_arrived(Signals& signals) {
  pollfd waiting{signals.descriptor(), POLLIN, 0};
  if (::poll(&waiting, 1, 0) < 1) return false;
  signals.let_through();
  return true;
}

server::Options server_options(const Given& given) {
  server::Options server;
  server.root = given.place.root;
  server.store = given.place.store_place();
  server.artifacts = given.place.artifacts_place();
  server.tokens = given.no_auth ? "" : given.tokens;
  server.version = SINEW_VERSION;
  server.requests_per_second = static_cast<double>(given.rate);
  server.http.address = given.address;
  server.http.port = static_cast<uint16_t>(given.port);
  server.http.certificate = given.certificate;
  server.http.key = given.key;
  server.http.max_body_bytes = 16 << 20;
  server.http.max_connections = http::connection_limit(static_cast<size_t>(given.connections));
  server.http.shutdown_grace_seconds = 5;
  server.http.await_answers = true;  // otherwise a client could not know whether its last request was executed
  server.http.threads = 2;
  server.coordinators = named_coordinators();
  server.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return server;
}

int serve(const Given& given) {
  Signals signals{SIGINT, SIGTERM, SIGHUP};  // before any thread starts
  registry::make_registry_directory(given.place.root);
  if (!given.no_auth && web::read_tokens(given.tokens).empty()) {
    const std::string secret = web::add_token(given.tokens, "admin", web::Role::kAdmin);
    std::printf("a token for an administrator, shown once (its hash is in %s):\n  %s\n", given.tokens.c_str(),
                secret.c_str());
  }
  const server::Server server(server_options(given));
  std::printf("listening on %s\n", server.url().c_str());
  std::fflush(stdout);
  server::wait(server, [&] { return signal_arrived(signals); });
  return kDone;
}

}  // namespace

int run_server(const Arguments& arguments) {
  Given given;
  Options options("server",
                  "Serves runs, metrics, artifacts and models over HTTP; also for MLflow's client and Prometheus");
  options
      .about(
          "Indexes run directories as they grow.\n\n"
          "  token add NAME --role ROLE   makes a token and prints it once; it is stored nowhere\n"
          "  token list                   lists the tokens\n"
          "  token remove NAME            removes one\n"
          "  openapi                      prints the description of the API")
      .optional_argument("COMMAND", given.verb, "token or openapi; by default the server runs")
      .rest("WHAT", given.words, "as above");
  given.place.add_to(options);
  options.text("--address", "ADDRESS", given.address, "the address to listen on; access by other machines requires TLS")
      .integer("--port", "N", given.port, 0, 65535, "the port to listen on; 0: a free port, which the server prints")
      .text("--tls-cert", "FILE", given.certificate, "a PEM file")
      .text("--tls-key", "FILE", given.key, "a PEM file")
      .text("--tokens", "FILE", given.tokens,
            "by default ROOT/.sinew/tokens.json, created with an administrator's token")
      .choice("--role", given.role, {"read", "submit", "admin"}, "token add: what the token allows")
      .flag("--no-auth", given.no_auth, "let every program of this machine do everything; only on a loopback address")
      .flag("--insecure", given.insecure,
            "listen on other addresses without TLS: others on the network can read the tokens")
      .integer("--rate", "N", given.rate, 0, 1'000'000, "limit of requests per second for each caller; 0: no limit")
      .integer("--connections", "N", given.connections, 1, 1'000'000,
               "limit of connections, as far as the system allows")
      .notes("SIGTERM: the server completes the current answers within seconds; a second SIGTERM ends it at once.")
      .example("sinew server --port 4711");
  if (!options.parse(arguments)) return kDone;
  if (given.tokens.empty()) given.tokens = given.place.root + "/.sinew/tokens.json";
  if (given.verb == "token") return run_token(given);
  if (given.verb == "openapi") {
    std::fputs(web::openapi_text().c_str(), stdout);
    return kDone;
  }
  if (!given.verb.empty()) options.refuse("sinew server has no command '" + given.verb + "'");
  check(given);
  return serve(given);
}

}  // namespace sinew::cli
