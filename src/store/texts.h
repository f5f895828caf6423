// Inside store/: which texts may be kept. The same on both databases, so that a store can move: UTF-8 without NUL, and
// not endless. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace sinew::store {

bool is_utf8(std::string_view text);  // Unicode 15, table 3-7: no overlong forms, no surrogates

// Looks at texts one after the other and keeps the first objection.
class TextJudge {
 public:
  TextJudge& id(const char* what, std::string_view text);    // 1 to 500 bytes: it is in keys
  TextJudge& name(const char* what, std::string_view text);  // up to 500 bytes
  TextJudge& body(const char* what, std::string_view text);  // up to 4 MiB
  TextJudge& labels(const char* what, const Labels& labels);
  TextJudge& seconds(const char* what, double seconds);  // of a lease: above 0, at most 30 days
  TextJudge& that(bool well, const std::string& why);
  const std::optional<Refusal>& objection() const { return objection_; }

 private:
  TextJudge& text(const char* what, std::string_view text, size_t least, size_t most);
  std::optional<Refusal> objection_;
};

}  // namespace sinew::store
