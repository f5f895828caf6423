// What has to hold for any bytes given as a filter, an order or a body; for tests and fuzzing.
#pragma once

#include <string>

#include "base/check.h"
#include "web/args.h"
#include "web/context.h"
#include "web/filter.h"

namespace sinew::web {

inline const Grammar& judged_grammar() {
  static const Grammar grammar{true, true, true, {"name"}, {"start_time"}, {{"begun", "start_time"}}};
  return grammar;
}

// Clauses that are what their comparators say, or a refusal in words; never anything else, nor long.
inline void judge_filter(const std::string& text) {
  try {
    const auto clauses = parse_filter(text, judged_grammar());
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
    SINEW_CHECK(refused.status == 400 && refused.what()[0] != '\0');
  }
  try {
    parse_order(text, judged_grammar());
  } catch (const Refused& refused) {
    SINEW_CHECK(refused.status == 400);
  }
}

// A body whose values are taken as every type there is.
inline void judge_body(const std::string& text) {
  http::Request request;
  request.method = "POST";
  request.body = text;
  const auto refused = [](const auto& take) {
    try {
      take();
    } catch (const Refused& refusal) {
      SINEW_CHECK(refusal.status == 400 && refusal.what()[0] != '\0');
    }
  };
  refused([&] {
    const Args args(Call{request, {}, Role::kNobody, ""});
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
