#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

class Records : public OnBoth {};
ON_BOTH(Records);

TEST_P(Records, AreReadBackAsWritten) {
  auto store = open();
  done(*store, Create{{Kind::kExperiment, "e1"}, "", "digits", "{\"a\":1}", {}, {{"team", "x"}}});
  done(*store,
       Create{{Kind::kRun, "r1"}, "e1", "first", "body", {{"lr", "0.1"}}, {{"user", "me"}}, RunState::kQueued, 123});
  const auto run = store->find({Kind::kRun, "r1"});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->parent, "e1");
  EXPECT_EQ(run->name, "first");
  EXPECT_EQ(run->body, "body");
  EXPECT_EQ(run->params, (Labels{{"lr", "0.1"}}));
  EXPECT_EQ(run->tags, (Labels{{"user", "me"}}));
  EXPECT_EQ(run->state, RunState::kQueued);
  EXPECT_EQ(run->begun_ms, 123);
  EXPECT_EQ(run->ended_ms, 0);
  EXPECT_EQ(run->attempt, 1);
  EXPECT_FALSE(run->hidden);
  const auto experiment = store->find({Kind::kExperiment, "e1"});
  ASSERT_TRUE(experiment);
  EXPECT_EQ(experiment->name, "digits");
  EXPECT_LT(experiment->seq, run->seq);
  EXPECT_FALSE(store->find({Kind::kRun, "e1"}));
}

TEST_P(Records, AreRefusedTwiceOrWithoutAParent) {
  auto store = open();
  done(*store, Create{{Kind::kExperiment, "e1"}, "", "digits"});
  EXPECT_TRUE(is_refused(store->write(Create{{Kind::kExperiment, "e1"}}), Reason::kExists));
  EXPECT_TRUE(is_refused(store->write(Create{{Kind::kExperiment, "e2"}, "", "digits"}), Reason::kExists));
  EXPECT_TRUE(is_refused(store->write(Create{{Kind::kRun, "r"}, "e9"}), Reason::kNotFound));
  EXPECT_TRUE(is_refused(store->write(Create{{Kind::kVersion, "m"}}), Reason::kNotFound));
  EXPECT_TRUE(is_refused(store->write(Create{{Kind::kLease, "l"}}), Reason::kInvalid));
  EXPECT_TRUE(
      is_refused(store->write(Create{{Kind::kRun, "r"}, "e1", "", "", {}, {}, RunState::kFinished}), Reason::kInvalid));
  EXPECT_EQ(store->events({}).size(), 1U) << "what is refused leaves no event";
}

TEST_P(Records, AreAllReadPageByPage) {
  auto store = open();
  for (int i = 0; i < 10; ++i) make_run(*store, "r" + std::to_string(i), "e");
  done(*store, Update{{Kind::kRun, "r3"}, {}, {}, true});
  for (const int64_t limit : {1, 3, 9, 10, 1000}) {
    std::string ids;
    store->each({.kind = Kind::kRun, .limit = limit}, [&](const Record& record) {
      ids += record.subject.id;
      EXPECT_TRUE(store->find(record.subject));
    });
    EXPECT_EQ(ids, "r9r8r7r6r5r4r2r1r0") << limit;
    EXPECT_EQ(store->all({.kind = Kind::kRun, .hidden = true, .limit = limit}).size(), 10U) << limit;
    EXPECT_TRUE(store->all({.kind = Kind::kRun, .parent = "none", .limit = limit}).empty()) << limit;
  }
}

TEST_P(Records, VersionsAreFoundByTheirModelsName) {
  auto store = open();
  for (const char* model : {"m", "n", "mm"}) {
    done(*store, Create{{Kind::kModel, model}});
    for (int i = 0; i < 3; ++i) done(*store, Create{{Kind::kVersion, model}});
  }
  const auto versions = store->all({.kind = Kind::kVersion, .name = "m", .limit = 2});
  ASSERT_EQ(versions.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(versions[i].subject, (Subject{Kind::kVersion, "m", 3 - int64_t(i)}));
}

// newest_event() returns the number that a caller then passes in Batch::unchanged.
TEST_P(Records, NewestEventIgnoresTheVersionNumber) {
  auto store = open();
  EXPECT_EQ(store->newest_event({Kind::kModel, "m"}), 0);
  const int64_t made = store->write(Create{{Kind::kModel, "m"}})->seq;
  EXPECT_EQ(store->newest_event({Kind::kModel, "m"}), made);
  EXPECT_EQ(store->newest_event({Kind::kVersion, "m"}), 0);
  const int64_t first = store->write(Create{{Kind::kVersion, "m"}})->seq;
  EXPECT_EQ(store->newest_event({Kind::kVersion, "m", 7}), first);
  Batch batch{{SetTags{{Kind::kVersion, "m", 1}, {{"a", "b"}}}}};
  batch.unchanged = {{{Kind::kVersion, "m"}, first}};
  const int64_t tagged = store->write(batch)->seq;
  EXPECT_EQ(store->newest_event({Kind::kVersion, "m"}), tagged);
  EXPECT_TRUE(is_refused(store->write(batch), Reason::kConflict));
}

TEST_P(Records, AreListedNewestFirstByPages) {
  auto store = open();
  for (const char* experiment : {"a", "b"}) {
    for (int i = 0; i < 5; ++i) make_run(*store, experiment + std::to_string(i), experiment);
  }
  done(*store, Update{{Kind::kRun, "a2"}, {}, {}, true});
  const auto ids = [&](const Query& query) {
    std::string all;
    for (const Record& record : store->list(query)) all += record.subject.id + " ";
    return all;
  };
  EXPECT_EQ(ids({Kind::kRun, "a"}), "a4 a3 a1 a0 ");
  EXPECT_EQ(ids({.kind = Kind::kRun, .parent = "a", .hidden = true}), "a4 a3 a2 a1 a0 ");
  EXPECT_EQ(ids({.kind = Kind::kRun, .limit = 6}), "b4 b3 b2 b1 b0 a4 ");
  const auto page = store->list({.kind = Kind::kRun, .limit = 3});
  EXPECT_EQ(ids({.kind = Kind::kRun, .before = page.back().seq, .limit = 3}), "b1 b0 a4 ");
  EXPECT_EQ(ids({.kind = Kind::kRun, .parent = "b", .before = page.back().seq, .limit = 3}), "b1 b0 ");
  EXPECT_EQ(ids({.kind = Kind::kRun, .name = "b1"}), "b1 ");
  EXPECT_EQ(ids({.kind = Kind::kRun, .parent = "a", .name = "b1"}), "");
  EXPECT_EQ(ids({.kind = Kind::kExperiment}), "b a ");
}

TEST_P(Records, AreFoundInTheRequestedOrder) {
  auto store = open();
  for (const char* run : {"a", "b"}) {
    make_run(*store, run);
    done(*store, AddPoints{run, std::string("loss of ") + run, {{1, 1, 0.5}}});
  }
  const Subject asked[] = {{Kind::kRun, "b"}, {Kind::kRun, "none"}, {Kind::kRun, "a"}, {Kind::kRun, "b"}};
  std::string found;
  for (const auto& record : store->find(asked))
    found += record ? record->metrics.at("loss of " + record->subject.id).count == 1 ? record->subject.id : "?" : "-";
  EXPECT_EQ(found, "b-ab");
  EXPECT_TRUE(store->find(std::span<const Subject>()).empty());
}

TEST_P(Records, RunsAreListedByState) {
  auto store = open();
  for (const char* run : {"a", "b", "c"}) make_run(*store, run);
  done(*store, SetRunState{"b", RunState::kFailed});
  const auto ids = [&](Query query) {
    std::string all;
    for (const Record& record : store->list(query)) all += record.subject.id;
    return all;
  };
  EXPECT_EQ(ids({.kind = Kind::kRun, .state = RunState::kRunning}), "ca");
  EXPECT_EQ(ids({.kind = Kind::kRun, .parent = "e", .state = RunState::kFailed}), "b");
  EXPECT_EQ(ids({.kind = Kind::kRun, .name = "a", .state = RunState::kPaused}), "");
  EXPECT_EQ(ids({.kind = Kind::kRun, .limit = 1, .state = RunState::kRunning}), "c");
}

TEST_P(Records, OnlyTheRequestedMetricsAreRead) {
  auto store = open();
  make_run(*store);
  for (const char* key : {"a", "b", "c"}) {
    done(*store, AddPoints{"r", key, {{1, 1, 0.5}, {2, 2, 0.25}}});
  }
  const auto keys = [&](Query query) {
    query.kind = Kind::kRun;
    std::string all;
    const Record run = store->list(query).front();
    for (const auto& [key, metric] : run.metrics) {
      all += key;
      EXPECT_EQ(metric.last.value, 0.25);
    }
    return all;
  };
  EXPECT_EQ(keys({}), "abc");
  EXPECT_EQ(keys({.keys = std::set<std::string>{"c", "a", "none"}}), "ac");
  EXPECT_EQ(keys({.keys = std::set<std::string>{}}), "");
  EXPECT_EQ(keys({.metrics = false, .keys = std::set<std::string>{"a"}}), "");
}

TEST_P(Records, ParametersAreSetOnceAndTagsAreReplaced) {
  auto store = open();
  make_run(*store);
  const Subject run{Kind::kRun, "r"};
  done(*store, SetParams{run, {{"lr", "0.1"}, {"layers", "2"}}});
  EXPECT_TRUE(done(*store, SetParams{run, {{"lr", "0.1"}}}).repeated);
  EXPECT_FALSE(done(*store, SetParams{run, {{"lr", "0.1"}, {"seed", "1"}}}).repeated);
  EXPECT_TRUE(is_refused(store->write(SetParams{run, {{"lr", "0.2"}, {"more", "1"}}}), Reason::kConflict));
  EXPECT_EQ(store->find(run)->params, (Labels{{"lr", "0.1"}, {"layers", "2"}, {"seed", "1"}}));
  done(*store, SetTags{run, {{"a", "1"}, {"b", "2"}}});
  done(*store, SetTags{run, {{"a", "3"}, {"b", std::nullopt}, {"c", ""}}});
  EXPECT_TRUE(done(*store, SetTags{run, {{"b", std::nullopt}}}).repeated);
  EXPECT_EQ(store->find(run)->tags, (Labels{{"a", "3"}, {"c", ""}}));
  EXPECT_TRUE(is_refused(store->write(SetTags{{Kind::kRun, "q"}, {{"a", "1"}}}), Reason::kNotFound));
}

// Returns a batch of one change, with `name` as its actor.
Batch batch_by(const std::string& name, Change change) {
  Batch batch{{std::move(change)}};
  batch.actor = {name, "10.0.0.7"};
  return batch;
}

TEST_P(Records, KnowWhoCreatedThemAndWhoHidThem) {
  auto store = open();
  const Subject run{Kind::kRun, "r"};
  make_run(*store, "other");
  EXPECT_EQ(store->find({Kind::kRun, "other"})->owner, "");
  ASSERT_TRUE(store->write(batch_by("ann", Create{run, "e"})));
  ASSERT_TRUE(store->write(batch_by("bob", SetTags{run, {{"a", "b"}}})));
  ASSERT_TRUE(store->write(batch_by("bob", Update{run, {}, {}, true})));
  EXPECT_EQ(store->find(run)->owner, "ann");
  EXPECT_EQ(store->find(run)->hidden_by, "bob");
  done(*store, Update{run, {}, {}, true});  // a program without an account
  EXPECT_EQ(store->find(run)->hidden_by, "bob");
  ASSERT_TRUE(store->write(batch_by("ann", Update{run, {}, {}, true})));
  EXPECT_EQ(store->list({.kind = Kind::kRun, .hidden = true}).at(0).hidden_by, "ann");
  done(*store, Update{run, {}, {}, false});
  EXPECT_EQ(store->find(run)->hidden_by, "");
  EXPECT_EQ(store->find(run)->owner, "ann");
}

TEST_P(Records, EveryEventNamesTheActorOfItsOwnBatch) {
  auto store = open();
  make_run(*store, "r");
  const Subject run{Kind::kRun, "r"};
  std::vector<Batch> batches;
  for (const std::string name : {"", "ann", "bob"}) batches.push_back(batch_by(name, SetTags{run, {{"by", name}}}));
  batches[0].actor = {};
  batches[0].changes = {SetTags{run, {{"by", "nobody"}}}};
  write_at_once(*store, batches);
  int seen = 0;
  for (const Event& event : store->events({0, 100, run})) {
    if (event.what != "tags") continue;
    ++seen;
    const std::string by = event.actor.name.empty() ? "nobody" : event.actor.name;
    EXPECT_NE(event.body.find("\"" + by + "\""), std::string::npos) << event.body << " by " << by;
    EXPECT_EQ(event.actor.address, event.actor.name.empty() ? "" : "10.0.0.7");
  }
  EXPECT_EQ(seen, 3);
}

// Events are never removed. If they held long values, a client could fill the disk by changing one tag.
TEST_P(Records, LongValuesAreInEventsAsDigests) {
  auto store = open();
  make_run(*store, "r");
  const Subject run{Kind::kRun, "r"};
  const std::string fits(4096, 'x'), is_long(4097, 'y');
  done(*store, SetTags{run, {{"fits", fits}, {"long", is_long}, {"none", std::nullopt}}});
  done(*store, SetParams{run, {{"fits", fits}, {"long", is_long}}});
  const std::vector<Event> events = store->events({0, 100, run});
  for (const char* what : {"tags", "params"}) {
    const auto event = std::ranges::find(events, what, &Event::what);
    ASSERT_NE(event, events.end());
    const auto body = nlohmann::json::parse(event->body);
    EXPECT_EQ(body["fits"], fits);
    EXPECT_EQ(body["long"], (nlohmann::json{{"sha256", sha256_hex(is_long)}, {"bytes", 4097}}));
  }
  EXPECT_EQ(store->find(run)->tags.at("long"), is_long);
  EXPECT_EQ(store->find(run)->params.at("long"), is_long);
}

TEST_P(Records, EventsAreReadUpToANumberOfBytes) {
  auto store = open();
  make_run(*store, "r");
  const Subject run{Kind::kRun, "r"};
  for (int i = 0; i < 10; ++i) done(*store, SetTags{run, {{"t", std::to_string(i) + std::string(1000, 'x')}}});
  const auto all = store->events({0, 100, run});
  const auto body_bytes = [](const std::vector<Event>& events) {
    int64_t bytes = 0;
    for (const Event& event : events) bytes += static_cast<int64_t>(event.body.size());
    return bytes;
  };
  std::vector<Event> read;
  for (EventQuery query{.subject = run, .bytes = 2500};;) {
    const auto some = store->events(query);
    if (some.empty()) break;
    EXPECT_LT(body_bytes(some), 2500 + 1100);
    query.after = some.back().seq;
    read.insert(read.end(), some.begin(), some.end());
  }
  EXPECT_EQ(read.size(), all.size());
}

TEST_P(Records, AreUpdated) {
  auto store = open();
  done(*store, Create{{Kind::kStudy, "s"}, "", "one"});
  done(*store, Create{{Kind::kStudy, "t"}, "", "two"});
  EXPECT_TRUE(is_refused(store->write(Update{{Kind::kStudy, "s"}, "two"}), Reason::kExists));
  done(*store, Update{{Kind::kStudy, "s"}, "three", "body"});
  EXPECT_TRUE(done(*store, Update{{Kind::kStudy, "s"}, "three", "body", false}).repeated);
  EXPECT_EQ(store->find({Kind::kStudy, "s"})->name, "three");
  EXPECT_EQ(store->find({Kind::kStudy, "s"})->body, "body");
  EXPECT_EQ(store->list({.kind = Kind::kStudy, .name = "one"}).size(), 0U);
}

TEST_P(Records, KnowWhenTheyWereChanged) {
  auto store = open();
  done(*store, Create{{Kind::kModel, "m"}});
  for (int i = 0; i < 2; ++i) done(*store, Create{{Kind::kVersion, "m"}});
  make_run(*store, "r", "e");
  const Subject first{Kind::kVersion, "m", 1}, second{Kind::kVersion, "m", 2};
  const int64_t made = store->find(first)->changed_ms;
  EXPECT_EQ(made, store->find(first)->begun_ms);
  clock.seconds = clock.seconds + 10;
  done(*store, SetTags{first, {{"k", "v"}}});
  EXPECT_EQ(store->find(first)->changed_ms, made + 10'000);
  EXPECT_EQ(store->find(second)->changed_ms, made);
  EXPECT_EQ(store->find({Kind::kModel, "m"})->changed_ms, made);
  for (const Query& query : {Query{.kind = Kind::kVersion}, Query{.kind = Kind::kVersion, .name = "m"},
                             Query{.kind = Kind::kVersion, .parent = ""}}) {
    const auto versions = store->all(query);
    ASSERT_EQ(versions.size(), 2U);
    EXPECT_EQ(versions[0].changed_ms, made);
    EXPECT_EQ(versions[1].changed_ms, made + 10'000);
  }
  done(*store, Update{{Kind::kExperiment, "e"}, "renamed"});
  EXPECT_EQ(store->find({Kind::kExperiment, "e"})->changed_ms, made + 10'000);
  EXPECT_EQ(store->find({Kind::kRun, "r"})->changed_ms, 0);
}

TEST_P(Records, ABatchMayRequireThatARecordIsNotHidden) {
  auto store = open();
  make_run(*store, "r", "e");
  const Subject run{Kind::kRun, "r"}, experiment{Kind::kExperiment, "e"};
  int64_t count = 0;
  const auto write = [&](const Subject& active) {
    Batch batch{{SetTags{run, {{"count", std::to_string(++count)}}}}};
    batch.active = {active};
    return store->write(batch);
  };
  EXPECT_TRUE(write(run));
  done(*store, Update{run, {}, {}, true});
  EXPECT_TRUE(is_refused(write(run), Reason::kHidden));
  EXPECT_TRUE(write(experiment));
  done(*store, Update{run, {}, {}, false});
  done(*store, Update{experiment, {}, {}, true});
  EXPECT_TRUE(is_refused(write(run), Reason::kHidden)) << "its experiment is hidden";
  EXPECT_TRUE(is_refused(write(experiment), Reason::kHidden));
  EXPECT_TRUE(is_refused(write({Kind::kRun, "none"}), Reason::kNotFound));
  EXPECT_EQ(store->find(run)->tags.at("count"), "3");
  Batch empty;
  empty.active = {run};
  EXPECT_TRUE(is_refused(store->write(empty), Reason::kHidden));
}

TEST_P(Records, AnAttemptEndsOnce) {
  auto store = open();
  make_run(*store);
  done(*store, SetRunState{"r", RunState::kPaused});
  done(*store, SetRunState{"r", RunState::kRunning});
  clock.seconds = 2000;
  done(*store, SetRunState{"r", RunState::kFailed, "out of memory"});
  EXPECT_EQ(store->find({Kind::kRun, "r"})->ended_ms, 1'800'002'000'000);
  const size_t events = store->events({}).size();
  EXPECT_TRUE(done(*store, SetRunState{"r", RunState::kFailed, "told again"}).repeated);
  EXPECT_TRUE(is_refused(store->write(SetRunState{"r", RunState::kFinished}), Reason::kConflict));
  EXPECT_TRUE(is_refused(store->write(SetRunState{"r", RunState::kRunning}), Reason::kConflict));
  EXPECT_TRUE(is_refused(store->write(SetRunState{"r", RunState::kFinished, "", true}), Reason::kConflict));
  EXPECT_EQ(store->events({}).size(), events);
  EXPECT_EQ(done(*store, SetRunState{"r", RunState::kRunning, "", true}).number, 2);
  EXPECT_EQ(store->find({Kind::kRun, "r"})->ended_ms, 0);
  done(*store, SetRunState{"r", RunState::kFinished, "", false, 77});
  const auto run = store->find({Kind::kRun, "r"});
  EXPECT_EQ(run->state, RunState::kFinished);
  EXPECT_EQ(run->attempt, 2);
  EXPECT_EQ(run->ended_ms, 77);
  EXPECT_TRUE(is_refused(store->write(SetRunState{"q", RunState::kFinished}), Reason::kNotFound));
}

TEST_P(Records, AliasesMoveAtomicallyAndComeBack) {
  auto store = open();
  done(*store, Create{{Kind::kModel, "m"}});
  EXPECT_EQ(done(*store, Create{{Kind::kVersion, "m"}, "r1"}).number, 1);
  EXPECT_EQ(done(*store, Create{{Kind::kVersion, "m"}}).number, 2);
  EXPECT_TRUE(is_refused(store->write(SetAlias{"m", "champion", 3}), Reason::kNotFound));
  done(*store, SetAlias{"m", "champion", 1, 0});
  EXPECT_TRUE(is_refused(store->write(SetAlias{"m", "champion", 2, 0}), Reason::kConflict));
  done(*store, SetAlias{"m", "champion", 2, 1});
  EXPECT_TRUE(done(*store, SetAlias{"m", "champion", 2}).repeated);
  auto aliases = store->find({Kind::kModel, "m"})->aliases;
  ASSERT_EQ(aliases.size(), 1U);
  EXPECT_EQ(aliases[0].version, 2);
  EXPECT_EQ(aliases[0].previous, 1);
  done(*store, SetAlias{"m", "champion", aliases[0].previous, aliases[0].version});
  EXPECT_EQ(store->find({Kind::kModel, "m"})->aliases[0].version, 1);
  done(*store, SetAlias{"m", "champion", 0});
  EXPECT_TRUE(store->find({Kind::kModel, "m"})->aliases.empty());
  std::string moves;
  for (const Event& event : store->events({.subject = Subject{Kind::kModel, "m"}})) {
    if (event.what == "alias") moves += event.body + "\n";
  }
  EXPECT_EQ(moves,
            "{\"alias\":\"champion\",\"from\":0,\"to\":1}\n{\"alias\":\"champion\",\"from\":1,\"to\":2}\n"
            "{\"alias\":\"champion\",\"from\":2,\"to\":1}\n{\"alias\":\"champion\",\"from\":1,\"to\":0}\n");
}

TEST_P(Records, ContentsAreKeptWhileAnythingRefersToThem) {
  auto store = open();
  make_run(*store);
  const Subject run{Kind::kRun, "r"};
  done(*store, Attach{run, "model/weights", "d1", 100});
  done(*store, Attach{run, "copy", "d1", 100});
  EXPECT_TRUE(done(*store, Attach{run, "copy", "d1", 100}).repeated);
  EXPECT_TRUE(is_refused(store->write(ForgetContent{"d1"}), Reason::kConflict));
  done(*store, Detach{run, "copy"});
  EXPECT_TRUE(store->unreferenced_contents().empty());
  done(*store, Attach{run, "model/weights", "d2", 50});  // replaces the content
  auto attached = store->attachments(run);
  ASSERT_EQ(attached.size(), 1U);
  EXPECT_EQ(attached[0].digest, "d2");
  EXPECT_EQ(attached[0].bytes, 50);
  auto loose = store->unreferenced_contents();
  ASSERT_EQ(loose.size(), 1U);
  EXPECT_EQ(loose[0].digest, "d1");
  EXPECT_EQ(loose[0].bytes, 100);
  ASSERT_EQ(store->contents().size(), 1U);
  EXPECT_EQ(store->contents()[0].digest, "d2");
  done(*store, ForgetContent{"d1"});
  EXPECT_TRUE(done(*store, ForgetContent{"d1"}).repeated);
  EXPECT_TRUE(done(*store, Detach{run, "copy"}).repeated);
  EXPECT_TRUE(store->unreferenced_contents().empty());
  EXPECT_TRUE(is_refused(store->write(Attach{{Kind::kRun, "q"}, "p", "d", 1}), Reason::kNotFound));
}

TEST_P(Records, FilesAreFoundByTheirPathAndByTheirFolder) {
  auto store = open();
  make_run(*store);
  const Subject run{Kind::kRun, "r"};
  for (const char* path : {"a", "a-b", "a.b/c", "a/b/c", "a/z", "a/é", "a0", "b/a"}) {
    done(*store, Attach{run, path, std::string("of ") + path, 1});
  }
  const auto paths = [&](const std::string& below) {
    std::string all;
    for (const Attachment& file : store->attachments(run, below)) all += file.path + " ";
    return all;
  };
  EXPECT_EQ(paths(""), "a a-b a.b/c a/b/c a/z a/é a0 b/a ");
  EXPECT_EQ(paths("a"), "a/b/c a/z a/é ");
  EXPECT_EQ(paths("a/b"), "a/b/c ");
  EXPECT_EQ(paths("none"), "");
  EXPECT_EQ(store->attachment(run, "a/z")->digest, "of a/z");
  for (const char* none : {"a/b", "z", ""}) EXPECT_FALSE(store->attachment(run, none)) << none;
  EXPECT_FALSE(store->attachment({Kind::kRun, "q"}, "a"));
}

TEST_P(Records, LineageIsSeenFromBothEnds) {
  auto store = open();
  make_run(*store);
  const Subject run{Kind::kRun, "r"}, data{Kind::kData, "digest"};
  done(*store, Link{run, "train", data});
  EXPECT_TRUE(done(*store, Link{run, "train", data}).repeated);
  done(*store, Link{run, "test", data});
  for (const Subject& end : {run, data}) {
    const auto links = store->links(end);
    ASSERT_EQ(links.size(), 2U);
    EXPECT_EQ(links[0].role, "test");
    EXPECT_EQ(links[1].role, "train");
    EXPECT_EQ(links[1].from, run);
    EXPECT_EQ(links[1].to, data);
  }
  EXPECT_TRUE(is_refused(store->write(Link{data, "of", run}), Reason::kNotFound));
}

TEST_P(Records, NotesAreStored) {
  auto store = open();
  EXPECT_EQ(store->note("n"), "");
  done(*store, SetNote{"n", "1"});
  done(*store, SetNote{"n", "2"});
  store = open();
  EXPECT_EQ(store->note("n"), "2");
  EXPECT_TRUE(store->events({}).empty());
}

}  // namespace
}  // namespace sinew::store
