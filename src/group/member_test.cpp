// Tests a member, with its client and its links, against a real coordinator.
#include <gtest/gtest.h>

#include "group/group.h"

namespace sinew::group {
namespace {

TEST(Member, FencesItselfWhenNoViewContainsItInTime) {
  cluster::CoordinatorOptions place;
  place.secret = "sesame";
  place.cluster.minimum = place.cluster.wanted = 2;
  const cluster::Coordinator coordinator(place, system_clock());
  MemberOptions options;
  options.client.url = [&] { return coordinator.url(); };
  options.client.secret = options.link.secret = place.secret;
  options.client.identity = {"job", "machine", "probe"};
  options.link.job = "job";
  try {
    const Member lonely(options, system_clock(), 0.2);
    FAIL();
  } catch (const Fenced& out) {
    EXPECT_NE(std::string(out.what()).find("no place in the group"), std::string::npos) << out.what();
    EXPECT_FALSE(out.finished);
  }
}

}  // namespace
}  // namespace sinew::group
