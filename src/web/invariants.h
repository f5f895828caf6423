// For tests and fuzzing: properties that hold for any bytes given as a filter, an order or a body.
#pragma once

#include <string>

#include "base/check.h"
#include "web/args.h"
#include "web/context.h"
#include "web/filter.h"

namespace sinew::web {

inline const Grammar& test_grammar() {
  static const Grammar grammar{true, true, true, {"name"}, {"start_time"}, {{"begun", "start_time"}}};
  return grammar;
}

// Checks that the parser returns clauses whose operands fit their comparators, or refuses the text with a message.
inline void check_filter(const std::string& text) {
  try {
    const auto clauses = parse_filter(text, test_grammar());
    SINEW_CHECK(clauses.size() <= 200);
    for (const Clause& clause : clauses) {
      SINEW_CHECK(!clause.comparator.empty());
      if (clause.comparator.ends_with("IN")) SINEW_CHECK(!clause.texts.empty());
      if (clause.comparator.ends_with("LIKE")) SINEW_CHECK(clause.texts.size() == 1);
    }
    matches(clauses, [&](const Column& column) {
      const bool number = column.field == Column::Field::kMetric || column.key == "start_time";
      return std::vector<Fact>{number ? Fact(1.0) : Fact(text)};
    });
  } catch (const Refused& refused) {
    SINEW_CHECK(refused.kind.status == 400 && refused.what()[0] != '\0');
  }
  try {
    parse_order(text, test_grammar());
  } catch (const Refused& refused) {
    SINEW_CHECK(refused.kind.status == 400);
  }
}

// Reads each value of a body as every type.
inline void check_body(const std::string& text) {
  http::Request request;
  request.method = "POST";
  request.body = text;
  const auto refused = [](const auto& take) {
    try {
      take();
    } catch (const Refused& refusal) {
      SINEW_CHECK(refusal.kind.status == 400 && refusal.what()[0] != '\0');
    }
  };
  refused([&] {
    const Args args(Call{request, {}});
    for (const auto& [name, value] : args.json().items()) {
      const char* key = name.c_str();
      refused([&] { args.text(key); });
      refused([&] { args.integer(key, 0); });
      refused([&] { args.number(key); });
      refused([&] { args.flag(key, false); });
      refused([&] { args.texts(key); });
      refused([&] { args.objects(key); });
    }
  });
}

}  // namespace sinew::web
