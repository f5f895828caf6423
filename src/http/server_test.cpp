// Tests the server with well-behaved clients: responses in order, late responses, many connections at once, a quick
// shutdown.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "http/held_answers.h"
#include "http/raw_socket.h"

namespace sinew::http {
namespace {

TEST(Server, AnswersPipelinedRequestsInOrder) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 200; ++i) all += get("/" + std::to_string(i));
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(body_of(client.message()), "GET /" + std::to_string(i) + " ");
}

TEST(Server, SendsALateAnswerFromAnotherThread) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  client.send(get("/hold") + get("/next"));
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  std::thread([answer = answers.take().front().second] {
    answer({201, "late", "text/plain", {{"x-more", "1"}}});
    answer({202, "too late", "text/plain", {}});
  }).join();
  const std::string answer = client.message();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 201 Created\r\n")) << answer;
  EXPECT_NE(answer.find("x-more: 1\r\n"), std::string::npos);
  EXPECT_EQ(body_of(answer), "late");
  EXPECT_EQ(body_of(client.message()), "GET /next ");
}

TEST(Server, SendsStatus500IfTheHandlerFails) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  client.send(get("/throw") + get("/throw-int") + get("/drop") + get("/fine"));
  std::string answer = client.message();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_EQ(body_of(answer), "{\"error\":\"it is broken\",\"code\":\"TEST_BROKEN\",\"hint\":\"mend it\"}\n");
  EXPECT_TRUE(client.message().starts_with("HTTP/1.1 500 "));
  answer = client.message();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_NE(answer.find("without an answer"), std::string::npos) << answer;
  EXPECT_EQ(body_of(client.message()), "GET /fine ");
}

TEST(Server, SendsStatus500IfAKeptAnswerIsDropped) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  client.send(get("/hold"));
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  answers.take();
  EXPECT_TRUE(client.message().starts_with("HTTP/1.1 500 "));
}

TEST(Server, AnswersManyLongPollsInAnyOrder) {
  constexpr size_t kClients = 500;
  HeldAnswers answers;
  ServerOptions options;
  options.threads = 2;
  Server server(options, answers.handler());
  std::vector<RawClient> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(server.port());
    ASSERT_TRUE(clients.back().send(get("/hold?id=" + std::to_string(i))));
  }
  ASSERT_TRUE(eventually([&] { return answers.count() == kClients; }));
  std::thread other([held = answers.take()]() mutable {
    RandomStream random(random_key({500}));
    for (size_t i = kClients; i > 1; --i) std::swap(held[i - 1], held[random.below(i)]);
    for (const auto& [id, answer] : held) answer({200, "for " + id, "text/plain", {}});
  });
  for (size_t i = 0; i < kClients; ++i) ASSERT_EQ(body_of(clients[i].message()), "for " + std::to_string(i));
  other.join();
}

TEST(Server, ClosesTheConnectionOfAClientThatLeaves) {
  HeldAnswers answers;
  ServerOptions options;
  options.max_connections = 3;
  Server server(options, answers.handler());
  std::vector<std::pair<std::string, Answer>> kept;  // a handler may keep Answers forever
  for (int round = 0; round < 5; ++round) {
    {
      std::vector<RawClient> clients;
      for (int i = 0; i < 3; ++i) clients.emplace_back(server.port()).send(get("/hold"));
      ASSERT_TRUE(eventually([&] { return answers.count() == 3; }));
    }
    for (auto& answer : answers.take()) kept.push_back(std::move(answer));
    ASSERT_TRUE(eventually([&] {  // all three connections are closed
      std::vector<RawClient> clients;
      for (int i = 0; i < 3; ++i) clients.emplace_back(server.port()).send(get("/"));
      return std::all_of(clients.begin(), clients.end(), [](RawClient& client) { return !client.message().empty(); });
    }));
    ASSERT_TRUE(eventually([&] {  // these three are closed, too
      RawClient client(server.port());
      client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      return !client.rest().empty();
    }));
  }
}

TEST(Server, AnAnswerMayOutliveItsClientAndItsServer) {
  HeldAnswers answers;
  auto server = std::make_unique<Server>(ServerOptions{}, answers.handler());
  RawClient stays(server->port());
  {
    RawClient leaves(server->port());
    leaves.send(get("/hold"));
    stays.send(get("/hold"));
    ASSERT_TRUE(eventually([&] { return answers.count() == 2; }));
  }
  server.reset();
  EXPECT_EQ(stays.rest(), "");
  for (const auto& [id, answer] : answers.take()) answer({});
}

TEST(Server, SendsAnAnswerGivenJustBeforeShutdown) {
  for (int round = 0; round < 20; ++round) {
    HeldAnswers answers;
    auto server = std::make_unique<Server>(ServerOptions{}, answers.handler());
    RawClient client(server->port());
    client.send(get("/hold"));
    ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
    answers.take().front().second({200, "goodbye", "text/plain", {}});
    server.reset();
    ASSERT_EQ(body_of(client.rest()), "goodbye");
  }
}

TEST(Server, AwaitsAnswersDuringShutdown) {
  HeldAnswers answers;
  ServerOptions options;
  options.await_answers = true;
  options.shutdown_grace_seconds = kPatience;
  auto server = std::make_unique<Server>(options, answers.handler());
  RawClient client(server->port()), idle(server->port());
  client.send(get("/hold") + get("/not-begun"));
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  std::thread end([&] { server.reset(); });
  EXPECT_EQ(idle.rest(), "");  // the server has closed the connection
  answers.take().front().second({200, "done", "text/plain", {}});
  EXPECT_EQ(body_of(client.rest()), "done");
  end.join();
}

TEST(Server, AwaitsAnswersOnlyForTheGraceTime) {
  HeldAnswers answers;
  ServerOptions options;
  options.await_answers = true;
  options.shutdown_grace_seconds = 0.2;
  auto server = std::make_unique<Server>(options, answers.handler());
  RawClient client(server->port());
  client.send(get("/hold"));
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  server.reset();
  EXPECT_EQ(client.rest(), "");
}

TEST(Server, ShutsDownWhileHandlersAnswer) {
  for (int round = 0; round < 30; ++round) {
    HeldAnswers answers;
    ServerOptions options;
    options.threads = 1 + round % 3;
    auto server = std::make_unique<Server>(options, answers.handler());
    std::vector<RawClient> clients;
    for (int i = 0; i < 10; ++i) clients.emplace_back(server->port()).send(get("/hold"));
    ASSERT_TRUE(eventually([&] { return answers.count() == clients.size(); }));
    std::thread other([held = answers.take()] {
      for (const auto& [id, answer] : held) answer({200, "here", "text/plain", {}});
    });
    server.reset();
    other.join();
    for (RawClient& client : clients) {
      const std::string answer = client.rest();
      ASSERT_TRUE(answer.empty() || body_of(answer) == "here") << answer;
    }
  }
}

TEST(Server, PassesTheRequestToTheHandler) {
  std::promise<Request> promise;
  Server server({}, [&](const Request& request, Answer answer) {
    promise.set_value(request);
    answer({204, "not sent", "text/plain", {}});
  });
  RawClient client(server.port());
  client.send(
      "PUT /a%20b/%C3%A4?x=1+2&y=%26&z HTTP/1.1\r\nHOST: h\r\nX-Two: 1\r\nx-two: 2\r\nTransfer-Encoding: chunked\r\n"
      "\r\n3\r\nabc\r\n4;e=1\r\ndefg\r\n0\r\n\r\n");
  const std::string answer = client.message();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 204 No Content\r\n")) << answer;
  EXPECT_EQ(answer.find("content-length"), std::string::npos);
  const Request seen = promise.get_future().get();
  EXPECT_EQ(seen.method, "PUT");
  EXPECT_EQ(seen.target, "/a%20b/%C3%A4?x=1+2&y=%26&z");
  EXPECT_EQ(seen.path, "/a b/\xC3\xA4");
  EXPECT_EQ(seen.query, (std::map<std::string, std::string>{{"x", "1 2"}, {"y", "&"}, {"z", ""}}));
  EXPECT_EQ(seen.headers, (Headers{{"host", "h"}, {"x-two", "1, 2"}, {"transfer-encoding", "chunked"}}));
  EXPECT_EQ(seen.body, "abcdefg");
}

TEST(Server, KeepsOrClosesTheConnectionAsRequested) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  RawClient old(server.port());
  old.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(old.rest()), "GET /old ");
  RawClient last(server.port());
  last.send("GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(body_of(last.rest()), "GET /last ");
  RawClient head(server.port());
  head.send("HEAD /head HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = head.rest();
  EXPECT_NE(answer.find("content-length: 11\r\n"), std::string::npos) << answer;
  EXPECT_EQ(body_of(answer), "");
  RawClient half(server.port());
  half.send(get("/1") + get("/2"));
  // the client closes its sending side; the server still sends responses that its handlers gave at once
  half.half_close();
  EXPECT_EQ(body_of(half.message()), "GET /1 ");
  EXPECT_EQ(body_of(half.rest()), "GET /2 ");
}

TEST(Server, SendsStatus500ForAnInvalidResponse) {
  std::vector<Response> wrong = {{20, "", "", {}},
                                 {200, "", "text/plain\r\nx: y", {}},
                                 {200, "", "text/plain", {{"x y", "1"}}},
                                 {200, "", "text/plain", {{"x", "1\r\n\r\n"}}},
                                 {200, "", "text/plain", {{"Content-Length", "7"}}}};
  Server server({}, [&](const Request& request, Answer answer) { answer(wrong[std::stoul(request.path.substr(1))]); });
  RawClient client(server.port());
  for (size_t i = 0; i < wrong.size(); ++i) {
    client.send(get("/" + std::to_string(i)));
    const std::string answer = client.message();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
    EXPECT_NE(answer.find("HTTP_HANDLER_FAILED"), std::string::npos) << answer;
  }
}

std::string code_of(const ServerOptions& options) {
  try {
    Server server(options, [](const Request&, Answer) {});
  } catch (const Error& error) {
    EXPECT_FALSE(error.hint.empty());
    return std::string(error.code.text());
  }
  return "";
}

TEST(Server, ThrowsIfItCannotListen) {
  Server first({}, [](const Request&, Answer) {});
  ServerOptions taken;
  taken.port = first.port();
  EXPECT_EQ(code_of(taken), "HTTP_CANNOT_LISTEN");
  EXPECT_EQ(first.url(), "http://127.0.0.1:" + std::to_string(first.port()));
  ServerOptions options;
  options.address = "example";
  EXPECT_EQ(code_of(options), "HTTP_CANNOT_LISTEN");
  options = {};
  options.key = "key.pem";
  EXPECT_EQ(code_of(options), "HTTP_BAD_OPTIONS");
  options = {};
  options.threads = 0;
  EXPECT_EQ(code_of(options), "HTTP_BAD_OPTIONS");
  options = {};
  options.answer_seconds = std::nan("");
  EXPECT_EQ(code_of(options), "HTTP_BAD_OPTIONS");
}

}  // namespace
}  // namespace sinew::http
