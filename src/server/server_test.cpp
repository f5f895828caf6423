// Several servers run inside one program. Each serves, stops and fails independently of the others.
#include "server/server.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/expected_error.h"
#include "store/store.h"

namespace sinew::server {
namespace {

class Servers : public testing::Test {
 protected:
  Servers() : folder_("/tmp/sinew-server-XXXXXX") { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~Servers() override { std::filesystem::remove_all(folder_); }
  // The options have no token file, so local clients may do everything.
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

TEST_F(Servers, WaitThrowsAfterTheServerWasReplaced) {
  const Server server(options("one"));
  store::Store store(options("one").store);
  ASSERT_TRUE(store.write(store::Release{"server", store.lease("server").fence}));
  ASSERT_TRUE(store.write(store::Acquire{"server", "another", 60}));
  EXPECT_EQ(code_of([&] { wait(server, [] { return false; }); }), "SERVER_REPLACED");
}

}  // namespace
}  // namespace sinew::server
