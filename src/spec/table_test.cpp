// Tests that the option table is consistent: every row has its own member of Job, every default is valid, and the
// schema and the reference agree with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "spec/options.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

TEST(Table, HasUniqueKeysAndOnlyKnownSections) {
  std::set<std::string> keys, sections;
  for (const Option& option : option_table()) {
    EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    EXPECT_FALSE(option.help.empty()) << option.key;
    if (!option.section().empty()) {
      EXPECT_NE(find_section(option.section()), nullptr) << option.key;
      sections.insert(option.section());
    }
  }
  for (const Section& section : section_table()) EXPECT_TRUE(sections.contains(section.key)) << section.key;
}

// Two rows with the same member of Job would be two names of one option, or a mistake in the table.
TEST(Table, GivesEveryOptionItsOwnMemberOfJob) {
  Job job;
  std::set<const void*> places;
  for (const Option& option : option_table()) {
    const void* position = visit_value(option, job, [](auto& value) { return static_cast<const void*>(&value); });
    EXPECT_TRUE(places.insert(position).second) << option.key;
  }
  EXPECT_EQ(places.size(), option_table().size());
}

TEST(Table, EffectsNameValuesThatTheirOwnersAccept) {
  for (const Option& option : option_table()) {
    if (option.effect.key.empty()) continue;
    const Option* owner = find_option(option.effect.key);
    ASSERT_NE(owner, nullptr) << option.key;
    for (const std::string& value : option.effect.values) {
      EXPECT_EQ(std::count(owner->type.choices.begin(), owner->type.choices.end(), value), 1)
          << option.key << ' ' << value;
    }
  }
}

TEST(Table, AcceptsItsOwnDefaultsAndExamples) {
  for (const Option& option : option_table()) {
    const std::string value = value_text(option, Job{});
    EXPECT_EQ(value.empty(), !option.unset.empty()) << option.key << ": the meaning of its absence";
    for (const std::string& text : {value, example(option)}) {
      if (text.empty()) continue;
      Job job;
      std::vector<Finding> findings;
      const Tree tree = parse_tree("key: " + text);
      ASSERT_TRUE(tree.root && tree.findings.empty()) << option.key << ' ' << text;
      EXPECT_TRUE(read_value(option, tree.root->entries[0].value, {}, job, findings))
          << option.key << ' ' << text << ": " << (findings.empty() ? "" : findings[0].what);
    }
  }
}

TEST(Schema, HasEveryKeyAndItsDefault) {
  const nlohmann::json schema = nlohmann::json::parse(json_schema());
  for (const Option& option : option_table()) {
    const nlohmann::json* level = &schema;
    for (const char* begin = option.key.c_str(); *begin != '\0';) {
      const std::string part(begin, strcspn(begin, "."));
      if (level->contains("anyOf")) level = &(*level)["anyOf"][1];
      ASSERT_TRUE((*level)["properties"].contains(part)) << option.key;
      EXPECT_EQ((*level)["additionalProperties"], false) << option.key;
      level = &(*level)["properties"][part];
      begin += part.size() + (begin[part.size()] == '.' ? 1 : 0);
    }
    EXPECT_EQ(level->contains("default"), is_set(option, Job{})) << option.key;
  }
}

TEST(Reference, ThePageInDocsIsTheGeneratedOne) {
  std::ifstream file(std::string(SINEW_SOURCE_DIR) + "/docs/reference/job-file.md", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), reference_markdown()) << "run: sinew schema --markdown > docs/reference/job-file.md";
}

TEST(Reference, ShowsAJobFileThatIsGood) {
  const std::string page = reference_markdown();
  const size_t begin = page.find("```yaml\n") + 8;
  const Reading reading = read_job(page.substr(begin, page.find("```", begin) - begin), "example");
  EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
}

TEST(Options, AreListedWithTypeDefaultAndHelp) {
  const std::vector<OptionInfo> list = options();
  ASSERT_EQ(list.size(), option_table().size());
  const auto found =
      std::find_if(list.begin(), list.end(), [](const auto& info) { return info.key == "optimizer.name"; });
  ASSERT_NE(found, list.end());
  EXPECT_EQ(found->default_value, "adamw");
  EXPECT_EQ(found->choices, (std::vector<std::string>{"sgd", "adam", "adamw", "rmsprop"}));
}

}  // namespace
}  // namespace sinew::spec
