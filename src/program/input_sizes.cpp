// Solves the symbols of a program from the sizes of its inputs, and compares the sizes with what the file promises.
//
// The file writes an expression of symbols as sympy's srepr does:
// "Add(Symbol('s94', positive=True, integer=True), Integer(1))".
#include <algorithm>
#include <charconv>
#include <limits>

#include "program/size_text.h"

namespace sinew::program {

// A node of an expression. `kind` is the name of a function, such as "Add", or "Symbol" or "Integer".
struct InputSizes::Expression {
  std::string kind;
  std::string symbol;
  int64_t number = 0;
  std::vector<Expression> items;
};

namespace {

using SizeExpression = InputSizes::Expression;

// Parses sympy's text. Returns nullopt for text that is none, or that nests too deeply.
class SizeParser {
 public:
  explicit SizeParser(std::string_view text) : rest_(text) {}

  std::optional<SizeExpression> whole() {
    auto parsed = expression(0);
    return parsed && rest_.empty() ? std::move(parsed) : std::nullopt;
  }

 private:
  static constexpr int kDeepest = 32;

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view until(std::string_view ends) {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(word.size());
    return word;
  }

  std::optional<SizeExpression> expression(int depth) {
    SizeExpression made;
    made.kind = until("(),'");
    if (depth > kDeepest || made.kind.empty() || !take("(")) return std::nullopt;
    if (made.kind == "Symbol") return symbol(std::move(made));
    if (made.kind == "Integer") return integer(std::move(made));
    do {
      auto item = expression(depth + 1);
      if (!item) return std::nullopt;
      made.items.push_back(std::move(*item));
    } while (take(", "));
    return take(")") ? std::optional(std::move(made)) : std::nullopt;
  }

  // Reads the name, and skips the assumptions about the symbol.
  std::optional<SizeExpression> symbol(SizeExpression made) {
    if (!take("'")) return std::nullopt;
    made.symbol = until("'");
    if (!take("'") || made.symbol.empty()) return std::nullopt;
    until("()'");
    return take(")") ? std::optional(std::move(made)) : std::nullopt;
  }

  std::optional<SizeExpression> integer(SizeExpression made) {
    const std::string_view digits = until(")");
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), made.number);
    if (problem != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return take(")") ? std::optional(std::move(made)) : std::nullopt;
  }

  std::string_view rest_;
};

std::string text_of(const SizeExpression& expression) {
  if (expression.kind == "Symbol") return expression.symbol;
  if (expression.kind == "Integer") return std::to_string(expression.number);
  const bool sum = expression.kind == "Add", product = expression.kind == "Mul";
  std::string text;
  for (const SizeExpression& item : expression.items) {
    if (!text.empty()) text += sum ? " + " : product ? "*" : ", ";
    text += product && item.kind == "Add" ? "(" + text_of(item) + ")" : text_of(item);
  }
  return sum || product ? text : expression.kind + "(" + text + ")";
}

using KnownSymbols = std::map<std::string, int64_t, std::less<>>;

// The value factor * unknown + rest. The factor is 0 if the value does not depend on an unknown symbol.
struct Linear {
  int64_t factor = 0, rest = 0;
  std::string unknown;
};

std::optional<Linear> plus(const Linear& a, const Linear& b) {
  if (a.factor != 0 && b.factor != 0 && a.unknown != b.unknown) return std::nullopt;
  Linear sum;
  sum.unknown = a.factor != 0 ? a.unknown : b.unknown;
  if (__builtin_add_overflow(a.factor, b.factor, &sum.factor)) return std::nullopt;
  if (__builtin_add_overflow(a.rest, b.rest, &sum.rest)) return std::nullopt;
  return sum;
}

std::optional<Linear> times(const Linear& a, const Linear& b) {
  if (a.factor != 0 && b.factor != 0) return std::nullopt;
  const Linear &open = a.factor != 0 ? a : b, &known = a.factor != 0 ? b : a;
  Linear product;
  product.unknown = open.unknown;
  if (__builtin_mul_overflow(open.factor, known.rest, &product.factor)) return std::nullopt;
  if (__builtin_mul_overflow(open.rest, known.rest, &product.rest)) return std::nullopt;
  return product;
}

// Computes a function of two known numbers. Sizes are not negative, so Python's rounding does not differ from C++'s.
std::optional<Linear> combined(const std::string& kind, const Linear& a, const Linear& b) {
  if (a.factor != 0 || b.factor != 0) return std::nullopt;
  const auto made = [](int64_t number) { return Linear{0, number, ""}; };
  if (kind == "Max") return made(std::max(a.rest, b.rest));
  if (kind == "Min") return made(std::min(a.rest, b.rest));
  if (a.rest < 0 || b.rest <= 0) return std::nullopt;
  if (kind == "FloorDiv" || kind == "CleanDiv") return made(a.rest / b.rest);
  if (kind == "Mod" || kind == "PythonMod") return made(a.rest % b.rest);
  return std::nullopt;
}

// Returns nullopt for an expression that has two unknown symbols, is not linear, or has an unknown function.
std::optional<Linear> value_of(const SizeExpression& expression, const KnownSymbols& known) {
  if (expression.kind == "Integer") return Linear{0, expression.number, ""};
  if (expression.kind == "Symbol") {
    const auto found = known.find(expression.symbol);
    return found == known.end() ? Linear{1, 0, expression.symbol} : Linear{0, found->second, ""};
  }
  std::optional<Linear> value;
  for (const SizeExpression& item : expression.items) {
    const auto next = value_of(item, known);
    if (!next) return std::nullopt;
    if (!value) {
      value = next;
      continue;
    }
    value = expression.kind == "Add"   ? plus(*value, *next)
            : expression.kind == "Mul" ? times(*value, *next)
                                       : combined(expression.kind, *value, *next);
    if (!value) return std::nullopt;
  }
  return expression.items.size() > 1 ? value : std::nullopt;
}

}  // namespace

std::string size_text(const Dim& dim) {
  if (dim.fixed) return std::to_string(*dim.fixed);
  const auto expression = SizeParser(dim.expression).whole();
  return expression ? text_of(*expression) : "computed";
}

InputSizes::InputSizes(const Program& program) : ranges_(program.ranges) {
  for (const InputSpec& spec : program.inputs) {
    if (spec.kind != InputSpec::Kind::user) continue;
    const auto& meta = program.graph.values.at(static_cast<size_t>(spec.value)).meta;
    Input input{spec.name, meta.has_value(), {}};
    for (const Dim& dim : meta ? meta->sizes : std::vector<Dim>()) {
      auto expression = dim.fixed ? std::nullopt : SizeParser(dim.expression).whole();
      const bool parsed = expression.has_value();
      input.sizes.push_back({dim.fixed, parsed ? text_of(*expression) : "", {}});
      if (parsed) input.sizes.back().expression.push_back(std::move(*expression));
    }
    inputs_.push_back(std::move(input));
  }
}

InputSizes::~InputSizes() = default;

// torch runs a program with sizes of 0 and 1 even if its file excludes them, because the exporter excludes them without
// a reason in the model. Sinew does the same.
std::string InputSizes::range_problem(const std::string& symbol, int64_t value) const {
  constexpr int64_t kLeastChecked = 2;
  const auto range = ranges_.find(symbol);
  if (range == ranges_.end()) return "";
  const auto& [min, max] = range->second;
  if (min && *min > kLeastChecked && value < *min) return "at least " + std::to_string(*min);
  return max && value > *max ? "at most " + std::to_string(*max) : "";
}

std::string InputSizes::problem(const std::vector<Shape>& shapes) const {
  struct Open {
    std::string what;  // "input x has size 3 in dimension 0"
    const Size* size;
    int64_t given;
  };
  std::vector<Open> open;
  for (size_t i = 0; i < inputs_.size() && i < shapes.size(); ++i) {
    const Input& input = inputs_[i];
    if (!input.described) continue;
    if (shapes[i].size() != input.sizes.size())
      return "input " + input.name + " has " + std::to_string(shapes[i].size()) + " dimensions instead of " +
             std::to_string(input.sizes.size());
    for (size_t d = 0; d < input.sizes.size(); ++d) {
      const int64_t given = shapes[i][d];
      if (given < 0) continue;
      const std::string what =
          "input " + input.name + " has the size " + std::to_string(given) + " in dimension " + std::to_string(d);
      const Size& size = input.sizes[d];
      if (size.fixed && *size.fixed != given) return what + " instead of " + std::to_string(*size.fixed);
      if (!size.expression.empty()) open.push_back({what, &size, given});
    }
  }
  KnownSymbols known;
  for (bool solved = true; solved;) {
    solved = false;
    for (Open& item : open) {
      if (item.size == nullptr) continue;
      const auto value = value_of(item.size->expression.front(), known);
      if (!value) continue;
      const std::string promised = item.what + ", but the program was exported for " + item.size->text;
      int64_t rest = 0;
      if (__builtin_sub_overflow(item.given, value->rest, &rest)) return promised;
      if (value->factor == 0 && rest != 0) return promised + " = " + std::to_string(value->rest);
      if (value->factor != 0) {
        const bool divides = value->factor == -1 || rest % value->factor == 0;
        if (!divides || rest == std::numeric_limits<int64_t>::min() || rest / value->factor < 0) return promised;
        const int64_t number = rest / value->factor;
        if (const std::string limit = range_problem(value->unknown, number); !limit.empty())
          return promised + ", where " + value->unknown + " is " + limit;
        known.emplace(value->unknown, number);
      }
      item.size = nullptr;
      solved = true;
    }
  }
  return "";
}

}  // namespace sinew::program
