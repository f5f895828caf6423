// For tests: a temporary folder, and an Api over a new store behind a real HTTP server.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/hand_clock.h"
#include "http/http.h"
#include "registry/registry.h"
#include "store/store.h"
#include "web/web.h"

namespace sinew::web {

// What a client sends and reads. Unlike the server's own Json (context.h), it sorts the members of an object.
using PlainJson = nlohmann::json;

class Folder {
 public:
  Folder() {
    std::string name = "/tmp/sinew-web-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A socket that sends and receives raw bytes, with a limit on every wait.
class RawSocket {
 public:
  explicit RawSocket(uint16_t port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  RawSocket(RawSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~RawSocket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  void send(const std::string& text) { (void)!::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Returns whether bytes have arrived that were not received yet.
  bool has_bytes() const {
    pollfd waiting{descriptor_, POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1;
  }
  // Receives until the bytes contain `text` or the server closes the connection. Returns all bytes.
  std::string until(const std::string& text) {
    std::string all;
    pollfd waiting{descriptor_, POLLIN, 0};
    while (all.find(text) == std::string::npos) {
      if (::poll(&waiting, 1, 20'000) != 1) {
        ADD_FAILURE() << "nothing came in time, after: " << all;
        return all;
      }
      char piece[4096];
      const ssize_t got = ::recv(descriptor_, piece, sizeof piece, 0);
      if (got <= 0) return all;
      all.append(piece, static_cast<size_t>(got));
    }
    return all;
  }

 private:
  int descriptor_;
};

// A clock that stands still, so that a rate limit never recovers.
class StoppedClock final : public Clock {
 public:
  double monotonic_seconds() const override { return 1000; }
  double wall_seconds() const override { return 1.8e9; }
  void sleep_seconds(double) override {}
};

struct Reply {
  int status = 0;
  nlohmann::json json;
  http::Response response;
};

class TestServer {
 public:
  explicit TestServer(double requests_per_second = 0, Control control = {}, Clock& clock = system_clock(),
                      const std::function<void(Options&)>& adjust = {}, double read_seconds = 5)
      : store(folder / "store.db"), artifacts(folder / "artifacts") {
    for (const auto& [name, role] : {std::pair("r", Role::kRead), std::pair("s", Role::kSubmit),
                                     std::pair("t", Role::kSubmit), std::pair("a", Role::kAdmin)}) {
      secrets[name] = add_token(folder / "tokens.json", name, role);
    }
    Options options;
    options.store = &store;
    options.artifacts = &artifacts;
    options.runs_root = folder.path();
    options.tokens = folder / "tokens.json";
    options.control = std::move(control);
    options.requests_per_second = requests_per_second;
    options.version = "1";
    options.threads = 4;
    options.clock = &clock;
    if (adjust) adjust(options);
    api = std::make_unique<Api>(options);
    http::ServerOptions http;
    http.read_seconds = read_seconds;
    http.max_body_bytes = 16 << 20;  // as in server/
    server = std::make_unique<http::Server>(http, api->handler(), api->admission());
  }
  ~TestServer() { server.reset(); }

  Reply call(const std::string& method, const std::string& target, const std::string& body = "",
             const std::string& who = "a", const http::Headers& headers = {}) {
    http::Client client(server->url(), {.max_body_bytes = 64 << 20});
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers = headers;
    if (!who.empty()) request.headers["authorization"] = "Bearer " + secrets[who];
    const auto answer = client.send(request, 20);
    EXPECT_TRUE(answer.has_value()) << answer.error().what;
    if (!answer) return {};
    return {answer->status, nlohmann::json::parse(answer->body, nullptr, false), *answer};
  }

  Folder folder;
  store::Store store;
  registry::Artifacts artifacts;
  std::map<std::string, std::string> secrets;
  // Adds a token with these rights under the name `who`, by which the test refers to it.
  void add(const std::string& who, const TokenRights& rights) {
    secrets[who] = add_token(folder / "tokens.json", who, rights);
  }

  std::unique_ptr<Api> api;
  std::unique_ptr<http::Server> server;
};

inline const std::string kMlflow = "/api/2.0/mlflow", kArtifacts = "/api/2.0/mlflow-artifacts/artifacts/";

// Sends a request to a route of MLflow's API. Returns the status.
inline int post(TestServer& test, const std::string& path, const PlainJson& body, const std::string& who) {
  return test.call("POST", kMlflow + path, body.dump(), who).status;
}

inline std::string new_run(TestServer& test, const std::string& name = "x", const std::string& who = "a") {
  const Reply reply = test.call("POST", kMlflow + "/runs/create",
                                nlohmann::json{{"experiment_id", "0"}, {"run_name", name}}.dump(), who);
  return reply.json.at("run").at("info").at("run_id");
}

// Creates a record that belongs to the token named `owner`.
inline void create_for(TestServer& test, const std::string& owner, store::Create create) {
  store::Batch batch{{std::move(create)}};
  batch.actor.name = owner;
  EXPECT_TRUE(test.store.write(batch));
}

// Creates the run "d", which belongs to `owner`. Its directory contains files with these names, each with the same
// text. Returns the directory.
inline std::filesystem::path run_with_files(TestServer& test, const std::vector<std::string>& names, const char* text,
                                            const std::string& owner = "s") {
  const std::string directory = "job/20261122T000000Z-abcd";
  const std::filesystem::path there = test.folder / directory;
  for (const std::string& name : names) {
    std::filesystem::create_directories((there / name).parent_path());
    std::ofstream(there / name) << text;
  }
  store::Create create{{store::Kind::kRun, "d"}, "job"};
  create.tags = {{registry::kTagDirectory, directory}};
  create.body = nlohmann::json{{"directory", directory}}.dump();
  EXPECT_TRUE(test.store.write(store::Create{{store::Kind::kExperiment, "job"}}));
  create_for(test, owner, create);
  return there;
}

}  // namespace sinew::web
