#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinew::cli {
namespace {

// Returns the sentence and the hint of the refusal.
std::string refusal(Options& options, const Arguments& arguments, ErrorCode code) {
  try {
    options.parse(arguments);
  } catch (const UsageError& error) {
    EXPECT_EQ(error.code.text(), code.text());
    return std::string(error.what()) + " / " + error.hint;
  }
  ADD_FAILURE() << "not refused";
  return "";
}

using testing::ElementsAre;
using testing::HasSubstr;

struct Given {
  std::string run, split = "test", output = "-";
  std::vector<std::string> overrides, tags;
  bool json = false;
  int64_t workers = 0;
  std::optional<int64_t> seed;
  double wait = 300, price = 0;
};

struct Fixture {
  Given given;
  Options options{"eval", "metrics of a trained model"};
  Fixture() {
    options.argument("RUN", given.run, "a run")
        .rest("key=value", given.overrides, "overrides")
        .choice("--split", given.split, {"test", "val"}, "the split")
        .text("-o, --output", "FILE", given.output, "where the result goes")
        .list("--tag", "TAG", given.tags, "a tag")
        .flag("--json", given.json, "print JSON")
        .integer("--workers", "N", given.workers, 1, 8, "processes")
        .integer("--seed", "N", given.seed, 0, 100, "the seed")
        .duration("--wait", given.wait, "how long to wait")
        .number("--price", "P", given.price, "an hour");
  }
  std::string refused(const Arguments& arguments, ErrorCode code) { return refusal(options, arguments, code); }
};

TEST(Options, AcceptsBothWaysToWriteAValueInAnyOrder) {
  for (const Arguments& arguments :
       {Arguments{"r", "--split", "val", "-o", "x", "--workers", "2", "--wait", "1m", "--json", "a=1", "--seed", "0"},
        Arguments{"--split=val", "--output=x", "r", "--workers=2", "--wait=60", "--json", "--seed=0", "a=1"}}) {
    Fixture fixture;
    EXPECT_TRUE(fixture.options.parse(arguments));
    const Given& given = fixture.given;
    EXPECT_EQ(given.run, "r");
    EXPECT_EQ(given.split, "val");
    EXPECT_EQ(given.output, "x");
    EXPECT_EQ(given.workers, 2);
    EXPECT_EQ(given.seed, 0);
    EXPECT_EQ(given.wait, 60);
    EXPECT_TRUE(given.json);
    EXPECT_THAT(given.overrides, ElementsAre("a=1"));
    EXPECT_TRUE(fixture.options.given("--output"));
    EXPECT_FALSE(fixture.options.given("--price"));
  }
}

TEST(Options, ADashAloneAndWordsAfterTwoDashesAreArguments) {
  Fixture fixture;
  EXPECT_TRUE(fixture.options.parse({"-", "--", "--json", "-x"}));
  EXPECT_EQ(fixture.given.run, "-");
  EXPECT_THAT(fixture.given.overrides, ElementsAre("--json", "-x"));
  EXPECT_FALSE(fixture.given.json);
}

TEST(Options, CollectsTheValuesOfAList) {
  Fixture fixture;
  EXPECT_TRUE(fixture.options.parse({"r", "--tag", "a", "--tag=b"}));
  EXPECT_THAT(fixture.given.tags, ElementsAre("a", "b"));
}

TEST(Options, ErrorsNameTheMistake) {
  EXPECT_THAT(Fixture().refused({"r", "--splt", "val"}, "OPTION_UNKNOWN"), HasSubstr("--split"));
  EXPECT_THAT(Fixture().refused({"r", "--split", "all"}, "OPTION_INVALID"), HasSubstr("test or val"));
  EXPECT_THAT(Fixture().refused({"r", "--split"}, "OPTION_INVALID"), HasSubstr("--split test|val"));
  EXPECT_THAT(Fixture().refused({"r", "--json=yes"}, "OPTION_INVALID"), HasSubstr("--json"));
  EXPECT_THAT(Fixture().refused({"r", "--workers=9"}, "OPTION_INVALID"), HasSubstr("1 to 8"));
  EXPECT_THAT(Fixture().refused({"r", "--wait", "soon"}, "OPTION_INVALID"), HasSubstr("10m"));
  EXPECT_THAT(Fixture().refused({}, "ARGUMENT_MISSING"), HasSubstr("RUN"));
  Options nothing("schema", "prints the schema");
  EXPECT_THROW(nothing.parse({"more"}), UsageError);
}

struct VerbFixture {
  std::string ran;
  Options options{"models", "versions"};
  VerbFixture() {
    const auto run = [this](const char* name) {
      return [this, name](const std::vector<std::string>& words) {
        ran = name + std::to_string(words.size());
        return 4;
      };
    };
    options.verb("list", "", "all of them", run("list"))
        .verb("show", "VERSION", "one", run("show"))
        .verb("verify", "[VERSION]", "reads", run("verify"))
        .verb("compare", "RUN RUN ...", "side by side", run("compare"));
  }
  std::string run(const Arguments& arguments) {
    EXPECT_TRUE(options.parse(arguments));
    EXPECT_EQ(options.run_verb(), 4);
    return ran;
  }
  std::string refused(const Arguments& arguments, ErrorCode code) { return refusal(options, arguments, code); }
};

TEST(OptionsVerbs, RunTheVerbWithItsWords) {
  EXPECT_EQ(VerbFixture().run({"list"}), "list0");
  EXPECT_EQ(VerbFixture().run({"show", "m/1"}), "show1");
  EXPECT_EQ(VerbFixture().run({"verify"}), "verify0");
  EXPECT_EQ(VerbFixture().run({"verify", "m"}), "verify1");
  EXPECT_EQ(VerbFixture().run({"compare", "a", "b", "c"}), "compare3");
  VerbFixture with_default;
  with_default.options.default_verb("list");
  EXPECT_EQ(with_default.run({}), "list0");
}

TEST(OptionsVerbs, ErrorsSayWhatTheVerbTakes) {
  EXPECT_THAT(VerbFixture().refused({}, "ARGUMENT_MISSING"), HasSubstr("list, show, verify, compare"));
  EXPECT_THAT(VerbFixture().refused({"lst"}, "OPTION_INVALID"), HasSubstr("sinew models list"));
  EXPECT_THAT(VerbFixture().refused({"show"}, "ARGUMENT_MISSING"), HasSubstr("models show needs VERSION"));
  EXPECT_THAT(VerbFixture().refused({"show", "a", "b"}, "ARGUMENT_UNEXPECTED"), HasSubstr("'b'"));
  EXPECT_THAT(VerbFixture().refused({"compare", "a"}, "ARGUMENT_MISSING"), HasSubstr("compare RUN RUN ..."));
}

TEST(OptionsVerbs, AnOptionOfOneVerbIsAnErrorWithTheOthers) {
  std::string limit;
  bool json = false;
  const auto with_options = [&](VerbFixture& fixture) -> VerbFixture& {
    fixture.options.default_verb("list")
        .text("--limit", "N", limit, "list: at most so many")
        .flag("--json", json, "note: for programs");
    return fixture;
  };
  VerbFixture list, named, other;
  EXPECT_EQ(with_options(list).run({"--limit", "3", "--json"}), "list0");
  EXPECT_EQ(with_options(named).run({"list", "--limit=4"}), "list0");
  EXPECT_THAT(with_options(other).refused({"show", "m/1", "--json", "--limit", "5"}, "OPTION_INVALID"),
              HasSubstr("--limit is an option of 'models list', not of 'models show'"));
}

TEST(OptionsVerbs, HelpAndReferenceListThem) {
  VerbFixture fixture;
  fixture.options.default_verb("list");
  for (const std::string& text : {fixture.options.help(), fixture.options.markdown()}) {
    for (const char* word : {"sinew models [COMMAND ...]", "list", "all of them (the default)", "compare RUN RUN ..."})
      EXPECT_THAT(text, HasSubstr(word));
  }
}

TEST(Options, HelpAndReferenceNameEverything) {
  const Fixture fixture;
  for (const std::string& text : {fixture.options.help(), fixture.options.markdown()}) {
    for (const char* word : {"sinew eval RUN [key=value ...] [options]", "--split", "-o, --output FILE", "--wait",
                             "300s", "metrics of a trained model"})
      EXPECT_THAT(text, HasSubstr(word));
  }
}

}  // namespace
}  // namespace sinew::cli
