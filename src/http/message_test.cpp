#include "http/message.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "http/invariants.h"
#include "http/mutations.h"

namespace sinew::http {
namespace {

TEST(Message, PieceSizesDoNotChangeTheRequests) {
  size_t read = 0, refused = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStream random(random_key({seed, 4}));
    const std::string bytes = mutated_request(random);
    SCOPED_TRACE(seed);
    check_requests(bytes);
    const auto [found, last] = requests_in(bytes, bytes.size());
    read += found.empty() ? 0 : 1;
    refused += last == ParseState::refused ? 1 : 0;
  }
  EXPECT_GT(read, 500U);  // the mutations leave some requests valid and make some invalid
  EXPECT_GT(refused, 500U);
}

TEST(Message, AnyResponseIsReadOrRefused) {
  const std::string samples[] = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                                 "HTTP/1.0 200 OK\r\n\r\nuntil the end",
                                 "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nTransfer-Encoding: "
                                 "chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\n\r\n",
                                 "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"};
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    RandomStream random(random_key({seed, 5}));
    SCOPED_TRACE(seed);
    check_response(mutated(samples[random.below(std::size(samples))], random), random.below(4) == 0);
  }
}

TEST(Message, WrittenMessagesAreReadBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(random_key({seed, 6}));
    std::string body(random.below(200), '\0');
    for (char& c : body) c = static_cast<char>(random.below(256));

    Request request;
    request.method = random.below(2) == 0 ? "POST" : "DELETE";
    request.target = "/" + percent_encode(body);
    request.headers = {{"x-seed", std::to_string(seed)}};
    request.body = body;
    ASSERT_EQ(unsendable(request), "");
    std::string bytes = request_text(request, "h:1") + "next";
    RequestReader requests(2000, 300);
    ASSERT_EQ(requests.feed(bytes), body.find('\0') == std::string::npos ? ParseState::done : ParseState::refused);
    if (body.find('\0') == std::string::npos) {
      EXPECT_EQ(bytes, "next");
      const Request read = requests.take();
      EXPECT_EQ(read.path, "/" + body);
      EXPECT_EQ(read.body, body);
      EXPECT_EQ(read.headers.at("x-seed"), std::to_string(seed));
    }

    const Response response{200 + static_cast<int>(random.below(300)) / 7 * 100 % 400, body, "a/b", {{"x-seed", "1"}}};
    bytes = response_text(response, seed % 2 == 0, false) + "next";
    ResponseReader responses(300, false);
    ASSERT_EQ(responses.feed(bytes), ParseState::done);
    EXPECT_EQ(bytes, "next");
    EXPECT_EQ(responses.keep_alive(), seed % 2 == 0);
    const Response back = responses.take();
    EXPECT_EQ(back.status, response.status);
    EXPECT_EQ(back.body, body);
    EXPECT_EQ(back.content_type, "a/b");
  }
}

TEST(Message, TrailersAreNotHeaders) {
  std::string bytes =
      "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: me\r\nHost: y\r\n\r\n";
  RequestReader reader(2000, 300);
  ASSERT_EQ(reader.feed(bytes), ParseState::done);
  EXPECT_EQ(reader.take().headers, (Headers{{"host", "x"}, {"transfer-encoding", "chunked"}}));
}

TEST(Message, ReadsTheShortestChunkedBodyInPieces) {
  const std::string bytes = "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  check_requests(bytes);
  EXPECT_EQ(requests_in(bytes, 1).first, "PUT / keep host=x;transfer-encoding=chunked;\n");
}

TEST(Message, AnyErrorTextBecomesValidJson) {
  EXPECT_EQ(error_response(400, "TEST_CODE", "a \"b\"\n", "c").body,
            "{\"error\":\"a \\\"b\\\"\\n\",\"code\":\"TEST_CODE\",\"hint\":\"c\"}\n");
  EXPECT_EQ(error_response(400, "TEST_CODE", "\xff").body,
            "{\"error\":\"\xEF\xBF\xBD\",\"code\":\"TEST_CODE\",\"hint\":\"\"}\n");
}

}  // namespace
}  // namespace sinew::http
