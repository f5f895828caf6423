// Tests several servers in one program. Each serves, stops and fails independently of the others.
#include "server/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/expected_error.h"
#include "store/store.h"

namespace sinew::server {
namespace {

class Servers : public testing::Test {
 protected:
  Servers() : folder_("/tmp/sinew-server-XXXXXX") { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~Servers() override { std::filesystem::remove_all(folder_); }
  // The options name no token file, so local clients may do everything.
  Options options(const std::string& name) const {
    Options options;
    options.root = folder_ + "/" + name;
    std::filesystem::create_directories(options.root);
    options.store = options.root + "/store.db";
    options.artifacts = options.root + "/artifacts";
    options.version = name;
    return options;
  }
  static std::string version_at(const std::string& url) {
    http::Client client(url);
    http::Request request;
    request.target = "/version";
    const auto answer = client.send(request, 20);
    return answer ? answer->body : "no answer";
  }

  std::string folder_;
};

TEST_F(Servers, StopIndependentlyInOneProcess) {
  auto one = std::make_unique<Server>(options("one"));
  const Server two(options("two"));
  EXPECT_EQ(version_at(one->url()), "one");
  EXPECT_EQ(version_at(two.url()), "two");
  int asked = 0;
  wait(*one, [&] { return ++asked == 3; });
  one.reset();
  EXPECT_EQ(version_at(two.url()), "two");
  EXPECT_EQ(Server(options("one")).replaced(), "");
}

TEST_F(Servers, AStoreHasOneServer) {
  const Server first(options("one"));
  EXPECT_EQ(code_of([&] { Server second(options("one")); }), "SERVER_ALREADY_RUNNING");
  EXPECT_EQ(version_at(first.url()), "one");
}

TEST_F(Servers, TheTokenIsNotSentWhereTheNetworkCanReadIt) {
  const auto asked = [&](const std::string& url, const std::string& token) {
    const auto id = run_id_at(url, {.token = token}, folder_, "", system_clock());
    return id ? *id : id.error();
  };
  const std::string refused = asked("http://192.0.2.1:5000", "sinew-secret");
  EXPECT_NE(refused.find("is not sent to http://192.0.2.1:5000"), std::string::npos) << refused;
  for (const char* url : {"http://127.0.0.1:1", "https://127.0.0.1:1"}) {
    const std::string allowed = asked(url, "sinew-secret");
    EXPECT_EQ(allowed.find("is not sent"), std::string::npos) << allowed;
  }
}

TEST_F(Servers, WaitThrowsAfterTheServerWasReplaced) {
  const Server server(options("one"));
  store::Store store(options("one").store);
  ASSERT_TRUE(store.write(store::Release{"server", store.lease("server").fence}));
  ASSERT_TRUE(store.write(store::Acquire{"server", "another", 60}));
  EXPECT_EQ(code_of([&] { wait(server, [] { return false; }); }), "SERVER_REPLACED");
}

TEST_F(Servers, SendNoControlRequestToAnAddressOfTheRunsDirectory) {
  http::ServerOptions elsewhere;
  std::atomic<int> asked = 0;
  const http::Server victim(elsewhere, [&](const http::Request&, const http::Answer& answer) {
    ++asked;
    answer({});
  });
  Options server_options = options("one");
  const std::string run = server_options.root + "/job/20261122T000000Z-abcd";
  std::filesystem::create_directories(run);
  std::ofstream(run + "/resolved.yaml") << "name: job\n";
  const auto write_url = [&](const std::string& url) {
    std::ofstream(run + "/coordinator.json")
        << R"({"version":2,"url":")" << url << R"(","secret":"s","pid":1,"incarnation":0})";
  };
  const Server server(server_options);
  http::Client client(server.url());
  const auto send = [&](const std::string& method, const std::string& target, const std::string& body) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = body;
    const auto answer = client.send(request, 30);
    return answer ? answer->body : answer.error().what;
  };
  std::string id;
  for (int i = 0; i < 200 && id.empty(); ++i) {
    const auto runs = nlohmann::json::parse(send("GET", "/api/v1/runs", ""), nullptr, false);
    if (runs.is_object() && !runs["runs"].empty()) id = runs["runs"][0]["id"];
    if (id.empty()) system_clock().sleep_seconds(0.1);
  }
  ASSERT_FALSE(id.empty()) << "the server did not index the run";
  const std::string target = "/api/v1/runs/" + id + "/control", stop = R"({"action": "stop"})";
  write_url("http://192.0.2.1:80");
  const std::string refused = send("POST", target, stop);
  EXPECT_NE(refused.find("COORDINATOR_ELSEWHERE"), std::string::npos) << refused;
  write_url(victim.url());
  send("POST", target, stop);
  EXPECT_GT(asked.load(), 0) << "an address of this machine is asked";
}

}  // namespace
}  // namespace sinew::server
