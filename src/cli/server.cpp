// `sinew server`: parses the command line, runs a server of src/server, and manages its tokens.
#include "server/server.h"

#include <poll.h>

#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/number_text.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/registry_place.h"
#include "registry/registry.h"
#include "web/web.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew server [options]\n"
    "       sinew server token add --role read|submit|admin NAME [--root DIR | --tokens FILE]\n"
    "       sinew server token list|remove NAME [--root DIR | --tokens FILE]\n"
    "       sinew server openapi\n\n"
    "Serves runs, metrics, artifacts and models over HTTP, also to MLflow's client and to Prometheus. The server "
    "indexes\n"
    "run directories as they grow. 'sinew server token add' prints a token once; the token itself is stored "
    "nowhere.\n\n"
    "options:\n"
    "  --root DIR         directory of the runs (default: runs)\n"
    "  --store WHERE      a file, or postgresql://... (default: ROOT/.sinew/store.db)\n"
    "  --artifacts DIR    directory of the artifacts (default: ROOT/.sinew/artifacts)\n"
    "  --address ADDRESS  the address to listen on (default: 127.0.0.1); other machines' access requires TLS\n"
    "  --port N           the port to listen on (default: 4711); 0: a free port, which the server prints\n"
    "  --tls-cert FILE, --tls-key FILE   PEM files\n"
    "  --tokens FILE      the token file (default: ROOT/.sinew/tokens.json; created with an admin's token)\n"
    "  --no-auth          let every program of this machine do everything; only on a loopback address\n"
    "  --insecure         listen on other addresses without TLS: others on the network can read the tokens\n"
    "  --rate N           limit of requests per second for each caller (default: 1000; 0: no limit)\n"
    "  --connections N    limit of connections (default: 20000, or what the system allows)\n\n"
    "SIGTERM: the server completes the current answers within seconds; a second SIGTERM ends it at once.";

struct ServerOptions {
  RegistryPlace place;
  std::string address = "127.0.0.1", certificate, key, tokens, role;
  std::vector<std::string> words;
  int64_t port = 4711, rate = 1000, connections = 20'000;
  bool no_auth = false, insecure = false;
};

ServerOptions parse(const Arguments& arguments) {
  ServerOptions options;
  const std::pair<const char*, std::string*> texts[] = {{"--address", &options.address},
                                                        {"--tls-key", &options.key},
                                                        {"--tls-cert", &options.certificate},
                                                        {"--tokens", &options.tokens},
                                                        {"--role", &options.role}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size())
        throw UsageError("OPTION_INVALID", word + " needs a value", "sinew server --help");
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
      options.place.take(word, value());
    } else if (word == "--port") {
      options.port = whole_number(word, value(), 0, 65535);
    } else if (word == "--rate") {
      options.rate = whole_number(word, value(), 0, 1'000'000);
    } else if (word == "--connections") {
      options.connections = whole_number(word, value(), 1, 1'000'000);
    } else if (word == "--no-auth") {
      options.no_auth = true;
    } else if (word == "--insecure") {
      options.insecure = true;
    } else if (word.starts_with("-")) {
      throw UsageError("OPTION_INVALID", "there is no option '" + word + "'", "sinew server --help");
    } else {
      options.words.push_back(word);
    }
  }
  if (options.tokens.empty()) options.tokens = options.place.root + "/.sinew/tokens.json";
  return options;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

void check(const ServerOptions& options) {
  if (!options.words.empty()) {
    throw UsageError("OPTION_INVALID", "sinew server has no command '" + options.words[0] + "'",
                     "sinew server --help lists the commands");
  }
  if (is_loopback(options.address)) return;
  if (options.no_auth) {
    throw UsageError("SERVER_UNSAFE_ADDRESS",
                     "--no-auth on " + options.address + " would let everyone on the network do everything",
                     "leave out --no-auth, or listen on 127.0.0.1");
  }
  if (options.certificate.empty() && !options.insecure) {
    throw UsageError("SERVER_UNSAFE_ADDRESS",
                     "without TLS others on the network can read the tokens that clients send to " + options.address,
                     "give --tls-cert and --tls-key, or --insecure if something else protects the network");
  }
}

int run_token(const ServerOptions& options) {
  const std::string verb = options.words.size() > 1 ? options.words[1] : "";
  const std::string name = options.words.size() > 2 ? options.words[2] : "";
  if (verb == "list" && name.empty()) {
    for (const web::Token& token : web::read_tokens(options.tokens)) {
      std::printf("%-8s %s  made %s\n", web::to_string(token.role), token.name.c_str(),
                  utc_iso(static_cast<double>(token.made_ms) / 1000).c_str());
    }
    return kDone;
  }
  if ((verb != "add" && verb != "remove") || name.empty() || options.words.size() > 3) {
    throw UsageError("OPTION_INVALID", "sinew server token has the commands add NAME, remove NAME and list",
                     "sinew server --help");
  }
  if (verb == "remove") {
    if (!web::remove_token(options.tokens, name))
      throw Error("SERVER_NO_TOKEN", "there is no token '" + name + "'", "`sinew server token list` lists the tokens");
    return kDone;
  }
  const auto role = web::role_of(options.role);
  if (!role) {
    throw UsageError("OPTION_INVALID", "--role must be read, submit or admin, not '" + options.role + "'",
                     "sinew server --help");
  }
  registry::make_registry_directory(options.place.root);
  std::printf("%s\n", web::add_token(options.tokens, name, *role).c_str());
  return kDone;
}

// True once SIGINT, SIGTERM or SIGHUP has arrived. The next signal then ends the process; no acknowledged write is
// lost.
bool signal_arrived(Signals& signals) {
  pollfd waiting{signals.descriptor(), POLLIN, 0};
  if (::poll(&waiting, 1, 0) < 1) return false;
  signals.let_through();
  return true;
}

server::Options server_options(const ServerOptions& options) {
  server::Options server;
  server.root = options.place.root;
  server.store = options.place.store_place();
  server.artifacts = options.place.artifacts_place();
  server.tokens = options.no_auth ? "" : options.tokens;
  server.version = SINEW_VERSION;
  server.requests_per_second = static_cast<double>(options.rate);
  server.http.address = options.address;
  server.http.port = static_cast<uint16_t>(options.port);
  server.http.certificate = options.certificate;
  server.http.key = options.key;
  server.http.max_body_bytes = 16 << 20;
  server.http.max_connections = http::connection_limit(static_cast<size_t>(options.connections));
  server.http.shutdown_grace_seconds = 5;
  server.http.await_answers = true;  // a request without an answer may have been executed already
  server.http.threads = 2;
  server.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return server;
}

int serve(const ServerOptions& options) {
  Signals signals{SIGINT, SIGTERM, SIGHUP};  // before any thread starts
  registry::make_place(options.place.root);
  if (!options.no_auth && web::read_tokens(options.tokens).empty()) {
    const std::string secret = web::add_token(options.tokens, "admin", web::Role::kAdmin);
    std::printf("a token for an administrator, shown once (its hash is in %s):\n  %s\n", options.tokens.c_str(),
                secret.c_str());
  }
  const server::Server server(server_options(options));
  std::printf("listening on %s\n", server.url().c_str());
  std::fflush(stdout);
  server::wait(server, [&] { return signal_arrived(signals); });
  return kDone;
}

}  // namespace

int run_server(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const ServerOptions options = parse(arguments);
  if (!options.words.empty() && options.words[0] == "token") return run_token(options);
  if (options.words == std::vector<std::string>{"openapi"}) {
    std::fputs(web::openapi_text().c_str(), stdout);
    return kDone;
  }
  check(options);
  return serve(options);
}

}  // namespace sinew::cli
