#include "base/comparison.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace sinew {
namespace {

constexpr size_t kLongest = 1000;  // characters
constexpr int kDeepest = 50;       // nested brackets and signs
constexpr double kAlike = 1e-12;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

class ComparisonParser {
 public:
  ComparisonParser(std::string_view text, Comparison& made) : text_(text), made_(made) {}

  void parse() {
    if (text_.size() > kLongest)
      throw Error("COMPARISON_BAD_SYNTAX", "it is longer than " + std::to_string(kLongest) + " characters", kHint);
    read_sum();
    while (const auto relation = read_relation()) {
      made_.relations_.push_back(*relation);
      read_sum();
    }
    if (at_ < text_.size()) refuse("cannot continue with " + here());
    if (made_.relations_.empty()) refuse("compares nothing: it contains none of <=, >=, <, >, ==, !=");
    if (made_.names_.empty()) refuse("contains no name");
  }

 private:
  using Step = Comparison::Step;
  using Kind = Step::Kind;
  using Relation = Comparison::Relation;
  static constexpr const char* kHint = "for example 'a <= 2 * b', with names, numbers, + - * / % and brackets";

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error("COMPARISON_BAD_SYNTAX",
                "'" + printable(text_) + "' " + what + " (character " + std::to_string(at_ + 1) + ")", kHint);
  }

  std::string here() {
    skip_blanks();
    return at_ < text_.size() ? "'" + printable(text_.substr(at_, 12)) + "'" : "the end of the text";
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::optional<Relation> read_relation() {
    constexpr std::pair<const char*, Relation> kRelations[] = {{"<=", Relation::at_most}, {">=", Relation::at_least},
                                                               {"==", Relation::equal},   {"!=", Relation::unequal},
                                                               {"<", Relation::below},    {">", Relation::above}};
    for (const auto& [word, relation] : kRelations) {
      if (take(word)) return relation;
    }
    return std::nullopt;
  }

  void read_sum() {
    made_.sums_.emplace_back();
    sum();
  }

  void put(Kind kind) { made_.sums_.back().push_back({kind, 0, 0}); }

  void sum() {
    product();
    while (true) {
      if (take("+")) {
        product();
        put(Kind::add);
      } else if (take("-")) {
        product();
        put(Kind::subtract);
      } else {
        return;
      }
    }
  }

  void product() {
    factor();
    while (true) {
      const Kind kind = take("*") ? Kind::multiply : take("/") ? Kind::divide : take("%") ? Kind::remainder : Kind::add;
      if (kind == Kind::add) return;
      factor();
      put(kind);
    }
  }

  void factor() {
    if (++depth_ > kDeepest) refuse("nests too many brackets and signs");
    if (take("-")) {
      factor();
      put(Kind::negate);
    } else if (take("(")) {
      sum();
      if (!take(")")) refuse("needs ')' here instead of " + here());
    } else {
      number_or_name();
    }
    --depth_;
  }

  void number_or_name() {
    skip_blanks();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (is_digit(c) || c == '.') return number();
    if (c == '"') return quoted_name();
    if (!is_letter(c)) refuse("needs a number or a name here instead of " + here());
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    name(text_.substr(begin, at_ - begin));
  }

  void number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) refuse("contains a number that cannot be read: " + here());
    at_ = static_cast<size_t>(end - text_.data());
    made_.sums_.back().push_back({Kind::number, value, 0});
  }

  void quoted_name() {
    const size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos || end == at_ + 1) refuse("contains a quoted name that does not end: " + here());
    name(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  void name(std::string_view word) {
    auto& names = made_.names_;
    const auto found = std::ranges::find(names, word);
    made_.sums_.back().push_back({Kind::name, 0, static_cast<size_t>(found - names.begin())});
    if (found == names.end()) names.emplace_back(word);
  }

  std::string_view text_;
  Comparison& made_;
  size_t at_ = 0;
  int depth_ = 0;
};

Comparison::Comparison(std::string_view text) : text_(text) {
  ComparisonParser(text, *this).parse();
}

bool Comparison::related(const Value& left, Relation relation, const Value& right) {
  if (std::isnan(left.number) || std::isnan(right.number)) return false;
  const double apart = left.number - right.number;
  const bool equal = left.number == right.number || std::abs(apart) <= kAlike * std::max(left.scale, right.scale);
  switch (relation) {
    case Relation::at_most: return equal || apart < 0;
    case Relation::at_least: return equal || apart > 0;
    case Relation::below: return !equal && apart < 0;
    case Relation::above: return !equal && apart > 0;
    case Relation::equal: return equal;
    case Relation::unequal: return !equal;
  }
  return false;
}

Comparison::Value Comparison::applied(Step::Kind kind, const Value& left, const Value& right) {
  using Kind = Step::Kind;
  const auto sized = [](double number) { return Value{number, std::abs(number)}; };
  const double larger = std::max(left.scale, right.scale);
  switch (kind) {
    case Kind::add: return {left.number + right.number, larger};
    case Kind::subtract: return {left.number - right.number, larger};
    case Kind::multiply: return sized(left.number * right.number);
    case Kind::divide: return sized(right.number == 0 ? std::nan("") : left.number / right.number);
    case Kind::remainder: {
      double rest = std::fmod(left.number, right.number);
      const double alike = kAlike * larger;
      if (std::abs(rest) <= alike || std::abs(std::abs(rest) - std::abs(right.number)) <= alike) rest = 0;
      return {rest, larger};
    }
    default: return left;
  }
}

Comparison::Value Comparison::computed(const std::vector<Step>& sum, std::span<const double> values) {
  // The stack needs at most one entry for every two characters of the text: each operand takes a character, and each
  // operator between two operands takes one.
  Value stack[kLongest / 2 + 1];
  size_t top = 0;
  for (const Step& step : sum) {
    using Kind = Step::Kind;
    if (step.kind == Kind::number || step.kind == Kind::name) {
      const double number = step.kind == Kind::number ? step.number : values[step.name];
      stack[top++] = {number, std::abs(number)};
    } else if (step.kind == Kind::negate) {
      stack[top - 1].number = -stack[top - 1].number;
    } else {
      --top;
      stack[top - 1] = applied(step.kind, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

bool Comparison::holds(std::span<const double> values) const {
  Value left = computed(sums_[0], values);
  for (size_t i = 0; i < relations_.size(); ++i) {
    const Value right = computed(sums_[i + 1], values);
    if (!related(left, relations_[i], right)) return false;
    left = right;
  }
  return true;
}

}  // namespace sinew
