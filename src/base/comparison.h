// A comparison of named numbers as people write it in a job file: `model.heads * 8 <= model.dim`.
//
//   comparison := sum (("<=" | ">=" | "<" | ">" | "==" | "!=") sum)+      each with its neighbour: 0 < a < b
//   sum        := product (("+" | "-") product)*
//   product    := factor (("*" | "/" | "%") factor)*                      a % b: what is left of a by b, as in C
//   factor     := "-" factor | number | name | '"' name '"' | "(" sum ")"
//
// A name is letters, digits, '_' and '.', and begins with a letter or '_'; any other stands in quotes. Numbers that
// agree to twelve digits of what they were computed from are equal: 0.1 + 0.2 == 0.3, 0.1 + 0.2 - 0.3 == 0 and
// 0.3 % 0.1 == 0.
//
// Errors: what is no comparison throws Error, saying at which character. Threads: const after it was made.
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
  const std::vector<std::string>& names() const { return names_; }  // each once, as they come up
  // `values`: one a name. False also where a number to compare is none, as after a division by zero.
  bool holds(std::span<const double> values) const;

  bool operator==(const Comparison& other) const { return text_ == other.text_; }

 private:
  friend class ComparisonParser;
  struct Step {  // of a computation on a stack
    enum class Kind { number, name, negate, add, subtract, multiply, divide, remainder };
    Kind kind = Kind::number;
    double number = 0;
    size_t name = 0;
  };
  enum class Relation { at_most, at_least, below, above, equal, unequal };

  struct Value {
    double number = 0, scale = 0;  // scale: the largest size of what it was computed from
  };
  static bool related(const Value& left, Relation relation, const Value& right);
  static Value applied(Step::Kind kind, const Value& left, const Value& right);
  static Value computed(const std::vector<Step>& sum, std::span<const double> values);

  std::string text_;
  std::vector<std::string> names_;
  std::vector<std::vector<Step>> sums_;
  std::vector<Relation> relations_;  // between neighbours: one less than sums
};

}  // namespace sinew
