// Tests View and its JSON text: writing, reading back, and refusing a text that is no view.
#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster/cluster.h"

namespace sinew::cluster {
namespace {

View some_view() {
  View view{.generation = Generation(7), .members = {}, .fresh = true, .why = "member 5 joins; \"quoted\" \n\xc3\xa9"};
  view.going_back = {2, 400, "member 9 has another state"};
  view.members.push_back({MemberId(2), "127.0.0.1:4711", 0.1, false, MemberId()});
  view.members.push_back({MemberId(5), "[::1]:80", 1.0 / 3, true, MemberId(2)});
  view.members.push_back({MemberId(9), "host:1", 0, false, MemberId()});
  return view;
}

TEST(View, NamesTheComputingMembersAndTheLeader) {
  View view = some_view();
  EXPECT_EQ(view.computing(), (std::vector<MemberId>{MemberId(2), MemberId(9)}));
  EXPECT_EQ(view.leader(), MemberId(2));
  EXPECT_EQ(view.find(MemberId(5))->donor, MemberId(2));
  for (const int64_t absent : {1, 3, 6, 10}) EXPECT_EQ(view.find(MemberId(absent)), nullptr);
  EXPECT_EQ(View().leader(), std::nullopt);
  view.named_leader = MemberId(9);
  EXPECT_EQ(view.leader(), MemberId(9));
  EXPECT_EQ(view_of_json(to_json(view)), view);
  for (const int64_t joining_or_absent : {5, 6}) {
    view.named_leader = MemberId(joining_or_absent);
    EXPECT_EQ(view_of_json(to_json(view)), std::nullopt);
  }
}

TEST(View, TextReadsBackTheSame) {
  const auto back = view_of_json(to_json(some_view()));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, some_view());
  View never = some_view();
  never.going_back = {};
  EXPECT_EQ(view_of_json(to_json(never)), never);
  EXPECT_EQ(to_json(never).find("going_back"), std::string::npos);
}

TEST(View, RejectsTextThatIsNoView) {
  const std::string good = to_json(some_view());
  const auto with = [&](const std::string& old, const std::string& fresh) {
    std::string text = good;
    const auto at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return text.replace(at, old.size(), fresh);
  };
  for (const std::string& text : {
           std::string(),
           std::string("null"),
           std::string("[]"),
           std::string("{}"),
           good.substr(0, good.size() - 1),
           good + "x",
           std::string(100'000, '['),
           with("\"generation\":7", "\"generation\":0"),
           with("\"generation\":7", "\"generation\":7.5"),
           with("\"generation\":7", "\"generation\":18446744073709551615"),
           with("\"share\":0.1", "\"share\":-1"),
           with("\"share\":0.1", "\"share\":1e300"),
           with("\"share\":0.1", "\"share\":null"),
           with("\"id\":5", "\"id\":2"),
           with("\"id\":5", "\"id\":\"5\""),
           with("\"donor\":2", "\"donor\":3"),
           with("\"donor\":2", "\"donor\":5"),
           with(",\"donor\":2", ""),
           with("\"joining\":true", "\"joining\":false"),
           with("\"members\"", "\"sets\""),
           with("\"count\":2", "\"count\":0"),
           with("\"durable_step\":400", "\"durable_step\":-2"),
           with("127.0.0.1:4711", std::string(1000, 'a')),
       }) {
    EXPECT_FALSE(view_of_json(text)) << text.substr(0, 200);
  }
}

TEST(View, DamagedTextNeverCrashes) {
  const std::string good = to_json(some_view());
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    RandomStream random(random_key({5, seed}));
    std::string text = good;
    for (uint64_t i = 0; i <= random.below(4); ++i)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    if (const auto view = view_of_json(text)) {
      EXPECT_TRUE(view->leader());
      EXPECT_EQ(plan_shards(*view, 8).size(), 8u);
    }
  }
}

}  // namespace
}  // namespace sinew::cluster
