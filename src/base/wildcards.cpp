#include "base/wildcards.h"

#include <algorithm>

#include "base/cost_limit.h"

namespace sinew {
namespace {

size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

constexpr size_t kRoundsPerCheck = 1 << 20;

}  // namespace

bool fits_wildcards(std::string_view text, std::string_view pattern, Wildcards wildcards) {
  size_t at = 0, in_pattern = 0, star = std::string_view::npos, resume = 0, rounds = 0;
  while (at < text.size()) {
    if (++rounds % kRoundsPerCheck == 0) CostLimit::check_current();
    const bool more = in_pattern < pattern.size();
    if (more && pattern[in_pattern] == wildcards.any) {
      star = in_pattern++;
      resume = at;
    } else if (more && wildcards.one != 0 && pattern[in_pattern] == wildcards.one) {
      at += std::min(character_bytes(text[at]), text.size() - at);
      ++in_pattern;
    } else if (more && pattern[in_pattern] == text[at]) {
      ++at;
      ++in_pattern;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == wildcards.any) ++in_pattern;
  return in_pattern == pattern.size();
}

}  // namespace sinew
