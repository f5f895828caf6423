#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "http/http.h"
#include "http/raw_client.h"

namespace sinew::http {
namespace {

// What the handler of a test server can be asked to do.
class Answers {
 public:
  Handler handler() {
    return [this](const Request& request, Answer answer) {
      if (request.path == "/throw") throw Error("it is broken", "mend it");
      if (request.path == "/throw-int") throw 7;
      if (request.path == "/drop") return;
      if (request.path == "/hold") {
        const std::lock_guard lock(mutex_);
        held_.push_back(std::move(answer));
        return;
      }
      answer({200, request.method + " " + request.target + " " + request.body, "text/plain", {}});
    };
  }
  size_t held() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  std::vector<Answer> take() {
    const std::lock_guard lock(mutex_);
    return std::move(held_);
  }

 private:
  std::mutex mutex_;
  std::vector<Answer> held_;
};

std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

TEST(Server, AnswersInOrderWhatWasSentAtOnce) {
  Answers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 200; ++i) all += get("/" + std::to_string(i));
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(body_of(client.answer()), "GET /" + std::to_string(i) + " ");
}

TEST(Server, AnAnswerGivenLateByAnotherThread) {
  Answers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  client.send(get("/hold") + get("/next"));
  ASSERT_TRUE(eventually([&] { return answers.held() == 1; }));
  std::thread([answer = answers.take().front()] {
    answer({201, "late", "text/plain", {{"x-more", "1"}}});
    answer({202, "too late", "text/plain", {}});
  }).join();
  const std::string answer = client.answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 201 Created\r\n")) << answer;
  EXPECT_NE(answer.find("x-more: 1\r\n"), std::string::npos);
  EXPECT_EQ(body_of(answer), "late");
  EXPECT_EQ(body_of(client.answer()), "GET /next ");
}

TEST(Server, AHandlerThatFailsOrForgets) {
  Answers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  client.send(get("/throw") + get("/throw-int") + get("/drop") + get("/fine"));
  std::string answer = client.answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_EQ(body_of(answer), "{\"error\":\"it is broken\",\"hint\":\"mend it\"}\n");
  EXPECT_TRUE(client.answer().starts_with("HTTP/1.1 500 "));
  answer = client.answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_NE(answer.find("without an answer"), std::string::npos) << answer;
  EXPECT_EQ(body_of(client.answer()), "GET /fine ");
}

}  // namespace
}  // namespace sinew::http
