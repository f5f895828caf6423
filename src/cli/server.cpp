// `sinew server` parses the command line, runs a server of src/server, and manages its tokens.
#include "server/server.h"

#include <poll.h>

#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/process.h"
#include "base/signals.h"
#include "cli/options.h"
#include "cli/registry_place.h"
#include "registry/registry.h"
#include "web/web.h"

namespace sinew::cli {
namespace {

// `sinew server token`.
struct TokenGiven {
  std::string tokens, role, experiments = "*", models = "*", output;
  double expires = 0, overlap = 0;  // seconds
  int64_t rate = 0, upload_mib = 0, daily_mib = 0;
};

struct Given {
  RegistryPlace place;
  TokenGiven token;
  std::string verb, address = "127.0.0.1", certificate, key, access_log;
  std::vector<std::string> words;  // the arguments after the verb
  int64_t port = 4711, rate = 1000, connections = 20'000, connections_each = 1000;
  bool no_auth = false, insecure = false;
};

void check(const Given& given) {
  if (http::is_loopback(given.address)) return;
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

int64_t end_of(const TokenGiven& given) {
  return given.expires > 0 ? static_cast<int64_t>((system_clock().wall_seconds() + given.expires) * 1000) : 0;
}

std::string add(const TokenGiven& given, const std::string& name) {
  web::TokenRights rights;
  const auto role = web::role_of(given.role);
  if (!role) throw UsageError("OPTION_INVALID", "token add needs --role read, submit or admin", "sinew server --help");
  rights.role = *role;
  rights.experiments = web::scope_of(given.experiments);
  rights.models = web::scope_of(given.models);
  rights.expires_ms = end_of(given);
  rights.requests_per_second = static_cast<double>(given.rate);
  rights.upload_bytes = given.upload_mib << 20;
  rights.upload_bytes_per_day = given.daily_mib << 20;
  return web::add_token(given.tokens, name, rights, given.output);
}

int run_token(const TokenGiven& given, const std::vector<std::string>& words, const std::string& root) {
  const std::string verb = words.empty() ? "" : words[0], name = words.size() > 1 ? words[1] : "";
  if (verb == "list" && name.empty()) {
    for (const web::Token& token : web::read_tokens(given.tokens)) std::printf("%s\n", to_string(token).c_str());
    return kDone;
  }
  if ((verb != "add" && verb != "remove" && verb != "rotate") || name.empty() || words.size() > 2)
    throw UsageError("OPTION_INVALID",
                     "sinew server token has the commands add NAME, rotate NAME, remove NAME and list",
                     "sinew server --help");
  if (verb == "remove") {
    if (!web::remove_token(given.tokens, name))
      throw Error("SERVER_NO_TOKEN", "there is no token '" + name + "'", "`sinew server token list` lists the tokens");
    return kDone;
  }
  registry::make_registry_directory(root);
  const auto expires = given.expires > 0 ? std::optional(end_of(given)) : std::nullopt;
  const std::string secret =
      verb == "add" ? add(given, name) : web::rotate_token(given.tokens, name, given.overlap, expires, given.output);
  if (given.output.empty()) std::printf("%s\n", secret.c_str());
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
  server.tokens = given.no_auth ? "" : given.token.tokens;
  server.version = SINEW_VERSION;
  server.requests_per_second = static_cast<double>(given.rate);
  server.http.address = given.address;
  server.http.port = static_cast<uint16_t>(given.port);
  server.http.certificate = given.certificate;
  server.http.key = given.key;
  server.http.max_body_bytes = 16 << 20;
  server.http.max_connections = http::connection_limit(static_cast<size_t>(given.connections));
  server.http.max_connections_of_address = static_cast<size_t>(given.connections_each);
  server.http.shutdown_grace_seconds = 5;
  server.http.await_answers = true;  // otherwise a client could not know whether its last request was executed
  server.http.threads = 2;
  server.coordinators = own_variable("SINEW_COORDINATORS");
  if (given.access_log != "off") server.access_log = given.access_log;
  server.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return server;
}

int serve(const Given& given) {
  Signals signals{SIGINT, SIGTERM, SIGHUP};  // before any thread starts
  const server::Options server_given = server_options(given);
  registry::make_registry_directory(given.place.root);
  if (!given.no_auth && web::read_tokens(given.token.tokens).empty()) {
    const std::string file = given.place.root + "/.sinew/admin-token";
    web::TokenRights admin;
    admin.role = web::Role::kAdmin;
    web::add_token(given.token.tokens, "admin", admin, file);
    std::printf("a token for an administrator is in %s, readable by you alone\n", file.c_str());
  }
  const server::Server server(server_given);
  std::printf("listening on %s\n", server.url().c_str());
  std::fflush(stdout);
  server::wait(server, [&] { return signal_arrived(signals); });
  return kDone;
}

}  // namespace

int run_server(const Arguments& arguments) {
  Given given;
  TokenGiven& token = given.token;
  Options options("server",
                  "Serves runs, metrics, artifacts and models over HTTP; also for MLflow's client and Prometheus");
  options
      .about(
          "Indexes run directories as they grow.\n\n"
          "  token add NAME --role ROLE   makes a token and prints it once; it is stored nowhere\n"
          "  token rotate NAME            gives it a new secret\n"
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
      .text("--tokens", "FILE", given.token.tokens,
            "by default ROOT/.sinew/tokens.json, created with an administrator's token")
      .text("--access-log", "FILE", given.access_log,
            "one line of JSON for each request, in files of 16 MiB; off: none; by default ROOT/.sinew/access.log")
      .flag("--no-auth", given.no_auth, "let every program of this machine do everything; only on a loopback address")
      .flag("--insecure", given.insecure,
            "listen on other addresses without TLS: others on the network can read the tokens")
      .integer("--rate", "N", given.rate, 0, 1'000'000, "limit of requests per second for each caller; 0: no limit")
      .integer("--connections", "N", given.connections, 1, 1'000'000,
               "limit of connections, as far as the system allows")
      .integer("--connections-each", "N", given.connections_each, 1, 1'000'000,
               "limit of connections from one address that have not shown a token yet")
      .choice("--role", token.role, {"read", "submit", "admin"}, "token add: what the token allows")
      .text("--experiments", "LIST", token.experiments,
            "token add: the experiments that it may change; a* matches all with a")
      .text("--models", "LIST", token.models, "token add: the models that it may change")
      .duration("--expires", token.expires, "token add, rotate: how long it is valid; by default for ever")
      .duration("--overlap", token.overlap, "token rotate: how long the old secret works, too")
      .integer("--token-rate", "N", token.rate, 1, 1'000'000, "token add: its own limit of requests per second")
      .integer("--upload", "MIB", token.upload_mib, 1, 1 << 24, "token add: the largest file that it uploads")
      .integer("--upload-day", "MIB", token.daily_mib, 1, 1 << 24, "token add: what it uploads in a day")
      .text("--output", "FILE", token.output, "token add, rotate: write the token to FILE, readable by you alone")
      .notes("SIGTERM: the server completes the current answers within seconds; a second SIGTERM ends it at once.")
      .example("sinew server --port 4711");
  if (!options.parse(arguments)) return kDone;
  if (given.token.tokens.empty()) given.token.tokens = web::default_tokens(given.place.root);
  if (given.access_log.empty()) given.access_log = given.place.root + "/.sinew/access.log";
  if (given.verb == "token") return run_token(given.token, given.words, given.place.root);
  if (given.verb == "openapi") {
    std::fputs(web::openapi_text().c_str(), stdout);
    return kDone;
  }
  if (!given.verb.empty()) options.refuse("sinew server has no command '" + given.verb + "'");
  check(given);
  return serve(given);
}

}  // namespace sinew::cli
