// Tests bodies that pass through in pieces: sources, sinks, and how a slow or absent client stops them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/random.h"
#include "http/held_answers.h"
#include "http/http.h"
#include "http/raw_socket.h"

namespace sinew::http {
namespace {

std::string random_bytes(uint64_t seed, size_t size) {
  std::vector<uint32_t> words(size / 4 + 1);
  fill_random_bits(random_key({seed}), words);
  return {reinterpret_cast<const char*>(words.data()), size};
}

// A temporary file.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& bytes) {
    char name[] = "/tmp/sinew-http-XXXXXX";
    ::close(::mkstemp(name));
    path = name;
    std::ofstream(path, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string path;
};

// A source whose pieces the test provides.
class Tap {
 public:
  Source source() {
    return [this](Write give) {
      const std::lock_guard lock(mutex_);
      waiting_ = std::move(give);
      ++asked;
    };
  }
  bool give(const std::string& piece) {
    if (!eventually([&] { return waits(); })) return false;
    const std::lock_guard lock(mutex_);
    std::exchange(waiting_, nullptr)(piece);
    return true;
  }
  bool waits() {
    const std::lock_guard lock(mutex_);
    return waiting_ != nullptr;
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    waiting_ = nullptr;
  }
  std::atomic<int> asked = 0;

 private:
  std::mutex mutex_;
  Write waiting_;
};

Handler streaming(Tap& tap, std::optional<uint64_t> bytes = {}) {
  return [&tap, bytes](const Request& request, const Answer& answer) {
    if (request.path == "/plain") return answer({200, "plain", "text/plain"});
    answer({200, "", "text/event-stream", {}, tap.source(), bytes});
  };
}

TEST(Stream, SendsPiecesAndKeepsTheConnection) {
  Tap tap;
  Server server({}, streaming(tap));
  RawClient client(server.port());
  client.send(get("/") + get("/plain"));
  for (const char* piece : {"one", "two", ""}) ASSERT_TRUE(tap.give(piece));
  const std::string header = client.message();
  EXPECT_NE(header.find("transfer-encoding: chunked\r\n"), std::string::npos) << header;
  client.half_close();
  const std::string rest = client.rest();
  EXPECT_TRUE(rest.starts_with("3\r\none\r\n3\r\ntwo\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n")) << rest;
}

TEST(Stream, ClosesTheConnectionToEndABodyOfHttp10) {
  Tap tap;
  Server server({}, streaming(tap));
  RawClient client(server.port());
  client.send("GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n");
  for (const char* piece : {"one", "two", ""}) ASSERT_TRUE(tap.give(piece));
  const std::string all = client.rest();
  EXPECT_EQ(body_of(all), "onetwo") << all;
  EXPECT_EQ(all.find("transfer-encoding"), std::string::npos);
}

TEST(Stream, BreaksOffABodyOfTheWrongLength) {
  for (const std::string piece : {"", "longer than it may be"}) {
    Tap tap;
    Server server({}, streaming(tap, 7));
    RawClient client(server.port());
    client.send(get("/"));
    ASSERT_TRUE(tap.give("abc"));
    ASSERT_TRUE(tap.give(piece));
    EXPECT_EQ(body_of(client.rest()), "abc");
  }
  Tap tap;
  Server server({}, streaming(tap));
  RawClient client(server.port());
  client.send(get("/"));
  ASSERT_TRUE(tap.give("abc"));
  ASSERT_TRUE(eventually([&] { return tap.waits(); }));
  tap.drop();
  EXPECT_EQ(body_of(client.rest()),
            "3\r\nabc\r\n");  // without a last chunk the client sees that the body is incomplete
}

TEST(Stream, StopsASourceWhoseClientDoesNotRead) {
  ServerOptions options;
  options.read_seconds = 0.3;
  std::atomic<uint64_t> given = 0;
  Server server(options, [&](const Request&, const Answer& answer) {
    answer({200, "", "text/plain", {}, [&](const Write& give) {
              given += 1 << 20;
              give(std::string(1 << 20, 'x'));
            }});
  });
  RawClient client(server.port());
  client.send(get("/"));
  ASSERT_TRUE(eventually([&] { return given > 0; }));
  uint64_t before = 0;
  ASSERT_TRUE(eventually([&] {  // once the socket's buffers are full, the deadline closes the connection
    const bool still = given == before;
    before = given;
    ::usleep(400'000);
    return still;
  }));
  EXPECT_LT(given, 100u << 20);
}

TEST(Stream, DestroysTheSourceWhenTheClientLeaves) {
  auto alive = std::make_shared<int>(0);
  Tap tap;
  Server server({}, [&](const Request&, const Answer& answer) {
    answer({200, "", "text/event-stream", {}, [alive, source = tap.source()](Write give) { source(std::move(give)); }});
  });
  {
    RawClient client(server.port());
    client.send(get("/"));
    ASSERT_TRUE(tap.give("a"));
    ASSERT_TRUE(eventually([&] { return tap.waits(); }));
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_TRUE(eventually([&] { return alive.use_count() == 1; }));
}

TEST(Stream, ShutdownCompletesBodiesWithoutALength) {
  Tap tap;
  auto server = std::make_unique<Server>(ServerOptions{}, streaming(tap));
  RawClient client(server->port());
  client.send(get("/"));
  ASSERT_TRUE(tap.give("a"));
  ASSERT_TRUE(eventually([&] { return tap.waits(); }));
  server.reset();
  EXPECT_EQ(body_of(client.rest()), "1\r\na\r\n0\r\n\r\n");
}

TEST(Stream, ShutdownBeforeTheFirstPieceSendsAnotherBody) {
  for (const bool begun : {false, true}) {
    Tap tap;
    auto server = std::make_unique<Server>(ServerOptions{}, [&](const Request&, const Answer& answer) {
      Response response{200, "", "text/plain", {}, tap.source()};
      response.body_at_shutdown = "nothing";
      answer(response);
    });
    RawClient client(server->port());
    client.send(get("/"));
    if (begun) {
      ASSERT_TRUE(tap.give("a"));
    }
    ASSERT_TRUE(eventually([&] { return tap.waits(); }));
    server.reset();
    EXPECT_EQ(body_of(client.rest()), begun ? "1\r\na\r\n0\r\n\r\n" : "7\r\nnothing\r\n0\r\n\r\n");
  }
}

TEST(File, IsSentWholeOrInParts) {
  const std::string bytes = random_bytes(1, 3'000'001);
  const TemporaryFile file(bytes);
  Server server({}, [&](const Request& request, const Answer& answer) {
    answer(file_response(request, file.path, "application/octet-stream", "tag"));
  });
  const auto ask = [&](const std::string& headers, const std::string& method = "GET") {
    RawClient client(server.port());
    client.send(method + " / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
    return client.rest();
  };
  EXPECT_TRUE(body_of(ask("")) == bytes);
  const std::string head = ask("", "HEAD");
  EXPECT_NE(head.find("content-length: 3000001\r\n"), std::string::npos) << head;
  EXPECT_EQ(body_of(head), "");
  EXPECT_TRUE(ask("If-None-Match: \"tag\"\r\n").starts_with("HTTP/1.1 304"));
  EXPECT_TRUE(ask("If-None-Match: \"other\"\r\n").starts_with("HTTP/1.1 200"));
  struct Case {
    const char *range, *status;
    size_t first, size;
  };
  for (const Case& c : std::initializer_list<Case>{{"bytes=0-0", "206", 0, 1},
                                                   {"bytes=5-999999", "206", 5, 999'995},
                                                   {"bytes=3000000-", "206", 3'000'000, 1},
                                                   {"bytes=-10", "206", 2'999'991, 10},
                                                   {"bytes=-99999999", "206", 0, 3'000'001},
                                                   {"bytes=0-99999999", "206", 0, 3'000'001},
                                                   {"bytes=9-5", "200", 0, 3'000'001},
                                                   {"bytes=0-1,5-6", "200", 0, 3'000'001},
                                                   {"bytes=x-", "200", 0, 3'000'001},
                                                   {"lines=0-1", "200", 0, 3'000'001}}) {
    const std::string answer = ask(std::string("Range: ") + c.range + "\r\n");
    EXPECT_EQ(answer.substr(9, 3), c.status) << c.range;
    EXPECT_TRUE(body_of(answer) == bytes.substr(c.first, c.size)) << c.range;
  }
  for (const char* range : {"bytes=3000001-", "bytes=-0"}) {
    const std::string answer = ask(std::string("Range: ") + range + "\r\n");
    EXPECT_EQ(answer.substr(9, 3), "416") << range;
    EXPECT_NE(answer.find("content-range: bytes */3000001\r\n"), std::string::npos);
  }
  EXPECT_EQ(ask("Range: bytes=0-0\r\nIf-Range: \"old\"\r\n").substr(9, 3), "200");
}

// A sink that counts the bytes, and refuses the request when there are more than `most`.
class Counter final : public Sink {
 public:
  explicit Counter(std::atomic<int>& alive, size_t most) : alive_(alive), most_(most) { ++alive_; }
  ~Counter() override { --alive_; }
  std::optional<Response> take(std::string_view piece) override {
    bytes += piece.size();
    if (bytes > most_) return Response{507, "full", "text/plain"};
    return std::nullopt;
  }
  size_t bytes = 0;

 private:
  std::atomic<int>& alive_;
  const size_t most_;
};

struct Uploads {
  std::atomic<int> alive = 0, handled = 0;
  Admission admission = [this](const Request& header) {
    Decision decision;
    static const std::set<std::string> lists{"id"};
    decision.repeatable = &lists;
    if (header.path == "/no") decision.refusal = Response{401, "who are you?", "text/plain"};
    if (header.path.starts_with("/up")) {
      decision.max_body_bytes = 100 << 20;
      decision.sink = std::make_shared<Counter>(alive, header.path == "/up/full" ? 1 << 20 : SIZE_MAX);
    }
    return decision;
  };
  Handler handler = [this](const Request& request, const Answer& answer) {
    ++handled;
    std::string text = request.sink ? std::to_string(static_cast<Counter&>(*request.sink).bytes) : request.body;
    for (const auto& [name, values] : request.repeated) {
      for (const std::string& value : values) text += " " + name + "=" + value;
    }
    answer({200, text, "text/plain"});
  };
};

std::string put(const std::string& path, size_t size) {
  return "PUT " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
}

TEST(Upload, GoesThroughASinkWithItsOwnLimit) {
  Uploads uploads;
  Server server({}, uploads.handler, uploads.admission);
  RawClient client(server.port());
  const std::string piece(1 << 20, 'p');
  client.send(put("/up", 30 << 20));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(client.send(piece));
  EXPECT_EQ(body_of(client.message()), std::to_string(30 << 20));
  client.send("PUT /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n100000\r\n" + piece +
              "\r\n0\r\n\r\n" + get("/next"));
  EXPECT_EQ(body_of(client.message()), std::to_string((1 << 20) + 5));
  EXPECT_EQ(body_of(client.message()), "");
  EXPECT_TRUE(eventually([&] { return uploads.alive == 0; }));
}

// A handler may need long to hash and sync a large file. Meanwhile the server sends "100 Continue".
TEST(Upload, SendsContinueWhileTheHandlerStoresTheBody) {
  HeldAnswers answers;
  ServerOptions options;
  options.answer_seconds = 0.2;
  Server server(options, answers.handler(), [](const Request& header) {
    Decision decision;
    decision.max_body_bytes = 1 << 30;
    static std::atomic<int> alive = 0;
    if (header.method == "PUT") decision.sink = std::make_shared<Counter>(alive, SIZE_MAX);
    return decision;
  });
  const std::string working = "HTTP/1.1 100 Continue\r\n\r\n";
  RawClient client(server.port());
  client.send(put("/hold", 64 << 20));
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(client.send(std::string(1 << 20, 'p')));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(client.message(), working);  // 0.3 s
  answers.take().front().second({201, "kept", "text/plain", {}});
  std::string answer;
  do answer = client.message();
  while (answer == working);
  EXPECT_EQ(body_of(answer), "kept") << answer;
  client.send(put("/hold", 10) + "0123456789");
  do answer = client.message();
  while (answer == working);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 504")) << answer;
  client.send(get("/hold"));
  EXPECT_TRUE(client.message().starts_with("HTTP/1.1 504")) << "without a sink there is no 100 Continue before";
}

TEST(Upload, IsRefusedBeforeItIsSentOrWhenItDoesNotFit) {
  Uploads uploads;
  Server server({}, uploads.handler, uploads.admission);
  for (const auto& [request, status] : std::vector<std::pair<std::string, std::string>>{
           {put("/no", 50 << 20), "401"},
           {"PUT /no HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", "401"},
           {put("/up", (100 << 20) + 1), "413"},
           {put("/other", (1 << 20) + 1), "413"},
           {put("/up/full", 50 << 20) + std::string((1 << 20) + 1, 'x'), "507"}}) {
    RawClient client(server.port());
    client.send(request);
    const std::string answer = client.rest();
    EXPECT_EQ(answer.substr(9, 3), status) << request.substr(0, 90);
    EXPECT_EQ(answer.find("100 Continue"), std::string::npos);
  }
  EXPECT_EQ(uploads.handled, 0);
  EXPECT_TRUE(eventually([&] { return uploads.alive == 0; }));
}

TEST(Upload, AdmissionSeesTheClientsAddress) {
  std::string asks;
  Uploads uploads;
  Server server({}, uploads.handler, [&](const Request& header) {
    asks = header.peer;
    return uploads.admission(header);
  });
  RawClient client(server.port());
  client.send(put("/up", 1) + "x");
  EXPECT_EQ(body_of(client.message()), "1");
  EXPECT_EQ(asks, "127.0.0.1");
}

TEST(Upload, AnIncompleteUploadCallsNoHandler) {
  Uploads uploads;
  Server server({}, uploads.handler, uploads.admission);
  {
    RawClient client(server.port());
    client.send(put("/up", 50 << 20) + std::string(100'000, 'x'));
    ASSERT_TRUE(eventually([&] { return uploads.alive == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return uploads.alive == 0; }));
  EXPECT_EQ(uploads.handled, 0);
}

TEST(Upload, AdmissionAllowsRepeatedNames) {
  Uploads uploads;
  Server server({}, uploads.handler, uploads.admission);
  RawClient client(server.port());
  client.send(get("/?id=1&id=2&id=%33&x=1"));
  EXPECT_EQ(body_of(client.message()), " id=2 id=3");
  client.send(get("/?x=1&x=2"));
  EXPECT_TRUE(client.message().starts_with("HTTP/1.1 400 "));
}

TEST(Connections, ThousandsOfIdleClientsDoNotBlockOthers) {
  const size_t possible = connection_limit(20'500);  // both ends of each connection belong to this process
  const size_t idle = std::min<size_t>(10'000, possible / 2 - 100);
  ServerOptions options;
  options.max_connections = idle + 10;
  options.read_seconds = kPatience;  // the time that the silent clients have for their first byte
  Uploads uploads;
  Server server(options, uploads.handler, uploads.admission);
  std::vector<RawClient> silent;
  for (size_t i = 0; i < idle; ++i) silent.emplace_back(server.port());
  for (int i = 0; i < 200; ++i) {
    RawClient client(server.port());
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    ASSERT_TRUE(client.rest().starts_with("HTTP/1.1 200 ")) << i;
  }
  for (size_t i = 0; i < idle; i += 97) {
    ASSERT_TRUE(silent[i].send(get("/")));
    ASSERT_FALSE(silent[i].message().empty()) << i;
  }
}

}  // namespace
}  // namespace sinew::http
