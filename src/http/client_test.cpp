#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "http/http.h"
#include "http/raw_client.h"

namespace sinew::http {
namespace {

Handler echo() {
  return [](const Request& request, Answer answer) { answer({200, request.path + request.body, "text/plain", {}}); };
}

TEST(Client, AsksManyTimesOverOneConnection) {
  std::atomic<int> requests = 0;
  Server server({}, [&](const Request& request, Answer answer) {
    ++requests;
    answer({200, request.body, "text/plain", {}});
  });
  Client client(server.url());
  for (int i = 0; i < 100; ++i) {
    const std::string body = std::string(static_cast<size_t>(i) * 1000, 'x') + std::to_string(i);
    const auto response = client.send({"POST", "/", "", {}, {}, body}, kPatience);
    ASSERT_TRUE(response) << response.error().what;
    ASSERT_EQ(response->status, 200);
    ASSERT_EQ(response->body, body);
  }
  EXPECT_EQ(requests, 100);
}

TEST(Client, GoesOnWithAServerThatWasRestarted) {
  auto server = std::make_unique<Server>(ServerOptions{}, echo());
  const uint16_t port = server->port();
  Client client(server->url());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client.send({"POST", "/a", "", {}, {}, "b"}, kPatience));
    server.reset();
    ServerOptions options;
    options.port = port;
    server = std::make_unique<Server>(options, echo());
    const auto response = client.send({"POST", "/a", "", {}, {}, "b"}, kPatience);
    ASSERT_TRUE(response) << response.error().what;
    EXPECT_EQ(response->body, "/ab");
  }
  server.reset();
  const auto response = client.send({}, kPatience);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Failure::Kind::refused);
  EXPECT_EQ(response.error().what, "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
}

TEST(Client, IsCancelledFromAnotherThread) {
  std::atomic<bool> asked = false;
  std::vector<Answer> held;
  Server server({}, [&](const Request& request, Answer answer) {
    if (request.path == "/hold") {
      held.push_back(answer);
      asked = true;
    } else {
      answer({});
    }
  });
  Client client(server.url());
  std::thread other([&] {
    EXPECT_TRUE(eventually([&] { return asked.load(); }));
    client.cancel();
  });
  const auto response = client.send({"GET", "/hold", "", {}, {}, ""}, kPatience);
  other.join();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Failure::Kind::broken);
  EXPECT_TRUE(client.send({}, kPatience));
  client.cancel();
  const auto next = client.send({}, kPatience);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().kind, Failure::Kind::broken);
  EXPECT_TRUE(client.send({}, kPatience));
}

}  // namespace
}  // namespace sinew::http
