#include "store/texts.h"

#include "base/utf8.h"

namespace sinew::store {
namespace {

constexpr size_t kMostOfId = 500, kMostOfBody = size_t{4} << 20U;
constexpr double kMostLeaseSeconds = 30 * 86400.0;

}  // namespace

bool is_utf8(std::string_view text) {
  return first_invalid_utf8(text) == std::string_view::npos;
}

TextJudge& TextJudge::that(bool well, const std::string& why) {
  if (!well && !objection_) objection_ = Refusal{Refusal::Reason::kInvalid, why};
  return *this;
}

TextJudge& TextJudge::text(const char* what, std::string_view text, size_t least, size_t most) {
  if (objection_) return *this;
  // Sentences are made only when they are needed: this is asked of every text of every change.
  if (text.size() < least) return that(false, std::string(what) + " must not be empty");
  if (text.size() > most) {
    return that(false,
                std::string(what) + " has " + std::to_string(text.size()) + " bytes, at most " + std::to_string(most));
  }
  if (text.find('\0') != std::string_view::npos) return that(false, std::string(what) + " has a NUL in it");
  if (!is_utf8(text)) return that(false, std::string(what) + " is not UTF-8");
  return *this;
}

TextJudge& TextJudge::id(const char* what, std::string_view text) {
  return this->text(what, text, 1, kMostOfId);
}

TextJudge& TextJudge::name(const char* what, std::string_view text) {
  return this->text(what, text, 0, kMostOfId);
}

TextJudge& TextJudge::body(const char* what, std::string_view text) {
  return this->text(what, text, 0, kMostOfBody);
}

TextJudge& TextJudge::labels(const char* what, const Labels& labels) {
  size_t bytes = 0;
  for (const auto& [key, value] : labels) {
    id(what, key);
    body(what, value);
    bytes += key.size() + value.size();
  }
  if (bytes <= kMostOfBody) return *this;
  return that(false, std::string(what) + "s have " + std::to_string(bytes) + " bytes together, at most " +
                         std::to_string(kMostOfBody));
}

TextJudge& TextJudge::seconds(const char* what, double seconds) {
  return that(seconds > 0 && seconds <= kMostLeaseSeconds, std::string(what) + " must be above 0 and at most 30 days");
}

}  // namespace sinew::store
