// Tests with texts that have a meaning in SQL, in a shell, in a browser or in a file system. The store must return such
// a text unchanged or refuse it with a reason. The text must not affect any other field.
#include <cmath>
#include <map>

#include "base/random.h"
#include "store/testing.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

class Hostile : public OnBoth {};
ON_BOTH(Hostile);

const std::vector<std::string>& good_texts() {
  static const std::vector<std::string> texts = {"'; DROP TABLE event; --",
                                                 "\"",
                                                 "''",
                                                 "\\",
                                                 "\\x00",
                                                 "$1",
                                                 "?1",
                                                 "%s%n",
                                                 "\r\n\t",
                                                 " ",
                                                 "NULL",
                                                 "0",
                                                 "1e999",
                                                 "\xef\xbb\xbf"
                                                 "bom",
                                                 "\xf0\x9f\xa7\xa0",
                                                 "e\xcc\x81",
                                                 "\xe2\x80\xae",
                                                 "{\"a\":[1,2]}",
                                                 "<script>alert(1)</script>",
                                                 "../../etc/passwd",
                                                 "a/b",
                                                 "\x01\x1f\x7f",
                                                 "$$;COMMIT;$$",
                                                 "/*",
                                                 "A",
                                                 "a",
                                                 std::string(500, 'x')};
  return texts;
}

const std::vector<std::string>& bad_texts() {
  static const std::vector<std::string> texts = {
      std::string("a\0b", 3), std::string(1, '\0'), "\xff", "\xc0\xaf", "\xed\xa0\x80",
      "\xf4\x90\x80\x80",     "\xe2\x82",           "\x80", "ok\xc3"};
  return texts;
}

TEST(Texts, Utf8IsCheckedByItsDefinition) {
  for (const std::string& text : good_texts()) EXPECT_TRUE(is_utf8(text)) << text;
  for (const std::string& text : bad_texts()) EXPECT_EQ(is_utf8(text), text.find('\0') != std::string::npos) << text;
  // Every code point encodes to valid UTF-8. A text that ends inside a character is invalid.
  for (uint32_t code = 1; code < 0x110000; code += code < 0x900 ? 1 : 97) {
    if (code >= 0xd800 && code < 0xe000) continue;
    std::string text;
    if (code < 0x80)
      text = {static_cast<char>(code)};
    else if (code < 0x800)
      text = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    else if (code < 0x10000)
      text = {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    else
      text = {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
              static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    ASSERT_TRUE(is_utf8(text)) << code;
    ASSERT_FALSE(is_utf8(text.substr(0, text.size() - 1)) && text.size() > 1) << code;
  }
}

TEST_P(Hostile, TextsAreReadBackUnchanged) {
  auto store = open();
  for (const std::string& text : good_texts()) {
    done(*store, Create{{Kind::kExperiment, text}, "", text, text, {{text, text}}, {{text, text}}});
    done(*store, Create{{Kind::kRun, text}, text, text, text});
    done(*store, SetTags{{Kind::kRun, text}, {{text, text}}});
    done(*store, SetParams{{Kind::kRun, text}, {{text, text}}});
    done(*store, AddPoints{text, text, {{1, 1, 1}}});
    done(*store, Attach{{Kind::kRun, text}, text, text, 1});
    done(*store, Link{{Kind::kRun, text}, text, {Kind::kData, text}});
    done(*store, SetNote{text, text});
    done(*store, Create{{Kind::kModel, text}});
    done(*store, Create{{Kind::kVersion, text}, text});
    done(*store, SetAlias{text, text, 1});
    done(*store, Create{{Kind::kStudy, text}});
    done(*store, Update{{Kind::kStudy, text}, {}, text});
    done(*store, Acquire{text, text, 60});
    ASSERT_TRUE(store->write(Batch{{SetRunState{text, RunState::kFinished, text}}, text}).has_value());
  }
  for (const std::string& text : good_texts()) {
    const auto run = store->find({Kind::kRun, text});
    ASSERT_TRUE(run) << text;
    EXPECT_EQ(run->parent, text);
    EXPECT_EQ(run->name, text);
    EXPECT_EQ(run->body, text);
    EXPECT_EQ(run->tags, (Labels{{text, text}}));
    EXPECT_EQ(run->params, (Labels{{text, text}}));
    EXPECT_EQ(run->metrics.size(), 1U);
    EXPECT_TRUE(run->metrics.contains(text));
    EXPECT_EQ(store->list({.kind = Kind::kRun, .parent = text}).size(), 1U) << text;
    EXPECT_EQ(store->list({.kind = Kind::kExperiment, .name = text}).size(), 1U) << text;
    EXPECT_EQ(store->attachments({Kind::kRun, text}).at(0).path, text);
    EXPECT_EQ(store->links({Kind::kData, text}).at(0).role, text);
    EXPECT_EQ(store->note(text), text);
    EXPECT_EQ(store->find({Kind::kModel, text})->aliases.at(0).name, text);
    EXPECT_EQ(store->find({Kind::kStudy, text})->body, text);
    EXPECT_EQ(store->lease(text).holder, text);
    const auto events = store->events({.subject = Subject{Kind::kLease, text}});
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].body, text);
  }
  EXPECT_EQ(store->list({.kind = Kind::kRun, .limit = 1000}).size(), good_texts().size());
}

// Returns changes in which one field has the text `bad`: one change for each field of each kind of change.
std::vector<Change> changes_with(const std::string& bad) {
  const Subject run{Kind::kRun, "r"};
  return {Create{{Kind::kExperiment, bad}},
          Create{{Kind::kRun, "x"}, bad},
          Create{{Kind::kRun, "x"}, "e", bad},
          Create{{Kind::kRun, "x"}, "e", "", bad},
          Create{{Kind::kRun, "x"}, "e", "", "", {{bad, ""}}},
          Create{{Kind::kRun, "x"}, "e", "", "", {{"k", bad}}},
          Create{{Kind::kRun, "x"}, "e", "", "", {}, {{bad, ""}}},
          Create{{Kind::kRun, "x"}, "e", "", "", {}, {{"k", bad}}},
          Update{run, bad},
          Update{run, {}, bad},
          Update{{Kind::kRun, bad}, "x"},
          SetParams{run, {{bad, ""}}},
          SetParams{run, {{"k", bad}}},
          SetParams{{Kind::kRun, bad}, {{"k", "v"}}},
          SetTags{run, {{bad, ""}}},
          SetTags{run, {{"k", bad}}},
          SetTags{{Kind::kRun, bad}, {{"k", "v"}}},
          SetRunState{bad, RunState::kFinished},
          SetRunState{"r", RunState::kFinished, bad},
          SetAlias{bad, "a", 0},
          SetAlias{"m", bad, 1},
          AddPoints{bad, "k", {{1, 1, 1}}},
          AddPoints{"r", bad, {{1, 1, 1}}},
          DropPoints{bad, 0},
          Attach{{Kind::kRun, bad}, "p", "d", 1},
          Attach{run, bad, "d", 1},
          Attach{run, "p", bad, 1},
          Detach{run, bad},
          ForgetContent{bad},
          Link{{Kind::kRun, bad}, "r", run},
          Link{run, bad, run},
          Link{run, "r", {Kind::kData, bad}},
          SetNote{bad, ""},
          SetNote{"n", bad},
          Acquire{bad, "h", 60},
          Acquire{"l", bad, 60},
          Renew{bad, 1, 60},
          Release{bad, 1}};
}

TEST_P(Hostile, InvalidTextIsRefusedInEveryField) {
  auto store = open();
  make_run(*store);
  done(*store, Create{{Kind::kModel, "m"}});
  done(*store, Create{{Kind::kVersion, "m"}});
  done(*store, Create{{Kind::kStudy, "s"}});
  done(*store, Acquire{"l", "h", 60});
  const size_t events = store->events({}).size();
  std::vector<std::string> texts = bad_texts();
  for (const std::string& bad : texts) {
    const auto changes = changes_with(bad);
    for (size_t i = 0; i < changes.size(); ++i) {
      const Outcome outcome = store->write(changes[i]);
      ASSERT_FALSE(outcome.has_value()) << "change " << i;
      ASSERT_FALSE(outcome.error().why.empty());
    }
    EXPECT_TRUE(is_refused(store->write(Batch{{SetNote{"n", ""}}, bad}), Reason::kInvalid));
    EXPECT_TRUE(is_refused(store->write(Batch{{SetNote{"n", ""}}, "", {{bad, 1}}}), Reason::kStale));
    EXPECT_FALSE(store->find({Kind::kRun, bad}));
    EXPECT_TRUE(store->list({.kind = Kind::kRun, .parent = bad}).empty());
    EXPECT_TRUE(store->attachments({Kind::kRun, bad}).empty());
    EXPECT_TRUE(store->events({.subject = Subject{Kind::kRun, bad}}).empty());
    EXPECT_EQ(store->note(bad), "");
    const Series series[] = {{bad, "k"}, {"r", bad}};
    EXPECT_TRUE(store->history(series).at(0).empty());
  }
  EXPECT_EQ(store->events({}).size(), events);
}

TEST_P(Hostile, ValuesBeyondALimitAreRefused) {
  auto store = open();
  make_run(*store);
  const Subject run{Kind::kRun, "r"};
  const std::string long_id(501, 'x'), long_body((size_t{4} << 20U) + 1, 'x');
  const std::vector<Change> changes = {Create{{Kind::kExperiment, long_id}},
                                       Create{{Kind::kExperiment, ""}},
                                       Update{run, {}, long_body},
                                       SetTags{run, {{"k", long_body}}},
                                       SetTags{run, {{long_id, ""}}},
                                       SetTags{run, {{"", ""}}},
                                       AddPoints{"r", long_id, {}},
                                       AddPoints{"r", "k", std::vector<Point>((size_t{1} << 20U) + 1)},
                                       Acquire{"l", "h", 1e10},
                                       SetAlias{"m", "a", -1},
                                       Attach{run, "p", "d", -1}};
  for (size_t i = 0; i < changes.size(); ++i)
    EXPECT_TRUE(is_refused(store->write(changes[i]), Reason::kInvalid)) << "change " << i;
  // Each of these tags is small enough, but together they exceed the limit.
  const std::string big(size_t{1} << 20U, 'x');
  for (const char* key : {"a", "b", "c"}) done(*store, SetTags{run, {{key, big}}});
  EXPECT_TRUE(is_refused(store->write(SetTags{run, {{"d", big}}}), Reason::kInvalid));
}

TEST_P(Hostile, RandomBytesNeverBreakAnything) {
  auto store = open();
  RandomStream random(random_key({7}));
  std::map<std::string, std::string> kept;
  for (int i = 0; i < 300; ++i) {
    std::string name, text;
    for (uint64_t n = random.below(12); n > 0; --n)
      name.push_back(static_cast<char>(random.bits32() & (i % 2 == 0 ? 0xffU : 0x7fU)));
    for (uint64_t n = random.below(12); n > 0; --n)
      text.push_back(static_cast<char>(random.bits32() & (i % 2 == 0 ? 0xffU : 0x7fU)));
    const bool fits = !name.empty() && is_utf8(name) && is_utf8(text) && (name + text).find('\0') == std::string::npos;
    const Outcome outcome = store->write(SetNote{name, text});
    ASSERT_EQ(outcome.has_value(), fits);
    if (fits) kept[name] = text;
  }
  for (const auto& [name, text] : kept) ASSERT_EQ(store->note(name), text);
}

}  // namespace
}  // namespace sinew::store
