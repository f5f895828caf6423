#include "store/texts.h"

#include <cstdint>

namespace sinew::store {
namespace {

constexpr size_t kMostOfId = 500, kMostOfBody = size_t{4} << 20U;
constexpr double kMostLeaseSeconds = 30 * 86400.0;

// How many bytes the character that begins the text takes; 0: it is none.
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  const uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return size;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
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
