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
constexpr int kDeepest = 50;       // brackets and signs within one another
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
    if (text_.size() > kLongest) throw Error("it is longer than " + std::to_string(kLongest) + " characters", kHint);
    read_sum();
    while (const auto relation = read_relation()) {
      made_.relations_.push_back(*relation);
      read_sum();
    }
    if (at_ < text_.size()) refuse("can not go on with " + here());
    if (made_.relations_.empty()) refuse("compares nothing: it has none of <=, >=, <, >, ==, !=");
    if (made_.names_.empty()) refuse("names nothing");
  }

 private:
  using Step = Comparison::Step;
  using Kind = Step::Kind;
  using Relation = Comparison::Relation;
  static constexpr const char* kHint = "for example 'a <= 2 * b', with names, numbers, + - * / % and brackets";

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error("'" + printable(text_) + "' " + what + " (character " + std::to_string(at_ + 1) + ")", kHint);
  }

  std::string here() {
    skip_blanks();
    return at_ < text_.size() ? "'" + printable(text_.substr(at_, 12)) + "'" : "its end";
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
    if (++depth_ > kDeepest) refuse("has too many brackets and signs within one another");
    if (take("-")) {
      factor();
      put(Kind::negate);
    } else if (take("(")) {
      sum();
      if (!take(")")) refuse("needs ')' instead of " + here());
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
    if (!is_letter(c)) refuse("needs a number or a name instead of " + here());
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    name(text_.substr(begin, at_ - begin));
  }

  void number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) refuse("has no number in " + here());
    at_ = static_cast<size_t>(end - text_.data());
    made_.sums_.back().push_back({Kind::number, value, 0});
  }

  void quoted_name() {
    const size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos || end == at_ + 1) refuse("has a name that does not end: " + here());
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

bool Comparison::related(double left, Relation relation, double right) {
  if (std::isnan(left) || std::isnan(right)) return false;
  const double apart = left - right, alike = kAlike * std::max(std::abs(left), std::abs(right));
  const bool equal = left == right || std::abs(apart) <= alike;
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

bool Comparison::holds(std::span<const double> values) const {
  const auto computed = [&](const std::vector<Step>& sum) {
    std::vector<double> stack;
    const auto pop = [&] {
      const double top = stack.back();
      stack.pop_back();
      return top;
    };
    for (const Step& step : sum) {
      using Kind = Step::Kind;
      if (step.kind == Kind::number || step.kind == Kind::name) {
        stack.push_back(step.kind == Kind::number ? step.number : values[step.name]);
        continue;
      }
      const double right = pop(), left = step.kind == Kind::negate ? 0 : pop();
      switch (step.kind) {
        case Kind::negate: stack.push_back(-right); break;
        case Kind::add: stack.push_back(left + right); break;
        case Kind::subtract: stack.push_back(left - right); break;
        case Kind::multiply: stack.push_back(left * right); break;
        case Kind::divide: stack.push_back(right == 0 ? std::nan("") : left / right); break;
        case Kind::remainder: stack.push_back(std::fmod(left, right)); break;
        default: break;
      }
    }
    return stack.back();
  };
  double left = computed(sums_[0]);
  for (size_t i = 0; i < relations_.size(); ++i) {
    const double right = computed(sums_[i + 1]);
    if (!related(left, relations_[i], right)) return false;
    left = right;
  }
  return true;
}

}  // namespace sinew
