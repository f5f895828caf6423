// Tests of malicious files: read_job bounds its work, reports one clear problem and does not crash.
#include "base/random.h"
#include "spec/expect_problems.h"
#include "spec/options.h"

namespace sinew::spec {
namespace {

TEST(Limits, RefuseAliasBombs) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string name = "a" + std::to_string(i), before = "*a" + std::to_string(i - 1);
    yaml += name + ": &" + name + " [";
    for (int j = 0; j < 10; ++j) yaml += (j == 0 ? "" : ", ") + before;
    yaml += "]\n";
  }
  const auto problems = problems_of(yaml);
  EXPECT_EQ(std::count_if(problems.begin(), problems.end(),
                          [](const std::string& text) { return text.find("[SPEC_TOO_LARGE]") != std::string::npos; }),
            1);
  EXPECT_TRUE(is_problem(problems.back(), "job:5:25: SPEC_TOO_LARGE | more than 50000 values")) << problems.back();
}

TEST(Limits, CountTheValuesThatAnAliasRepeats) {
  // The anchored list has 101 values. With 490 copies the file has about 49,600 values, which is below the limit of
  // 50,000. With 495 copies it has too many.
  const auto yaml = [](int copies) {
    std::string text = "model:\n  hidden: &h [";
    for (int i = 0; i < 100; ++i) text += i == 0 ? "1" : ", 1";
    text += "]\nx: [";
    for (int i = 0; i < copies; ++i) text += i == 0 ? "*h" : ", *h";
    return text + "]\n";
  };
  const auto too_many = [](const std::vector<std::string>& problems) {
    return std::any_of(problems.begin(), problems.end(),
                       [](const std::string& text) { return text.find("[SPEC_TOO_LARGE]") != std::string::npos; });
  };
  EXPECT_FALSE(too_many(problems_of(yaml(490))));
  EXPECT_TRUE(too_many(problems_of(yaml(495))));
}

// Short aliases repeat a long text, so the file is small but its expansion is large.
TEST(Limits, CountTheTextThatAliasesRepeat) {
  std::string yaml = "x: &x '" + std::string(100'000, 'y') + "'\nz: [";
  for (int i = 0; i < 20'000; ++i) yaml += i == 0 ? "*x" : ", *x";
  EXPECT_TRUE(is_problem(problems_of(yaml + "]\n").back(), "job:2:45: SPEC_TOO_LARGE | aliases"));
}

// A file can hold every list that the table allows. A longer list is refused for its length and for nothing else.
TEST(Limits, AllowEveryListThatTheTableAllows) {
  for (const Option& option : option_table()) {
    if (!option.is_list()) continue;
    const bool number = option.type.kind == Kind::number || option.type.kind == Kind::whole;
    const auto too_long = [&](size_t items) {
      std::string text;
      for (size_t i = 0; i < items; ++i) text += (i == 0 ? "" : ", ") + std::string(number ? "0.5" : "'a*=1'");
      text = option.leaf() + ": [" + text + "]";
      std::string section = option.section();
      while (!section.empty()) {  // from the inner to the outer section
        const size_t dot = section.rfind('.');
        text = section.substr(dot + 1) + ": {" + text + "}";
        section = dot == std::string::npos ? "" : section.substr(0, dot);
      }
      const auto problems = problems_of(text + "\n");
      return std::any_of(problems.begin(), problems.end(), [](const std::string& problem) {
        return problem.find("[SPEC_BAD_LENGTH]") != std::string::npos ||
               problem.find("[SPEC_TOO_LARGE]") != std::string::npos;
      });
    };
    EXPECT_FALSE(too_long(option.type.max_items)) << option.key;
    EXPECT_TRUE(too_long(option.type.max_items + 1)) << option.key;
  }
}

// read_job checks the rules for a limited number of choices, because each check reads the whole file again.
TEST(Limits, ManyKeysAndChoicesAreRead) {
  std::string keys = kData, choices = "command: [x]\nparams: {a: 1}\ntune: {search: {params.a: [";
  for (int i = 0; i < 5'000; ++i) {
    keys += "k" + std::to_string(i) + ": 1\n";
    choices += (i == 0 ? "" : ", ") + std::to_string(i);
  }
  EXPECT_EQ(problems_of(keys).size(), 5'000U);
  EXPECT_EQ(problems_of(choices + "]}}\n"), std::vector<std::string>{});
}

TEST(Limits, RefuseDeepNesting) {
  const auto nested = [](size_t depth) { return "x: " + std::string(depth, '[') + std::string(depth, ']') + "\n"; };
  EXPECT_EQ(problems_of(kData + nested(63)).size(), 1U);  // the only problem is the unknown key
  EXPECT_TRUE(is_problem(problems_of(kData + nested(64)).back(), "job:2:67: SPEC_TOO_LARGE | 64"));
  for (const char* piece : {"[", "{", "{a: ", "- ", "? ", "a:\n ", "[{", "'", "\"", "&a ", "!a ", "*"}) {
    std::string text;
    while (text.size() < 200000) text += piece;
    EXPECT_FALSE(problems_of(text).empty()) << piece;
    EXPECT_FALSE(problems_of("model: " + text).empty()) << piece;
  }
}

TEST(Limits, RefuseLargeFiles) {
  EXPECT_TRUE(problems_are(problems_of(std::string(2 << 20, ' ')), {"job: SPEC_TOO_LARGE | 1 MiB"}));
  EXPECT_TRUE(problems_of(kData + std::string("#") + std::string(1 << 19, 'x')).empty());
}

TEST(Limits, CutLongWordsInMessages) {
  for (const std::string& text : problems_of(kData + std::string(900, 'x') + ": 1\nname: " + std::string(90000, 'y'))) {
    EXPECT_LT(text.size(), 400U);
  }
}

TEST(Limits, SurviveRandomBytes) {
  RandomStream random(random_key({11}));
  const std::string alphabet = "abc: \n\n  -[]{},'\"&*!|>?%@#~$\t\r\\0123.e<=\xC3\xA9";
  for (int i = 0; i < 20000; ++i) {
    std::string text = random.below(2) == 0 ? "" : kData;
    for (uint64_t n = random.below(60); n > 0; --n) {
      text += random.below(20) == 0 ? static_cast<char>(random.below(256)) : alphabet[random.below(alphabet.size())];
    }
    const Reading reading = read_job(text, "job", {text.substr(0, 20)});
    for (const Problem& problem : reading.problems) {
      ASSERT_FALSE(problem.what.empty() || problem.hint.empty()) << text;
      ASSERT_LE(problem.line, static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1) << text;
    }
  }
}

}  // namespace
}  // namespace sinew::spec
