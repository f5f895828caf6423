#include "data/propose_target.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/joined.h"
#include "data/files.h"
#include "spec/spec.h"

namespace sinew::data {
namespace {

// The scores. A choice needs kEnough, and must be kAhead of the next candidate.
constexpr int kCertainName = 100, kUsualName = 75, kLikelyName = 45, kLast = 30, kFirst = 10, kOnlyClasses = 30;
constexpr int kEnough = 60, kAhead = 25;
constexpr int64_t kMostClasses = 20;
constexpr size_t kShown = 5;

constexpr auto kCertain =
    std::to_array<std::string_view>({"target", "label", "labels", "y", "outcome", "response", "survived", "species",
                                     "diagnosis", "saleprice", "sale_price", "churn"});
constexpr auto kUsual = std::to_array<std::string_view>(
    {"class", "price", "quality", "mpg", "income", "salary", "score", "result", "rating", "medv"});
constexpr auto kLikely =
    std::to_array<std::string_view>({"target", "label", "class", "price", "outcome", "result", "score", "rating",
                                     "amount", "sales", "churn", "default", "fraud", "cost"});

struct RatedColumn {
  std::string name;
  int score = 0;
  std::vector<std::string> reasons;
  void add(int points, const std::string& reason) {
    score += points;
    reasons.push_back(reason);
  }
};

bool ends_in_likely_word(const std::string& lower) {
  return std::any_of(kLikely.begin(), kLikely.end(), [&](std::string_view word) {
    if (!lower.ends_with(word) || lower.size() == word.size()) return false;
    return std::isalnum(static_cast<unsigned char>(lower[lower.size() - word.size() - 1])) == 0;
  });
}

// Returns false for columns that are no target unless the user says so.
bool can_be_target(ColumnKind kind) {
  return kind == ColumnKind::number || kind == ColumnKind::category || kind == ColumnKind::boolean ||
         kind == ColumnKind::code;
}

bool has_name(const std::vector<ColumnSketch>& columns, const std::string& name) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const ColumnSketch& column) { return lower_case(column.name) == name; });
}

bool are_classes(const ColumnSketch& column) {
  return column.kind != ColumnKind::number && column.different <= kMostClasses;
}

// `others` is the number of columns with numbers, and of those that are left out.
RatedColumn rate(const std::vector<ColumnSketch>& columns, size_t index, size_t others) {
  const ColumnSketch& column = columns[index];
  const std::string lower = lower_case(column.name);
  RatedColumn candidate{column.name};
  const bool coordinate = lower == "y" && has_name(columns, "z");  // x, y, z
  if (is_one_of(lower, kCertain) && !coordinate) {
    candidate.add(kCertainName, "its name is that of a target");
  } else if (is_one_of(lower, kUsual)) {
    candidate.add(kUsualName, "its name is often that of a target");
  } else if (ends_in_likely_word(lower) || lower.starts_with("is_") || lower.starts_with("has_")) {
    candidate.add(kLikelyName, "its name may be that of a target");
  }
  if (index + 1 == columns.size()) candidate.add(kLast, "it is the last column");
  if (index == 0) candidate.add(kFirst, "it is the first column");
  if (are_classes(column) && others + 1 == columns.size())
    candidate.add(kOnlyClasses, "it has classes and all others are numbers");
  return candidate;
}

std::string with_reasons(const RatedColumn& candidate) {
  const std::string reasons = joined(candidate.reasons, ", ");
  return "'" + candidate.name + "'" + (reasons.empty() ? "" : " (" + reasons + ")");
}

}  // namespace

TargetChoice judge_target(const std::vector<ColumnSketch>& columns, const std::string& wanted) {
  if (!wanted.empty()) {
    std::vector<std::string> names;
    for (const ColumnSketch& column : columns) names.push_back(column.name);
    if (std::find(names.begin(), names.end(), wanted) != names.end()) return {wanted, "--target names it", ""};
    const std::string near = spec::did_you_mean(wanted, names);
    names.resize(std::min<size_t>(names.size(), 12));
    throw Error("DATA_UNKNOWN_COLUMN", "the table has no column '" + wanted + "'",
                near.empty() ? "its columns are " + joined(names, ", ") : "did you mean '" + near + "'?");
  }
  const auto others = std::count_if(columns.begin(), columns.end(), [](const ColumnSketch& column) {
    return column.kind == ColumnKind::number || is_left_out(column.kind);
  });
  std::vector<RatedColumn> candidates;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (can_be_target(columns[i].kind)) candidates.push_back(rate(columns, i, static_cast<size_t>(others)));
  }
  if (candidates.empty())
    return {"", "no column looks like one to predict: all are dates, texts, identifiers or constant", columns[0].name};
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const RatedColumn& a, const RatedColumn& b) { return a.score > b.score; });
  const RatedColumn& best = candidates[0];
  const bool only = candidates.size() == 1;
  if (only || (best.score >= kEnough && best.score - candidates[1].score >= kAhead))
    return {best.name, only ? "it is the only column that can be one" : joined(best.reasons, ", "), ""};
  const std::string example = best.name;
  const size_t all = candidates.size();
  candidates.resize(std::min(all, kShown));
  return {"",
          "it is not clear which column to predict: " + joined(candidates, ", ", with_reasons) +
              (all > kShown ? ", and " + std::to_string(all - kShown) + " more" : ""),
          example};
}

}  // namespace sinew::data
