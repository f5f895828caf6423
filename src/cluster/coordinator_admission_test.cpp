// Tests that strangers cannot use up the memory for the bodies of calls: the coordinator answers them when the header
// of a call has arrived. The clients are raw sockets, which announce bodies that they do not send.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "cluster/coordinator_connection.h"
#include "cluster/protocol.h"
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kLargest = size_t{4} << 20;  // the largest body that the coordinator takes

std::string token_for(double seconds, const std::string& secret = "sesame") {
  return new_join_token(secret, static_cast<int64_t>(std::floor(system_clock().wall_seconds() + seconds)));
}

// A connection that sends and receives raw bytes.
class RawCaller {
 public:
  explicit RawCaller(uint16_t port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{static_cast<time_t>(kBound), 0};
    EXPECT_EQ(::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  RawCaller(RawCaller&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~RawCaller() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // Returns all bytes that arrive until the server closes its sending side.
  std::string rest() {
    std::string all;
    char piece[4096];
    for (ssize_t got; (got = ::recv(descriptor_, piece, sizeof piece, 0)) > 0;)
      all.append(piece, static_cast<size_t>(got));
    return all;
  }

 private:
  int descriptor_;
};

uint16_t port_of(const Running& coordinator) {
  return static_cast<uint16_t>(std::stoi(coordinator.url().substr(coordinator.url().rfind(':') + 1)));
}

std::string head_of(const std::string& path, const http::Headers& headers, size_t bytes = kLargest) {
  std::string text = "POST " + path + " HTTP/1.1\r\nhost: x\r\ncontent-length: " + std::to_string(bytes) + "\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  return text + "\r\n";
}

// Returns the answer to a call of which only the header is sent.
std::string answer_to_head(const Running& coordinator, const std::string& path, const http::Headers& headers) {
  RawCaller caller(port_of(coordinator));
  caller.send(head_of(path, headers));
  return caller.rest();
}

TEST(CoordinatorAdmission, AStrangerSendsNoBody) {
  const Running coordinator(options_for(1));
  const std::string elsewhere = token_for(3600, "another run");
  for (const std::string& secret : {std::string(), std::string("guess"), elsewhere}) {
    const http::Headers headers =
        secret.empty() ? http::Headers() : http::Headers{{"authorization", "Bearer " + secret}};
    EXPECT_THAT(answer_to_head(coordinator, "/v2/heartbeat", headers),
                AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("COORDINATOR_WRONG_SECRET")));
  }
  EXPECT_THAT(answer_to_head(coordinator, "/healthz", {}), StartsWith("HTTP/1.1 413"));
}

TEST(CoordinatorAdmission, ATokenThatIsOverSendsNoBody) {
  Running coordinator(options_for(1));
  const std::string token = token_for(3600);
  const http::Headers headers{{"authorization", "Bearer " + token}};
  coordinator.post("/v2/revoke", json{{"token", id_of_token(token)}}.dump());
  EXPECT_THAT(answer_to_head(coordinator, "/v2/heartbeat", headers),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\"fenced\":\"the join token")));
  EXPECT_THAT(answer_to_head(coordinator, "/v2/join", headers),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("COORDINATOR_TOKEN_REVOKED")));
}

// A worker whose token changed on the way must try again, and not take the answer for a refusal.
TEST(CoordinatorAdmission, ATokenThatChangedOnTheWayIsNotThatOfAStranger) {
  const Running coordinator(options_for(1));
  http::Request call = request_with("sesame", "POST", "/v2/heartbeat", "{}");
  call.headers["authorization"] = "Bearer sesamE";
  EXPECT_THAT(answer_to_head(coordinator, "/v2/heartbeat", call.headers),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("COORDINATOR_CALL_DAMAGED")));
  call.headers.erase("authorization");
  EXPECT_THAT(answer_to_head(coordinator, "/v2/heartbeat", call.headers),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("COORDINATOR_CALL_DAMAGED")));
}

// A token may use a quarter of the memory for bodies, also if members with the secret have the same address.
TEST(CoordinatorAdmission, TheBodiesOfATokenLeaveRoomForTheMembers) {
  Running coordinator(options_for(1));
  const std::string token = token_for(3600);
  std::vector<RawCaller> holders;
  const auto hold = [&] {  // until the coordinator ends slow calls, which it does soon on a busy machine
    holders.clear();
    for (int i = 0; i < 4; ++i) {
      holders.emplace_back(port_of(coordinator));
      holders.back().send(head_of("/v2/heartbeat", {{"authorization", "Bearer " + token}}));
      holders.back().send(std::string(kLargest - 1, 'x'));
    }
  };
  http::Client guest(coordinator.url());
  http::Request call = request_with(token, "POST", "/v2/heartbeat", std::string(1000, 'x'));
  const auto refused = [&] {
    const auto answer = guest.send(call, kBound);
    return answer && answer->status == 503;
  };
  int asked = 0;
  EXPECT_TRUE(wait_for([&] {
    if (asked++ % 500 == 0) hold();
    return refused();
  })) << "the holders have used up the share of the token";
  const std::string workers = R"({"workers":3)" + std::string(1000, ' ') + "}";
  EXPECT_EQ(json::parse(coordinator.post("/v2/scale", workers))["workers"], 3);
}

}  // namespace
}  // namespace sinew::cluster::testing
