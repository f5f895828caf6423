#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "http/held_answers.h"
#include "http/raw_socket.h"

namespace sinew::http {
namespace {

using Kind = Failure::Kind;

Request post(std::string body, std::string target = "/") {
  Request request;
  request.method = "POST";
  request.target = std::move(target);
  request.body = std::move(body);
  return request;
}

// A server that accepts one connection after another, reads requests, and sends bytes that the test provides.
class Script {
 public:
  // `connections` has a list for each connection: the bytes to send for each of its requests. After the last request of
  // a list the server closes the connection.
  explicit Script(std::vector<std::vector<std::string>> connections)
      : thread_([this, connections = std::move(connections)] {
          for (const auto& answers : connections) {
            RawConnection connection = listener_.accept();
            for (const std::string& answer : answers) {
              if (!connection.message().empty()) ++requests_;
              connection.send(answer);
            }
          }
        }) {}
  ~Script() { thread_.join(); }
  std::string url() const { return listener_.url(); }
  int requests() const { return requests_; }
  bool has_client() { return listener_.has_client(); }

 private:
  RawListener listener_;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

TEST(Client, SendsManyRequestsOverOneConnection) {
  ServerOptions options;
  options.max_connections = 1;
  Server server(options, [](const Request& request, Answer answer) { answer({200, request.body, "text/plain", {}}); });
  Client client(server.url());
  for (size_t i = 0; i < 100; ++i) {
    const std::string body = std::string(i * 1000, 'x') + std::to_string(i);
    const auto response = client.send(post(body), kPatience);
    ASSERT_TRUE(response) << response.error().what;
    ASSERT_EQ(response->status, 200);
    ASSERT_EQ(response->body, body);
    ASSERT_EQ(response->content_type, "text/plain");
  }
}

TEST(Client, SendsAndReceivesBigBodies) {
  ServerOptions options;
  options.max_body_bytes = 16 << 20;
  options.read_seconds = kPatience;
  Server server(options, [](const Request& request, Answer answer) { answer({200, request.body, "text/plain", {}}); });
  Client client(server.url());
  const std::string body(16 << 20, 'b');
  auto response = client.send(post(body), kPatience);
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_TRUE(response->body == body);
  response = client.send(post(body + "1"), kPatience);  // the server responds while the client still sends
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->status, 413);
  response = client.send(post("small"), kPatience);
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->body, "small");
}

TEST(Client, ReconnectsToARestartedServer) {
  HeldAnswers answers;
  auto server = std::make_unique<Server>(ServerOptions{}, answers.handler());
  ServerOptions options;
  options.port = server->port();
  Client client(server->url());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client.send(post("a"), kPatience));
    server.reset();
    server = std::make_unique<Server>(options, answers.handler());
    const auto response = client.send(post("b"), kPatience);
    ASSERT_TRUE(response) << response.error().what;
    EXPECT_EQ(response->body, "POST / b");
  }
  server.reset();
  const auto response = client.send({}, kPatience);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Kind::refused);
  EXPECT_EQ(response.error().what,
            "cannot connect to 127.0.0.1:" + std::to_string(options.port) + ": Connection refused");
}

const std::string kFine = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";

TEST(Client, RetriesIfAKeptConnectionReturnsNoByte) {
  Script script({{kFine, ""}, {kFine}});
  Client client(script.url());
  for (int i = 0; i < 2; ++i) {
    const auto response = client.send({}, kPatience);
    ASSERT_TRUE(response) << response.error().what;
    EXPECT_EQ(response->body, "fine");
  }
  EXPECT_EQ(script.requests(), 3);
}

TEST(Client, RetriesOnlyOnce) {
  Script script({{kFine, ""}, {""}});
  Client client(script.url());
  ASSERT_TRUE(client.send({}, kPatience));
  const auto response = client.send({}, kPatience);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Kind::broken);
  EXPECT_TRUE(response.error().what.starts_with("no answer from 127.0.0.1:")) << response.error().what;
  EXPECT_FALSE(script.has_client());
}

TEST(Client, DoesNotRetryAfterTheFirstByte) {
  Script script({{kFine, "H"}});
  Client client(script.url());
  ASSERT_TRUE(client.send({}, kPatience));
  const auto response = client.send({}, kPatience);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Kind::broken);
  EXPECT_FALSE(script.has_client());
}

TEST(Client, DoesNotRetryOnANewConnection) {
  Script script({{""}});
  Client client(script.url());
  const auto response = client.send({}, kPatience);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Kind::broken);
  EXPECT_FALSE(script.has_client());
}

TEST(Client, ReadsOrRefusesWhateverAServerSends) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  struct Case {
    std::string sent, body;
    std::optional<Kind> failure;
  };
  const std::vector<Case> cases = {
      {"HTTP/1.1 100 Continue\r\n\r\n" + kFine, "fine", {}},
      {"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", "x", {}},
      {"HTTP/1.0 200 OK\r\n\r\nto the end", "to the end", {}},
      {head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc", {}},
      {"HTTP/1.1 204 No Content\r\n\r\n", "", {}},
      {kFine + kFine, "fine", {}},
      {head + "Content-Length: 9\r\n\r\nshort", "", Kind::broken},
      {head + "Transfer-Encoding: chunked\r\n\r\n3\r\nab", "", Kind::broken},
      {head, "", Kind::broken},
      {"220 mail.example ESMTP\r\n\r\n", "", Kind::broken},
      {"HTTP/1.1 999999 OK\r\n\r\n", "", Kind::broken},
      {head + "X: " + std::string(100'000, 'x'), "", Kind::broken},
      {head + "Content-Length: 1001\r\n\r\n", "", Kind::too_large},
      {head + "Content-Length: 99999999999\r\n\r\n", "", Kind::too_large},
      {head + "\r\n" + std::string(5000, 'x'), "", Kind::too_large},
      {head + "Transfer-Encoding: chunked\r\n\r\nfff\r\n", "", Kind::too_large},
  };
  for (const Case& expected : cases) {
    Script script({{expected.sent}});
    ClientOptions options;
    options.max_body_bytes = 1000;
    Client client(script.url(), options);
    const auto response = client.send({}, kPatience);
    ASSERT_EQ(response.has_value(), !expected.failure) << expected.sent.substr(0, 200);
    if (response) {
      EXPECT_EQ(response->body, expected.body) << expected.sent.substr(0, 200);
      continue;
    }
    EXPECT_EQ(response.error().kind, *expected.failure) << expected.sent.substr(0, 200) << response.error().what;
    EXPECT_NE(response.error().what.find("127.0.0.1:"), std::string::npos) << response.error().what;
  }
}

TEST(Client, DiscardsAResponseWithoutARequest) {
  Script script({{kFine + "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong"}, {kFine}});
  Client client(script.url());
  EXPECT_EQ(client.send({}, kPatience)->body, "fine");
  const auto response = client.send({}, kPatience);
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->body, "fine");
}

TEST(Client, WaitsNoLongerThanTheTimeout) {
  RawListener deaf;  // the kernel accepts the connection, but no program answers
  Client client(deaf.url());
  for (const double seconds : {0.2, 0.0, -1.0, std::nan("")}) {
    const auto response = client.send(post(std::string(8 << 20, 'x')), seconds);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, Kind::timeout);
    EXPECT_TRUE(response.error().what.starts_with("cannot ")) << response.error().what;
  }
}

TEST(Client, TimesOutDuringALongPoll) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  Client client(server.url());
  Request hold;
  hold.target = "/hold";
  const auto response = client.send(hold, 0.1);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Kind::timeout);
  const auto held = answers.take();
  for (const auto& [id, answer] : held) answer({200, "for the one before", "text/plain", {}});
  EXPECT_EQ(client.send(post("x"), kPatience)->body, "POST / x");
}

TEST(Client, IsCancelledFromAnotherThread) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  Client client(server.url());
  for (int round = 0; round < 20; ++round) {
    std::thread other([&] {
      EXPECT_TRUE(eventually([&] { return answers.count() == 1; }));
      client.cancel();
    });
    Request hold;
    hold.target = "/hold";
    const auto response = client.send(hold, kPatience);
    other.join();
    answers.take();
    ASSERT_FALSE(response);
    ASSERT_EQ(response.error().kind, Kind::broken);
    ASSERT_NE(response.error().what.find("cancelled"), std::string::npos) << response.error().what;
    ASSERT_TRUE(client.send(post("x"), kPatience)) << "a cancel ended more than one call";
  }
  client.cancel();
  const auto next = client.send({}, kPatience);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().kind, Kind::broken);
  EXPECT_TRUE(client.send({}, kPatience));
}

TEST(Client, IsCancelledAtAnyMoment) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  Client client(server.url());
  std::atomic<bool> stop = false;
  std::thread other([&] {
    RandomStream random(random_key({3}));
    while (!stop) {
      client.cancel();
      ::usleep(static_cast<useconds_t>(random.below(500)));
    }
  });
  for (int i = 0; i < 500; ++i) {
    const auto response = client.send(post(std::to_string(i)), kPatience);
    if (response) {
      EXPECT_EQ(response->body, "POST / " + std::to_string(i));
    } else {
      EXPECT_EQ(response.error().kind, Kind::broken) << response.error().what;
    }
  }
  stop = true;
  other.join();
}

TEST(Client, RefusesWrongUrlsAndRequests) {
  for (const std::string url : {"", "127.0.0.1:80", "ftp://x", "http://", "http://x:0", "http://x:1/a"}) {
    const auto response = Client(url).send({}, kPatience);
    ASSERT_FALSE(response) << url;
    EXPECT_EQ(response.error().kind, Kind::bad_url) << url;
    EXPECT_TRUE(response.error().what.starts_with("the URL '" + url + "' ")) << response.error().what;
  }
  RawListener listener;
  Client client(listener.url());
  std::vector<Request> wrong(6);
  wrong[0].target = "x";
  wrong[1].target = "/a b";
  wrong[2].target = "/\r\nx: y";
  wrong[3].method = "GE T";
  wrong[4].headers["x"] = "a\nb";
  wrong[5].headers["content-length"] = "5";
  for (const Request& request : wrong) {
    const auto response = client.send(request, kPatience);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, Kind::bad_url);
  }
  EXPECT_FALSE(listener.has_client()) << "something was sent all the same";
}

TEST(Client, ResolvesNamesAndCanBeMoved) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  Client first("http://localhost:" + std::to_string(server.port()));
  Client second = std::move(first);
  Request head;
  head.method = "HEAD";
  for (int i = 0; i < 3; ++i) {
    const auto response = second.send(i == 1 ? head : post("x"), kPatience);
    ASSERT_TRUE(response) << response.error().what;
    EXPECT_EQ(response->body, i == 1 ? "" : "POST / x");
  }
}

}  // namespace
}  // namespace sinew::http
