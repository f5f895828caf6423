#include "web/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/cost_limit.h"
#include "base/random.h"
#include "web/context.h"
#include "web/invariants.h"

namespace sinew::web {
namespace {

using Values = std::map<std::string, Fact>;  // the key is the column, such as "metric.loss"

std::string full(const Column& column) {
  const char* const names[] = {"metric.", "param.", "tag.", "", "dataset."};
  return names[static_cast<int>(column.field)] + column.key;
}

bool holds(const std::string& filter, const Values& values) {
  return matches(parse_filter(filter, test_grammar()), [&](const Column& column) {
    const auto found = values.find(full(column));
    return std::vector<Fact>{found == values.end() ? Fact() : found->second};
  });
}

const Values kRun = {{"metric.loss", 0.5},          {"metric.a/b-c.d", 2.0}, {"param.lr", "0.1"},
                     {"param.my key", "It's 100%"}, {"tag.t", "Ünder_x"},    {"name", "run one"},
                     {"start_time", 1000.0}};

TEST(Filter, MatchesTrueComparisons) {
  for (const char* filter : {"",
                             "  ",
                             "metrics.loss < 1",
                             "metric.loss<1 AND params.lr='0.1'",
                             "metrics.loss = 5e-1 and metrics.loss != 0.6",
                             "metrics.`a/b-c.d` >= 2",
                             "metrics.\"a/b-c.d\" <= 2.0",
                             "metrics.a/b-c.d = 2",
                             "parameters.\"my key\" = 'It''s 100%'",
                             "params.`my key` LIKE '%100_'",
                             "param.`my key` ilike 'IT%'",
                             "tags.t LIKE '_nder\\_x' OR",
                             "tag.t LIKE 'Ü%x'",
                             "tag.t LIKE '_nder_x'",
                             "name IN ('a', 'run one')",
                             "attributes.name not in (\"a\")",
                             "attr.start_time > 999",
                             "run.start_time = '1000'",
                             "begun = 1000",
                             "tags.none IS NULL AND tags.t is not null",
                             "metrics.loss > -.5",
                             "metrics.loss < +1"}) {
    if (std::string_view(filter).ends_with("OR")) {
      EXPECT_THROW(holds(filter, kRun), Refused) << filter;
    } else {
      EXPECT_TRUE(holds(filter, kRun)) << filter;
    }
  }
}

TEST(Filter, DoesNotMatchFalseComparisons) {
  for (const char* filter :
       {"metrics.loss > 1", "metrics.none != 1", "params.lr = '0.10'", "params.none != 'x'", "tags.t = 'x'",
        "tags.t LIKE 'ü%'", "name IN ('run')", "name NOT IN ('run one', 'x')", "start_time < 1000", "tags.t IS NULL",
        "params.none IS NOT NULL", "metrics.loss < 1 AND metrics.loss > 1", "name LIKE 'run'", "name LIKE '%two'"}) {
    EXPECT_FALSE(holds(filter, kRun)) << filter;
  }
}

TEST(Filter, RefusesMalformedFiltersWithThePosition) {
  for (const char* filter : {"metrics.loss",
                             "metrics.loss <",
                             "metrics.loss < 'x'",
                             "metrics.loss < 1 OR metrics.loss > 2",
                             "params.lr > '1'",
                             "params.lr = 1",
                             "nothing.x = 1",
                             "unknown = 'x'",
                             "metrics. < 1",
                             "params.lr = 'x",
                             "metrics.loss < 1e999",
                             "name IN ()",
                             "name IN ('a'",
                             "name IN 'a'",
                             "metrics.loss IN (1)",
                             "metrics.loss IS NULL",
                             "tags.t IS 'x'",
                             "metrics.loss < 1 AND",
                             "AND",
                             "(metrics.loss < 1)",
                             "metrics.loss < 1; drop",
                             "'; DROP TABLE record; --",
                             "dataset.size = 'x'",
                             "start_time > 'soon'",
                             "metrics.loss LIKE 'x'",
                             "name = \"x"}) {
    try {
      parse_filter(filter, test_grammar());
      ADD_FAILURE() << filter;
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.kind.status, 400);
      EXPECT_NE(std::string(refused.what()).find("at character "), std::string::npos) << refused.what();
    }
  }
}

TEST(Filter, OrdersPutMissingValuesLastInBothDirections) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Fact> facts = {Fact(), 2.0, nan, -1.0, Fact(), 7.0};
  const auto order = [&](const char* text) {
    return sorted_order(facts.size(), {parse_order(text, test_grammar())},
                        [&](size_t place, const Column&) { return facts[place]; });
  };
  EXPECT_EQ(order("metrics.x"), (std::vector<size_t>{3, 1, 5, 2, 0, 4}));
  EXPECT_EQ(order("metrics.x asc"), order("metrics.x"));
  EXPECT_EQ(order("metrics.x DESC"), (std::vector<size_t>{5, 1, 3, 2, 0, 4}));
  for (const char* wrong : {"", "metrics.x UP", "metrics.x DESC, name", "nothing"}) {
    EXPECT_THROW(parse_order(wrong, test_grammar()), Refused) << wrong;
  }
}

TEST(Filter, AColumnOrdersOnce) {
  const auto orders = parse_orders({"tags.a DESC", "name", "tag.a", "tags.b", "attributes.name"}, test_grammar());
  ASSERT_EQ(orders.size(), 3U);
  EXPECT_EQ(orders[0].column.key, "a");
  EXPECT_FALSE(orders[0].ascending);
  EXPECT_EQ(orders[2].column.key, "b");
}

TEST(Filter, TheKeysOfASearchCountAsItsMemory) {
  const std::vector<Order> orders = parse_orders({"tags.a", "tags.b"}, test_grammar());
  const auto sort = [&](size_t records) {
    CostLimit limit(system_clock(), INFINITY, 1'000'000);
    const CostLimit::Scope scope(&limit);
    sorted_order(records, orders, [](size_t, const Column&) { return Fact(std::string(10'000, 'x')); });
    EXPECT_EQ(limit.held(), 0) << "the keys are gone";
  };
  sort(40);
  EXPECT_THROW(sort(60), Error);
}

// Implements LIKE in a slow and simple way.
bool like(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '%') {
    for (size_t skip = 0; skip <= text.size(); ++skip) {
      if (like(text.substr(skip), pattern.substr(1))) return true;
    }
    return false;
  }
  return !text.empty() && (pattern[0] == '_' || pattern[0] == text[0]) && like(text.substr(1), pattern.substr(1));
}

TEST(Filter, LikeMatchesItsDefinition) {
  RandomStream random(random_key({31}));
  const auto word = [&](std::string_view letters, uint64_t most) {
    std::string text;
    for (uint64_t size = random.below(most); size > 0; --size) text += letters[random.below(letters.size())];
    return text;
  };
  int matched = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = word("ab", 9), pattern = word("ab%%_", 7);
    const bool is = holds("name LIKE '" + pattern + "'", {{"name", text}});
    ASSERT_EQ(is, like(text, pattern)) << text << " LIKE " << pattern;
    matched += is ? 1 : 0;
  }
  EXPECT_GT(matched, 1000);
}

TEST(Filter, KeepsTheFirstRecordsOfAnyOrder) {
  RandomStream random(random_key({42}));
  const auto fact = [&]() -> Fact {
    switch (random.bits32() % 5) {
      case 0: return {};
      case 1: return std::numeric_limits<double>::quiet_NaN();
      default: return static_cast<double>(random.bits32() % 4);
    }
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Order> orders = {{{Column::Field::kMetric, "a"}, random.bits32() % 2 == 0},
                                 {{Column::Field::kMetric, "b"}, random.bits32() % 2 == 0},
                                 {{Column::Field::kAttribute, "name"}, true}};
    const size_t count = random.bits32() % 40, wanted = random.bits32() % 45;
    std::vector<std::vector<Fact>> keys;
    FirstRecords first(orders, wanted);
    for (size_t i = 0; i < count; ++i) {
      keys.push_back({fact(), fact(), Fact(std::to_string(i))});
      first.offer(std::to_string(i), keys.back());
    }
    const auto sorted = sorted_order(count, orders, [&](size_t index, const Column& column) {
      return keys[index][column.key == "a" ? 0 : column.key == "b" ? 1 : 2];
    });
    std::vector<std::string> expected;
    for (size_t i = 0; i < std::min(count, wanted); ++i) expected.push_back(std::to_string(sorted[i]));
    EXPECT_EQ(first.offered(), count);
    ASSERT_EQ(first.ids(), expected) << round;
  }
}

TEST(Filter, AnyBytesAreParsedOrRefused) {
  const std::string words[] = {
      "metrics", "params", ".", "`", "\"",   "'",  "=",    "<",   ">=",   "LIKE", "IN", "(",  ")",
      ",",       "AND",    " ", "1", "-1e5", "IS", "NULL", "NOT", "name", "\xc3", "%",  "\n", "x"};
  RandomStream random(random_key({32}));
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint64_t size = random.below(12); size > 0; --size) text += words[random.below(std::size(words))];
    check_filter(text);
  }
}

TEST(Body, AnyBytesAreParsedOrRefused) {
  const std::string words[] = {"{",       "}",     "[",           "]",      ":",    ",",
                               "\"a\"",   "\"b\"", "1",           "-1e400", "true", "null",
                               "\"NaN\"", "\"1\"", "\"\\u0000\"", "\xff",   "0.5",  "99999999999999999999",
                               "\"",      " "};
  RandomStream random(random_key({33}));
  for (int i = 0; i < 20'000; ++i) {
    std::string text = random.below(4) == 0 ? "" : "{\"a\":";
    for (uint64_t size = random.below(10); size > 0; --size) text += words[random.below(std::size(words))];
    check_body(random.below(2) == 0 ? text : text + "}");
  }
}

}  // namespace
}  // namespace sinew::web
