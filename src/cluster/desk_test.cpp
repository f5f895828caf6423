// The coordinator's mind with a made-up clock: successors, zombies, late words, two with one id, its own pauses.
#include "cluster/desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace sinew::cluster {
namespace {

using Phase = Member::Phase;
using ::testing::HasSubstr;

// A member as the coordinator sees it: words in, news out.
struct Speaker {
  Word word;
  Introduction introduction{"127.0.0.1:1", "here", 7, {"job", "machine", "probe"}};
  News news;

  explicit Speaker(const std::string& life) { word.life = life; }

  void join(Desk& desk, double now) {
    const Reply reply = desk.join(to_json(JoinCall{introduction, word.life}), {now, now});
    ASSERT_EQ(reply.status, 200) << reply.body;
    word.id = MemberId(*whole_of(*parse_json(reply.body), "id"));
  }

  // Says a word, introduces itself if asked, and acts by what it hears.
  void speak(Desk& desk, double now) {
    for (int tries = 0; tries < 2; ++tries) {
      const Reply reply = desk.word(to_json(word), {now, now});
      ASSERT_EQ(reply.status, 200) << reply.body;
      const auto heard = news_of(reply.body);
      ASSERT_TRUE(heard) << heard.error();
      news = *heard;
      word.introduction.reset();
      if (!news.who) break;
      word.introduction = introduction;
    }
    if (!news.view) return;
    word.told.view = news.view;
    word.have = word.acts = news.view->generation;
    const Seat* seat = news.view->find(word.id);
    word.told.phase = seat->joining ? Phase::caught_up : Phase::computing;
  }
};

CoordinatorOptions options_for(int64_t wanted, int64_t successor = 0) {
  CoordinatorOptions options;
  options.cluster.wanted = wanted;
  options.at_least = Generation(successor);
  return options;
}

// `count` members that compute by one view, heard at `now`.
std::vector<Speaker> group(Desk& desk, int64_t count, double now) {
  std::vector<Speaker> speakers;
  for (int64_t i = 0; i < count; ++i) {
    speakers.emplace_back("life-" + std::to_string(i));
    speakers.back().join(desk, now);
  }
  for (int round = 0; round < 2; ++round) {
    for (Speaker& speaker : speakers) speaker.speak(desk, now);
  }
  for (const Speaker& speaker : speakers) EXPECT_EQ(speaker.word.told.phase, Phase::computing);
  return speakers;
}

Json status_of(const Desk& desk, double now) {
  return *parse_json(desk.status({now, now}).body);
}

TEST(Desk, AJoinThatIsRepeatedGivesTheSameId) {
  Desk desk(options_for(3), {0, 0});
  Speaker one("a"), again("a"), other("b");
  one.join(desk, 0);
  again.join(desk, 0.1);
  other.join(desk, 0.2);
  EXPECT_EQ(one.word.id, again.word.id);
  EXPECT_NE(one.word.id, other.word.id);
}

TEST(Desk, ItsOwnPauseIsNobodysSilence) {
  Desk desk(options_for(2), {0, 0});
  auto speakers = group(desk, 2, 0);
  desk.tick({30, 30});  // it was stopped
  EXPECT_EQ(status_of(desk, 30)["members"].size(), 2u);
  speakers[0].speak(desk, 30.4);
  desk.tick({30.8, 30.8});
  EXPECT_EQ(status_of(desk, 30.8)["members"].size(), 2u);
  speakers[0].speak(desk, 31.1);
  EXPECT_EQ(status_of(desk, 31.1)["members"].size(), 1u) << "the other had its second";
  speakers[1].speak(desk, 31.2);
  ASSERT_TRUE(speakers[1].news.out);
  EXPECT_THAT(*speakers[1].news.out, HasSubstr("silent for 1.1 s"));
}

TEST(Desk, ASuccessorVouchesForNothingBeforeItListened) {
  Desk first(options_for(2), {0, 0});
  auto speakers = group(first, 2, 0);
  EXPECT_TRUE(speakers[0].news.seated);
  Desk second(options_for(2, 100), {10, 10});
  speakers[0].speak(second, 10.1);
  EXPECT_FALSE(speakers[0].news.seated);
  EXPECT_EQ(second.control(R"({"kind":"stop"})", {10.2, 10.2}).status, 503);
  speakers[1].speak(second, 10.9);
  speakers[0].speak(second, 11.0);
  speakers[0].speak(second, 11.4);
  EXPECT_TRUE(speakers[0].news.seated);
  EXPECT_EQ(status_of(second, 11.4)["view"]["generation"], speakers[0].word.acts.value);
}

TEST(Desk, ASuccessorTakesTheNewestViewThatAnyoneTells) {
  Desk first(options_for(3), {0, 0});
  auto speakers = group(first, 3, 0);
  const Speaker zombie = speakers[2];
  first.lost(R"({"id":3,"why":"cable"})", {0.5, 0.5});
  speakers[0].speak(first, 0.6);  // only this one heard of the second view
  ASSERT_EQ(speakers[0].news.view->seats.size(), 2u);
  Desk second(options_for(3, 100), {10, 10});
  Speaker late = zombie;
  late.speak(second, 10.1);
  speakers[1].speak(second, 10.2);
  speakers[0].speak(second, 10.3);
  speakers[1].speak(second, 10.4);
  EXPECT_EQ(speakers[1].news.view, speakers[0].word.told.view) << "the other hears of it now";
  for (const double now : {11.0, 11.3, 11.6}) {
    for (Speaker& speaker : speakers) speaker.speak(second, now);
    late.speak(second, now);
  }
  ASSERT_TRUE(late.news.out);
  EXPECT_THAT(*late.news.out, HasSubstr("the group went on without it"));
  EXPECT_FALSE(speakers[0].news.out);
  EXPECT_FALSE(speakers[1].news.out);
}

// Who has the state died with the coordinator; the only one to speak was put out and never heard of it. Without the
// last view nobody could know, and the run would go back.
TEST(Desk, ASuccessorThatKnowsTheLastViewDoesNotGoBackWithAZombie) {
  for (const bool knows : {true, false}) {
    std::optional<View> last;
    CoordinatorOptions options = options_for(2);
    options.on_view = [&](const View& view) { last = view; };
    Desk first(options, {0, 0});
    Speaker zombie = group(first, 2, 0)[1];
    first.lost(R"({"id":2,"why":"cable"})", {0.5, 0.5});
    ASSERT_TRUE(last);
    ASSERT_EQ(last->find(zombie.word.id), nullptr) << "each view is told before anybody asks";
    CoordinatorOptions next = options_for(2, 100);
    if (knows) next.last_view = last;
    Desk second(next, {10, 10});
    for (const double now : {10.1, 10.6, 11.1, 11.6}) {
      if (!zombie.news.out) zombie.speak(second, now);
    }
    EXPECT_EQ(zombie.news.out.has_value(), knows);
    if (knows) {
      EXPECT_THAT(*zombie.news.out, HasSubstr("the group went on without it"));
    }
  }
}

// The first to speak again may be one that only joins.
TEST(Desk, ASuccessorThatHeardNobodyWhoComputesYetWaitsForThem) {
  Desk first(options_for(2), {0, 0});
  auto speakers = group(first, 2, 0);
  Speaker joiner("joiner");
  joiner.join(first, 1);
  const Reply reply = first.word(to_json(joiner.word), {1.1, 1.1});
  joiner.word.told.view = news_of(reply.body)->view;
  ASSERT_TRUE(joiner.word.told.view);
  joiner.word.have = joiner.word.acts = joiner.word.told.view->generation;
  joiner.word.told.phase = Phase::joining;
  Desk second(options_for(2, 100), {10, 10});
  for (const double now : {10.1, 10.6, 11.1, 11.6}) {
    joiner.speak(second, now);
    for (Speaker& speaker : speakers) speaker.speak(second, now + 0.05);
  }
  for (const Speaker& speaker : speakers) {
    EXPECT_FALSE(speaker.news.out);
    EXPECT_TRUE(speaker.news.seated);
  }
}

TEST(Desk, ASuccessorsNumbersStayAwayFromItsPredecessors) {
  Desk first(options_for(2), {0, 0});
  auto speakers = group(first, 2, 0);
  const Generation before = speakers[0].word.acts;
  Desk second(options_for(2, 100), {10, 10});
  for (const double now : {10.1, 10.9}) {
    for (Speaker& speaker : speakers) speaker.speak(second, now);
  }
  Speaker fresh("fresh");
  fresh.join(second, 11.3);
  EXPECT_GE(fresh.word.id.value, 1000);
  speakers[0].speak(second, 11.4);
  ASSERT_TRUE(speakers[0].news.view);
  EXPECT_GE(speakers[0].news.view->generation.value, before.value + 1000);
}

TEST(Desk, AMemberThatComesBackAfterTheListeningStillBringsTheState) {
  Desk first(options_for(1), {0, 0});
  auto speakers = group(first, 1, 0);
  Desk second(options_for(1, 100), {10, 10});
  second.tick({10.4, 10.4});
  second.tick({10.8, 10.8});
  second.tick({11.2, 11.2});
  second.tick({11.6, 11.6});
  speakers[0].speak(second, 12);
  for (const double now : {12.4, 12.8, 13.2, 13.6}) speakers[0].speak(second, now);
  EXPECT_FALSE(speakers[0].news.out);
  EXPECT_TRUE(speakers[0].news.seated);
}

TEST(Desk, OfTwoWithOneIdTheSeatedOneKeepsIt) {
  Desk first(options_for(1), {0, 0});
  auto speakers = group(first, 1, 0);
  Desk second(options_for(2), {10, 10});  // nobody told it that it is a successor
  Speaker newcomer("newcomer");
  newcomer.join(second, 10);
  ASSERT_EQ(newcomer.word.id, speakers[0].word.id);
  speakers[0].speak(second, 10.1);
  EXPECT_FALSE(speakers[0].news.out);
  newcomer.speak(second, 10.2);
  ASSERT_TRUE(newcomer.news.out);
  EXPECT_EQ(*newcomer.news.out, "another has id 1");
}

TEST(Desk, ThePlaceOfADeadGroupIsNotTakenByItsZombies) {
  Desk desk(options_for(1), {0, 0});
  auto speakers = group(desk, 1, 0);
  desk.lost(R"({"id":1,"why":"killed"})", {0.1, 0.1});
  Speaker next("next");
  next.join(desk, 0.2);
  next.speak(desk, 0.3);
  ASSERT_TRUE(next.news.view);
  EXPECT_TRUE(next.news.view->fresh);
  EXPECT_GT(next.news.view->generation, speakers[0].word.acts);
  speakers[0].speak(desk, 0.4);
  EXPECT_EQ(speakers[0].news.out, "killed");
}

TEST(Desk, RequestsOutliveACoordinator) {
  Desk first(options_for(1), {0, 0});
  auto speakers = group(first, 1, 0);
  first.control(R"({"kind":"evaluate"})", {0.1, 0.1});
  first.control(R"({"kind":"stop","reason":"enough"})", {0.2, 0.2});
  speakers[0].speak(first, 0.3);
  ASSERT_TRUE(speakers[0].news.requests);
  Speaker& lead = speakers[0];
  lead.word.requests = *lead.news.requests;
  lead.word.key = lead.news.key;
  lead.word.told.taken_requests = 1;
  Desk second(options_for(1, 100), {10, 10});
  lead.speak(second, 10.1);
  EXPECT_EQ(status_of(second, 10.1)["requests"].size(), 1u);
  EXPECT_EQ(status_of(second, 10.1)["requests"][0]["kind"], "stop");
  for (const double now : {10.5, 10.9, 11.3, 11.6}) lead.speak(second, now);
  EXPECT_EQ(second.control(R"({"kind":"stop"})", {11.7, 11.7}).body, R"({"number":3})");
}

TEST(Desk, DamagedWordsAreAnsweredAndChangeNothing) {
  Desk desk(options_for(2), {0, 0});
  auto speakers = group(desk, 2, 0);
  Word word = speakers[0].word;
  word.introduction = speakers[0].introduction;
  word.requests = {{1, "stop", 0, "x"}};
  word.told.lost = {{MemberId(99), "gone"}};
  word.told.facts = R"({"loss":0.5})";
  const std::string good = to_json(word);
  ASSERT_TRUE(word_of(good)) << word_of(good).error();
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    RandomStream random(random_key({9, seed}));
    std::string text = good;
    for (uint64_t i = 0; i <= random.below(5); ++i) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    Desk fresh(options_for(2, 100), {10, 10});
    const Reply reply = fresh.word(text, {10.1, 10.1});
    EXPECT_TRUE(reply.status == 200 || reply.status == 400) << reply.status;
    EXPECT_TRUE(parse_json(reply.body)) << reply.body;
    fresh.tick({12, 12});
    EXPECT_TRUE(parse_json(fresh.status({12, 12}).body));
  }
}

TEST(Desk, TheEndWaitsForThoseWhoStillListen) {
  Desk desk(options_for(2), {0, 0});
  auto speakers = group(desk, 2, 0);
  speakers[0].word.told.finished = 75;
  speakers[0].speak(desk, 0.1);
  EXPECT_EQ(speakers[0].news.finished, 75);
  speakers[0].word.knows_end = true;
  speakers[0].speak(desk, 0.2);
  EXPECT_EQ(desk.over(0.2), std::nullopt);
  speakers[1].speak(desk, 0.4);
  EXPECT_EQ(speakers[1].news.finished, 75);
  EXPECT_EQ(desk.over(0.5), std::nullopt) << "told, but it did not say that it heard";
  speakers[1].word.knows_end = true;
  speakers[1].speak(desk, 0.6);
  EXPECT_EQ(desk.over(0.6), 75);
}

TEST(Desk, TheEndDoesNotWaitForTheSilent) {
  Desk desk(options_for(2), {0, 0});
  auto speakers = group(desk, 2, 0);
  speakers[0].word.told.finished = 0;
  speakers[0].word.knows_end = true;
  speakers[0].speak(desk, 0.3);
  EXPECT_EQ(desk.over(0.9), std::nullopt);
  EXPECT_EQ(desk.over(1.2), 0);
}

}  // namespace
}  // namespace sinew::cluster
