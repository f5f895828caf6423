#include "http/url.h"

#include <gtest/gtest.h>

#include <tuple>

#include "base/random.h"
#include "http/invariants.h"
#include "http/mutations.h"

namespace sinew::http {
namespace {

TEST(Url, AcceptsValidUrls) {
  struct Case {
    std::string text, host;
    bool tls;
    int port;
  };
  for (const Case& expected :
       {Case{"http://127.0.0.1:4711", "127.0.0.1", false, 4711},
        Case{"https://coordinator.example:1/", "coordinator.example", true, 1},
        Case{"http://[::1]:65535", "::1", false, 65535}, Case{"http://[fe80::1:2]", "fe80::1:2", false, 80},
        Case{"https://my_host-2", "my_host-2", true, 443}}) {
    const auto url = parse_url(expected.text);
    ASSERT_TRUE(url) << expected.text << " " << url.error();
    EXPECT_EQ(url->host, expected.host);
    EXPECT_EQ(url->tls, expected.tls);
    EXPECT_EQ(url->port, expected.port);
  }
  EXPECT_EQ(authority("::1", 80), "[::1]:80");
  EXPECT_EQ(authority("x", 80), "x:80");
}

TEST(Url, TheHostOfAUrlCanBeReadAndReplaced) {
  for (const auto& [url, host, port] :
       {std::tuple("http://[::1]:4711", "::1", 4711), std::tuple("https://[::1]", "::1", 443),
        std::tuple("http://127.0.0.1:80/", "127.0.0.1", 80), std::tuple("[::1]:4711", "", 0), std::tuple("", "", 0)}) {
    EXPECT_EQ(host_of(url), host) << url;
    EXPECT_EQ(port_of(url), port) << url;
  }
  EXPECT_EQ(with_host("http://[::1]:4711", "10.0.0.1"), "http://10.0.0.1:4711");
  EXPECT_EQ(with_host("https://0.0.0.0:4711", "node7.example"), "https://node7.example:4711");
  for (const char* host : {"::1", "[::1]"}) EXPECT_EQ(with_host("http://127.0.0.1:4711", host), "http://[::1]:4711");
  EXPECT_EQ(with_host("nonsense", "::1"), "nonsense");
}

TEST(Url, RefusesInvalidUrls) {
  for (const std::string text : {"",
                                 "x",
                                 "http:",
                                 "http:/",
                                 "http://",
                                 "http:///",
                                 "http://:80",
                                 "HTTP://x",
                                 "ftp://x",
                                 "http://x:",
                                 "http://x:0",
                                 "http://x:65536",
                                 "http://x:-1",
                                 "http://x:+1",
                                 "http://x: 1",
                                 "http://x:1a",
                                 "http://x:000001",
                                 "http://x/y",
                                 "http://x?y",
                                 "http://x#y",
                                 "http://x//",
                                 "http://u@x",
                                 "http://u:p@x:1",
                                 "http://a b",
                                 "http://a\nb:1",
                                 "http://[::1",
                                 "http://[::1]x:1",
                                 "http://[::1]1",
                                 "http://[]",
                                 "http://[1.2.3.4]",
                                 "http://::1:80",
                                 "http://[::1%lo]",
                                 "http://1",
                                 "http://127.1",
                                 "http://1.2.3.400",
                                 "http://.x",
                                 "http://a..b",
                                 "http://-x",
                                 "http://x\xff"}) {
    const auto url = parse_url(text);
    EXPECT_FALSE(url) << text;
    EXPECT_TRUE(url || !url.error().empty()) << text;
  }
  EXPECT_FALSE(parse_url(std::string("http://x\0y:1", 12)));
  EXPECT_FALSE(parse_url(std::string("http://[::1\0]:1", 15)));
  EXPECT_FALSE(parse_url("http://" + std::string(300, 'x')));
}

TEST(Target, ParsesPathsAndQueries) {
  const auto target = parse_target("/a%2Fb+c/?x=%3D&=y&z&&last=a=b+%2B");
  ASSERT_TRUE(target) << target.error();
  EXPECT_EQ(target->path, "/a/b+c/");
  EXPECT_EQ(target->query, (std::map<std::string, std::string>{{"x", "="}, {"", "y"}, {"z", ""}, {"last", "a=b +"}}));
  EXPECT_EQ(parse_target("http://x:1/a?b")->path, "/a");
  EXPECT_EQ(parse_target("*")->path, "*");
  const auto twice = parse_target("/?a=1&%61=2&a");
  EXPECT_EQ(twice->query.at("a"), "1");
  EXPECT_EQ(twice->repeated.at("a"), (std::vector<std::string>{"2", ""}));
  for (const std::string text : {"", "a", "**", "http://x", "/%", "/%1", "/%g0", "/%00", "/?%", "/?a=%4", "/#a"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

TEST(AnyText, IsReadOrRefused) {
  const std::string samples[] = {"http://127.0.0.1:80/", "https://[::1]:4711", "http://host.name",
                                 "/a/b?c=d&e=%20f+g",    "http://x/y?z",       "*"};
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    RandomStream random(random_key({seed, 3}));
    const std::string text = mutated(samples[random.below(std::size(samples))], random);
    check_url(text);
    check_target(text);
  }
}

TEST(AddressTowards, IsAnAddressOfThisMachine) {
  EXPECT_EQ(address_towards("http://127.0.0.1:4711"), "127.0.0.1");
  EXPECT_EQ(address_towards("https://127.1.2.3"), "127.0.0.1");
  const std::string by_name = address_towards("http://localhost:80");
  EXPECT_TRUE(by_name == "127.0.0.1" || by_name == "::1") << by_name;
  for (const char* none : {"", "127.0.0.1", "ftp://127.0.0.1", "http://no.such.host.invalid"}) {
    EXPECT_EQ(address_towards(none), "") << none;
  }
}

}  // namespace
}  // namespace sinew::http
