#include "store/validator.h"

#include "base/utf8.h"

namespace sinew::store {
namespace {

constexpr size_t kMaxIdBytes = 500, kMaxBodyBytes = size_t{4} << 20U;
constexpr double kMaxLeaseSeconds = 30 * 86400.0;

}  // namespace

bool is_utf8(std::string_view text) {
  return first_invalid_utf8(text) == std::string_view::npos;
}

Validator& Validator::require(bool condition, const std::string& why) {
  if (!condition && !refusal_) refusal_ = Refusal{Refusal::Reason::kInvalid, why};
  return *this;
}

// This runs for every text of every change. So it builds a message only if it refuses the text.
Validator& Validator::text(const char* what, std::string_view text, size_t min, size_t max) {
  if (refusal_) return *this;
  if (text.size() < min) return require(false, std::string(what) + " must not be empty");
  if (text.size() > max) {
    return require(false, std::string(what) + " has " + std::to_string(text.size()) + " bytes; the limit is " +
                              std::to_string(max));
  }
  if (text.find('\0') != std::string_view::npos) return require(false, std::string(what) + " contains a NUL");
  if (!is_utf8(text)) return require(false, std::string(what) + " is not valid UTF-8");
  return *this;
}

Validator& Validator::id(const char* what, std::string_view text) {
  return this->text(what, text, 1, kMaxIdBytes);
}

Validator& Validator::name(const char* what, std::string_view text) {
  return this->text(what, text, 0, kMaxIdBytes);
}

Validator& Validator::body(const char* what, std::string_view text) {
  return this->text(what, text, 0, kMaxBodyBytes);
}

Validator& Validator::labels(const char* what, const Labels& labels) {
  size_t bytes = 0;
  for (const auto& [key, value] : labels) {
    id(what, key);
    body(what, value);
    bytes += key.size() + value.size();
  }
  if (bytes <= kMaxBodyBytes) return *this;
  return require(false, "the " + std::string(what) + "s of one record have " + std::to_string(bytes) +
                            " bytes together; the limit is " + std::to_string(kMaxBodyBytes));
}

Validator& Validator::seconds(const char* what, double seconds) {
  return require(seconds > 0 && seconds <= kMaxLeaseSeconds,
                 std::string(what) + " must last more than 0 seconds and at most 30 days");
}

}  // namespace sinew::store
