// Tests with clients that exceed a limit or misbehave. The server answers each of them or closes its connection, and
// the other clients are not affected.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <thread>

#include "base/random.h"
#include "http/held_answers.h"
#include "http/mutations.h"
#include "http/raw_socket.h"

namespace sinew::http {
namespace {

// Returns the beginning of the status line. Expects a body with an error, a code and a hint.
std::string refusal(const std::string& answer) {
  const std::string body = body_of(answer);
  EXPECT_TRUE(body.starts_with("{\"error\":\"")) << answer;
  EXPECT_NE(body.find("\"code\":\"HTTP_"), std::string::npos) << answer;
  EXPECT_NE(body.find("\"hint\":\""), std::string::npos) << answer;
  return answer.substr(0, 12);
}

TEST(Limits, RefusesLargeBodiesAndHeaders) {
  HeldAnswers answers;
  ServerOptions options;
  options.max_body_bytes = 100'000;
  options.max_header_bytes = 4096;
  Server server(options, answers.handler());
  const auto post = [](const std::string& length, const std::string& body) {
    return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + "\r\n\r\n" + body;
  };
  RawClient client(server.port());
  client.send(post("100000", std::string(100'000, 'b')));
  EXPECT_EQ(body_of(client.message()), "POST / " + std::string(100'000, 'b'));
  client.send("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(3900, 'h') + "\r\n\r\n");
  EXPECT_EQ(body_of(client.message()), "GET / ");

  const std::string chunk = "ea60\r\n" + std::string(60'000, 'c') + "\r\n";
  const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const auto& [request, status] : std::vector<std::pair<std::string, std::string>>{
           {post("100001", ""), "HTTP/1.1 413"},
           {post("100001", std::string(100'001, 'b')), "HTTP/1.1 413"},
           {post("18446744073709551615", "x"), "HTTP/1.1 413"},
           {chunked + chunk + chunk + chunk + chunk, "HTTP/1.1 413"},
           {chunked + "ffffffffffffffff\r\n", "HTTP/1.1 413"},
           {chunked + "5;" + std::string(20'000, 'e'), "HTTP/1.1 431"},
           {"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(5000, 'h'), "HTTP/1.1 431"},
           {"GET /" + std::string(5000, 't'), "HTTP/1.1 431"}}) {
    RawClient wrong(server.port());
    wrong.send(request);
    EXPECT_EQ(refusal(wrong.rest()), status) << request.substr(0, 80);
  }
}

TEST(Limits, RefusesMalformedRequests) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  const std::string host = "\r\nHost: x\r\n";
  for (const std::string& request : {
           std::string("hello\r\n\r\n"),
           std::string("GET / HTTP/2.0\r\n\r\n"),
           std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),
           std::string("GET / HTTP/1.1\r\n\r\n"),
           "GET x HTTP/1.1" + host + "\r\n",
           "GET /%zz HTTP/1.1" + host + "\r\n",
           "GET /%00 HTTP/1.1" + host + "\r\n",
           "GET /?a=1&a=2 HTTP/1.1" + host + "\r\n",
           "GET / HTTP/1.1" + host + "Host: y\r\n\r\n",
           "GET / HTTP/1.1" + host + "X : 1\r\n\r\n",
           "POST / HTTP/1.1" + host + "Content-Length: -1\r\n\r\n",
           "POST / HTTP/1.1" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
           "POST / HTTP/1.1" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1" + host + "Transfer-Encoding: gzip\r\n\r\n",
           "POST / HTTP/1.1" + host + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1" + host + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1" + host + "Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n",
       }) {
    RawClient client(server.port());
    client.send(request + get("/after"));  // the server cannot know where this request begins
    EXPECT_EQ(refusal(client.rest()), "HTTP/1.1 400") << request;
  }
}

TEST(Limits, SurvivesAnyBytes) {
  HeldAnswers answers;
  ServerOptions options;
  options.max_body_bytes = 300;
  options.read_seconds = kPatience;
  Server server(options, answers.handler());
  RawClient neighbour(server.port());
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomStream random(random_key({seed, 1}));
    const std::string bytes = mutated_request(random);
    RawClient client(server.port());
    client.send(bytes);
    client.half_close();
    const std::string all = client.rest();
    ASSERT_TRUE(all.empty() || all.starts_with("HTTP/1.1 ")) << "seed " << seed << ": " << all;
    if (seed % 50 != 0) continue;
    neighbour.send(get("/" + std::to_string(seed)));
    ASSERT_EQ(body_of(neighbour.message()), "GET /" + std::to_string(seed) + " ");
  }
}

TEST(Limits, ClosesAClientThatTrickles) {
  HeldAnswers answers;
  ServerOptions options;
  options.read_seconds = 0.3;
  Server server(options, answers.handler());
  for (const std::string& start :
       {std::string("GET / HTTP/1.1\r\nHost: "),
        std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n"), std::string("G")}) {
    RawClient client(server.port());
    client.send(start);
    EXPECT_TRUE(eventually([&] {
      ::usleep(20'000);
      return !client.send("x");
    })) << start;
  }
}

TEST(Limits, OnlyBytesOfTheBodyExtendTheDeadline) {
  struct Nothing final : Sink {
    std::optional<Response> take(std::string_view) override { return {}; }
  };
  HeldAnswers answers;
  ServerOptions options;
  options.read_seconds = 0.3;
  Server server(options, answers.handler(), [](const Request&) {
    Decision decision;
    decision.sink = std::make_shared<Nothing>();
    return decision;
  });
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;");
  for (int i = 0; i < 300 && client.send(std::string(50, 'e')); ++i) ::usleep(5000);  // less than kLongestLine in all
  client.send("\r\nhello\r\n0\r\n\r\n");
  EXPECT_EQ(refusal(client.rest()), "HTTP/1.1 408");
}

TEST(Limits, BytesOfALargeBodyExtendTheDeadline) {
  HeldAnswers answers;
  ServerOptions options;
  options.read_seconds = 1.5;
  Server server(options, answers.handler());
  constexpr size_t kPiece = 70'000, kPieces = 12;
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kPiece * kPieces) + "\r\n\r\n");
  for (size_t i = 0; i < kPieces; ++i) {
    ::usleep(200'000);
    ASSERT_TRUE(client.send(std::string(kPiece, 'b')));
  }
  EXPECT_EQ(body_of(client.message()).size(), kPiece * kPieces + 7);
}

TEST(Limits, ClosesAnIdleClient) {
  HeldAnswers answers;
  ServerOptions options;
  options.idle_seconds = 0.2;
  Server server(options, answers.handler());
  RawClient silent(server.port());
  EXPECT_EQ(silent.rest(), "");
  RawClient once(server.port());
  once.send(get("/once"));
  EXPECT_EQ(body_of(once.rest()), "GET /once ");
}

TEST(Limits, ClosesAClientThatDoesNotRead) {
  std::atomic<int> asked = 0;
  ServerOptions options;
  options.read_seconds = 0.3;
  options.max_connections = 1;
  Server server(options, [&](const Request& request, Answer answer) {
    ++asked;
    answer({200, std::string(request.path == "/big" ? 64 << 20 : 5, 'x'), "text/plain", {}});
  });
  RawClient lazy(server.port());
  lazy.send(get("/big"));
  ASSERT_TRUE(eventually([&] { return asked == 1; }));
  EXPECT_TRUE(eventually([&] {  // one connection is allowed, so the first must be closed
    RawClient other(server.port());
    other.send(get("/"));
    return body_of(other.message()) == "xxxxx";
  }));
}

TEST(Limits, SendsStatus504IfTheAnswerIsTooLate) {
  HeldAnswers answers;
  ServerOptions options;
  options.answer_seconds = 0.1;
  Server server(options, answers.handler());
  RawClient client(server.port());
  client.send(get("/hold"));
  const std::string answer = client.message();
  EXPECT_EQ(refusal(answer), "HTTP/1.1 504");
  client.send(get("/hold"));
  ASSERT_TRUE(eventually([&] { return answers.count() == 2; }));
  const auto held = answers.take();
  held.front().second({200, "of the first", "text/plain", {}});
  EXPECT_EQ(refusal(client.message()), "HTTP/1.1 504") << "the second request got the first one's answer";
}

// The server frees the memory of a request when it has answered the request, not only when the connection ends.
TEST(Limits, IdleConnectionsKeepNoBuffers) {
  constexpr size_t kClients = 200, kMostKept = 16 << 10;
  const auto used = [] {
    const auto facts = ::mallinfo2();
    return facts.uordblks + facts.hblkhd;
  };
  HeldAnswers answers;
  Server server({}, answers.handler());
  const std::string large = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + std::string(60'000, 'b');
  std::vector<RawClient> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(server.port()).send(get("/"));
    EXPECT_FALSE(clients.back().message().empty());
  }
  const size_t before = used();
  for (RawClient& client : clients) {
    client.send(large);
    EXPECT_EQ(body_of(client.message()).size(), 60'007u);
  }
  const bool kept_little = eventually([&] { return used() < before + kClients * kMostKept; });
  EXPECT_TRUE(kept_little) << (used() - before) / kClients << " bytes each";
}

// A handler that responds at once. The client counts as known if the path begins with /known.
Handler door() {
  return [](const Request& request, const Answer& answer) {
    Response response{200, request.path, "text/plain", {}};
    response.known_client = request.path.starts_with("/known");
    answer(response);
  };
}

TEST(Limits, ANewConnectionReplacesTheOldestStranger) {
  ServerOptions options;
  options.max_connections = 8;
  Server server(options, door());
  RawClient known(server.port());
  known.send(get("/known/1"));
  EXPECT_EQ(body_of(known.message()), "/known/1");
  std::vector<RawClient> idle;
  for (int i = 0; i < 7; ++i) {
    idle.emplace_back(server.port());
    idle.back().send(i == 0 ? "GET / HTTP/1.1\r\nHost:" : get("/" + std::to_string(i)));
    if (i == 0) continue;
    EXPECT_EQ(body_of(idle.back().message()), "/" + std::to_string(i));
  }
  for (size_t i = 0; i < 3; ++i) {
    RawClient late(server.port());
    late.send(get("/late"));
    EXPECT_EQ(body_of(late.message()), "/late");
    EXPECT_EQ(idle[i].rest(), "");  // the server closed it in favour of the late connection
    late.leave();
    EXPECT_TRUE(eventually([&] {
      RawClient next(server.port());
      next.send("GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      return body_of(next.message()) == "/next";
    }));
    idle.emplace_back(server.port());
  }
  known.send(get("/known/2"));
  EXPECT_EQ(body_of(known.message()), "/known/2");
}

TEST(Limits, AnAddressAboveItsLimitClosesItsOldestStranger) {
  ServerOptions options;
  options.max_connections_of_address = 2;
  Server server(options, door());
  RawClient first(server.port()), second(server.port());
  for (RawClient* client : {&first, &second}) {
    client->send(get("/x"));
    EXPECT_EQ(body_of(client->message()), "/x");
  }
  RawClient third(server.port());
  third.send(get("/known"));
  EXPECT_EQ(body_of(third.message()), "/known");
  EXPECT_EQ(first.rest(), "");
  second.send(get("/y"));
  EXPECT_EQ(body_of(second.message()), "/y");
}

TEST(Limits, KnownClientsLeaveConnectionsForOthers) {
  ServerOptions options;
  options.max_connections = 8;
  Server server(options, door());
  std::vector<RawClient> known;
  for (int i = 0; i < 8; ++i) {
    known.emplace_back(server.port()).send(get("/known"));
    EXPECT_EQ(body_of(known.back().message()), "/known");
  }
  RawClient late(server.port());
  late.send(get("/late"));
  EXPECT_EQ(body_of(late.message()), "/late");
}

TEST(Limits, ASilentStrangerIsClosedSoonerThanAnIdleClient) {
  ServerOptions options;
  options.read_seconds = 0.3;
  options.idle_seconds = kPatience;
  Server server(options, door());
  RawClient once(server.port()), silent(server.port());
  once.send(get("/once"));
  EXPECT_EQ(body_of(once.message()), "/once");
  EXPECT_EQ(silent.rest(), "");
  ::usleep(400'000);
  once.send(get("/twice"));
  EXPECT_EQ(body_of(once.message()), "/twice");
}

TEST(Limits, AWholeBodyHasALimitOfTime) {
  ServerOptions options;
  options.max_body_bytes = 1 << 30;
  options.body_seconds = 0.5;
  Server server(options, door());
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
  bool sent = true;
  for (int i = 0; i < 1000 && sent; ++i) {
    sent = client.send(std::string(70'000, 'b'));  // faster than read_seconds requires
    ::usleep(20'000);
  }
  EXPECT_FALSE(sent);
}

TEST(Limits, BodiesInMemoryAreBoundedTogether) {
  HeldAnswers answers;
  ServerOptions options;
  options.max_body_memory = 1 << 20;
  Server server(options, answers.handler());
  const auto post = [](const std::string& path, size_t bytes) {
    return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
           std::string(bytes, 'b');
  };
  RawClient first(server.port()), second(server.port());
  first.send(post("/hold", 700'000));
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  second.send(post("/", 700'000));
  const std::string refused = second.rest();
  EXPECT_EQ(refusal(refused), "HTTP/1.1 503");
  EXPECT_NE(refused.find("HTTP_OVERLOADED"), std::string::npos);
  EXPECT_NE(refused.find("retry-after: 1"), std::string::npos);
  for (auto& [id, answer] : answers.take()) answer({200, "", "text/plain", {}});
  first.message();
  RawClient third(server.port());  // the memory of the first request is free again
  third.send(post("/", 700'000));
  EXPECT_EQ(body_of(third.message()).size(), 700'007U);
}

TEST(Limits, AHandlerLearnsThatTheClientHasLeft) {
  std::mutex mutex;
  std::vector<std::shared_ptr<const std::atomic<bool>>> flags;
  std::vector<Answer> kept;
  ServerOptions options;
  options.answer_seconds = 0.5;
  Server server(options, [&](const Request& request, Answer answer) {
    const std::lock_guard lock(mutex);
    flags.push_back(request.abandoned);
    kept.push_back(std::move(answer));
  });
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return flags.size();
  };
  {
    RawClient leaves(server.port());
    leaves.send(get("/"));
    ASSERT_TRUE(eventually([&] { return count() == 1; }));
    EXPECT_FALSE(*flags[0]);
  }
  EXPECT_TRUE(eventually([&] { return flags[0]->load(); }));
  RawClient waits(server.port());
  waits.send(get("/"));
  EXPECT_TRUE(waits.message().starts_with("HTTP/1.1 504"));
  EXPECT_TRUE(flags[1]->load());
}

TEST(Limits, RequestsWaitingBehindALongPollAreBounded) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  client.send(get("/hold"));
  ASSERT_TRUE(eventually([&] { return answers.count() == 1; }));
  constexpr int kMany = 20'000;  // several times more than the server and the sockets buffer
  std::thread writer([&] {
    std::string all;
    for (int i = 0; i < kMany; ++i) all += get("/" + std::to_string(i) + "?" + std::string(400, 'q'));
    EXPECT_TRUE(client.send(all));
  });
  answers.take().front().second({200, "held", "text/plain", {}});
  EXPECT_EQ(body_of(client.message()), "held");
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(body_of(client.message()).starts_with("GET /" + std::to_string(i) + "?"));
  writer.join();
}

TEST(Limits, SupportsExpectContinue) {
  HeldAnswers answers;
  Server server({}, answers.handler());
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.message(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(body_of(client.message()), "POST / abc");
}

}  // namespace
}  // namespace sinew::http
