// Proposes the known word that is nearest to an unknown one. The distance between two words is the number of slips (the
// Damerau-Levenshtein distance, optimal string alignment). A slip adds, drops or replaces a letter, or swaps two
// neighbours.
#include <algorithm>
#include <cctype>

#include "spec/spec.h"

namespace sinew::spec {
namespace {

// Upper case, and '-' or ' ' instead of '_', do not count as slips.
std::string folded(std::string_view word) {
  std::string text(word);
  for (char& letter : text) {
    letter = letter == '-' || letter == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

// Returns how many slips may separate two words if the longer one has this many letters: about a third of the letters,
// at least one and at most three.
size_t slips_allowed(size_t letters) {
  return letters < 3 ? 1 : std::min<size_t>(3, (letters + 1) / 3);
}

// Returns whether one word is the beginning of the other: "batch" for "batch_size".
bool same_start(const std::string& a, const std::string& b) {
  return std::min(a.size(), b.size()) >= 3 && (a.starts_with(b) || b.starts_with(a));
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // no known word is close to a longer word
  if (word.empty() || word.size() > kLongest) return "";
  const std::string wanted = folded(word);
  std::string best;
  size_t best_distance = kLongest;
  for (const std::string& candidate : known) {
    const std::string other = folded(candidate);
    const size_t letters = std::max(wanted.size(), other.size());
    const size_t slips = distance(wanted, other);
    if (slips < letters && slips <= slips_allowed(letters) && slips < best_distance) {
      best = candidate;
      best_distance = slips;
    }
  }
  if (!best.empty()) return best;
  std::vector<std::string> started;
  for (const std::string& candidate : known) {
    if (same_start(wanted, folded(candidate))) started.push_back(candidate);
  }
  return started.size() == 1 ? started[0] : "";
}

}  // namespace sinew::spec
