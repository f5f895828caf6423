// Inside store/: decides which texts the store accepts: UTF-8 without NUL, of limited length. The limits are the same
// for both databases, so that a store can be moved from one to the other. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace sinew::store {

bool is_utf8(std::string_view text);  // Unicode 15, table 3-7: no overlong forms, no surrogates

// Checks the fields of a change one after another and keeps the first refusal. `what` names the field in the refusal.
class Validator {
 public:
  Validator& id(const char* what, std::string_view text);    // 1 to 500 bytes, because ids are part of keys
  Validator& name(const char* what, std::string_view text);  // up to 500 bytes
  Validator& body(const char* what, std::string_view text);  // up to 4 MiB
  Validator& labels(const char* what, const Labels& labels);
  Validator& seconds(const char* what, double seconds);  // the duration of a lease: above 0, at most 30 days
  Validator& require(bool condition, const std::string& why);
  const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  Validator& text(const char* what, std::string_view text, size_t min, size_t max);
  std::optional<Refusal> refusal_;
};

}  // namespace sinew::store
