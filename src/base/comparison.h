// Parses and evaluates a comparison of named numbers, as users write it in a job file: `model.heads * 8 <= model.dim`.
//
//   comparison := sum (("<=" | ">=" | "<" | ">" | "==" | "!=") sum)+      neighbours are compared: 0 < a < b
//   sum        := product (("+" | "-") product)*
//   product    := factor (("*" | "/" | "%") factor)*                      a % b is the remainder, as fmod in C
//   factor     := "-" factor | number | name | '"' name '"' | "(" sum ")"
//
// A name consists of letters, digits, '_' and '.', and begins with a letter or '_'. Any other name is written in
// quotes. Two results are equal if they differ by at most 1e-12 times the largest number that occurs in their
// computation. So 0.1 + 0.2 == 0.3, 0.1 + 0.2 - 0.3 == 0 and 0.3 % 0.1 == 0 hold.
//
// The constructor throws Error with the position of the first character that does not fit. A Comparison is immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew {

class Comparison {
 public:
  explicit Comparison(std::string_view text);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return names_; }  // in order of their first use, without repetition
  // `values` holds one value for each of names(). Returns false if a compared number is NaN, for example after 0 / 0.
  bool holds(std::span<const double> values) const;

  bool operator==(const Comparison& other) const { return text_ == other.text_; }

 private:
  friend class ComparisonParser;
  struct Step {  // one operation of a stack machine
    enum class Kind { number, name, negate, add, subtract, multiply, divide, remainder };
    Kind kind = Kind::number;
    double number = 0;
    size_t name = 0;
  };
  enum class Relation { at_most, at_least, below, above, equal, unequal };

  struct Value {
    double number = 0, scale = 0;  // `scale` is the largest magnitude that occurred in the computation of `number`
  };
  static bool related(const Value& left, Relation relation, const Value& right);
  static Value applied(Step::Kind kind, const Value& left, const Value& right);
  static Value computed(const std::vector<Step>& sum, std::span<const double> values);

  std::string text_;
  std::vector<std::string> names_;
  std::vector<std::vector<Step>> sums_;
  std::vector<Relation> relations_;  // relations_[i] is between sums_[i] and sums_[i + 1]
};

}  // namespace sinew
