// Computes with symbolic sizes: applies Python's operators and torch.sym_* to the actual numbers of a run.
//
// Python's integers have no limits, but a run uses 64 bits. So an operation throws an Error, instead of wrapping around
// or trapping, if its result does not fit or if Python refuses it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::IValue;
using torch::jit::Stack;

[[noreturn]] void refuse_size(const std::string& what) {
  throw Error("MODEL_SIZE_INVALID", what, "check the sizes in the model's code, or export the model again");
}
[[noreturn]] void overflow_size(const char* operation, int64_t a, int64_t b) {
  refuse_size(std::to_string(a) + ' ' + operation + ' ' + std::to_string(b) + " does not fit into 64 bits");
}

bool is_real(const IValue& value) {
  return value.isDouble();
}
void check_number(const IValue& value) {
  if (!value.isDouble() && !value.isBool() && !value.isInt()) refuse_size("an operand is a " + value.tagKind());
}
double real(const IValue& value) {
  check_number(value);
  return value.isDouble() ? value.toDouble() : value.isBool() ? value.toBool() : static_cast<double>(value.toInt());
}
int64_t integer(const IValue& value) {
  check_number(value);
  if (value.isDouble()) refuse_size("a real number stands where an integer is needed");
  return value.isBool() ? value.toBool() : value.toInt();
}
bool truth(const IValue& value) {
  check_number(value);
  return value.isBool() ? value.toBool() : is_real(value) ? value.toDouble() != 0 : value.toInt() != 0;
}
void check_count(const Stack& stack, size_t wanted) {
  if (stack.size() != wanted)
    refuse_size("it takes " + std::to_string(wanted) + " numbers, but gets " + std::to_string(stack.size()));
}

// Applies `of_integers` if both operands are integers, otherwise `of_reals`, as Python does.
template <typename OfIntegers, typename OfReals>
void binary(Stack& stack, OfIntegers of_integers, OfReals of_reals) {
  check_count(stack, 2);
  const IValue a = stack[0], b = stack[1];
  stack.clear();
  if (is_real(a) || is_real(b)) {
    stack.emplace_back(of_reals(real(a), real(b)));
  } else {
    stack.emplace_back(of_integers(integer(a), integer(b)));
  }
}
template <typename Operation>
void both(Stack& stack, Operation operation) {
  binary(stack, operation, operation);
}
template <typename OfIntegers>
void integers(Stack& stack, OfIntegers of_integers) {
  check_count(stack, 2);
  const int64_t result = of_integers(integer(stack[0]), integer(stack[1]));
  stack.assign(1, result);
}
template <typename Operation>
void unary(Stack& stack, Operation operation) {
  check_count(stack, 1);
  const IValue a = stack[0];
  stack.clear();
  stack.emplace_back(operation(a));
}

int64_t add(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) overflow_size("+", a, b);
  return result;
}
int64_t subtract(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) overflow_size("-", a, b);
  return result;
}
int64_t multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) overflow_size("*", a, b);
  return result;
}

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) refuse_size("division of a size by zero");
  if (a == kLeast && b == -1) overflow_size("//", a, b);
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}
int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) refuse_size("division of a size by zero");
  if (b == -1) return 0;  // the processor would trap at kLeast % -1
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
double real_floor_div(double a, double b) {
  if (b == 0) refuse_size("division of a size by zero");
  return std::floor(a / b);
}
double real_modulo(double a, double b) {
  if (b == 0) refuse_size("division of a size by zero");
  return a - std::floor(a / b) * b;
}
double divide(double a, double b) {
  if (b == 0) refuse_size("division of a size by zero");
  return a / b;
}

// Uses repeated squaring, so that even the largest exponent takes 63 rounds.
int64_t whole_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t square = base, left = exponent; left > 0; left >>= 1) {
    if ((left & 1) != 0 && __builtin_mul_overflow(result, square, &result)) overflow_size("**", base, exponent);
    // At least one more factor follows. If this square overflows, that factor is out of range too.
    if (left > 1 && __builtin_mul_overflow(square, square, &square)) overflow_size("**", base, exponent);
  }
  return result;
}
IValue power(const IValue& a, const IValue& b) {
  const bool whole = !is_real(a) && !is_real(b);
  if (whole && integer(b) >= 0) return whole_power(integer(a), integer(b));
  const double result = std::pow(real(a), real(b));
  if (!std::isfinite(result)) refuse_size("a power of sizes has no value");
  return result;
}

int64_t shift_left(int64_t a, int64_t by) {
  constexpr int64_t kBits = 62;  // 1 << 62 is the largest power of two
  if (by < 0) refuse_size("a shift by " + std::to_string(by));
  if (a == 0) return 0;
  if (by > kBits) overflow_size("<<", a, by);
  return multiply(a, int64_t{1} << by);
}
int64_t shift_right(int64_t a, int64_t by) {
  constexpr int64_t kBits = 63;
  if (by < 0) refuse_size("a shift by " + std::to_string(by));
  return a >> std::min(by, kBits);
}

int64_t rounded(double value) {
  if (!std::isfinite(value) || std::abs(value) >= 0x1p62) refuse_size("a size became " + std::to_string(value));
  return static_cast<int64_t>(value);
}
// Rounding leaves an integer as it is. Converting it to double could change it.
template <typename Round>
void round_with(Stack& stack, Round round) {
  unary(stack, [&](const IValue& a) { return is_real(a) ? rounded(round(a.toDouble())) : integer(a); });
}

IValue logical(const IValue& a, const IValue& b, bool conjunction) {
  if (a.isBool() && b.isBool()) return conjunction ? truth(a) && truth(b) : truth(a) || truth(b);
  return conjunction ? integer(a) & integer(b) : integer(a) | integer(b);
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"_operator.add", [](Stack& s) { binary(s, add, [](double a, double b) { return a + b; }); }},
      {"_operator.sub", [](Stack& s) { binary(s, subtract, [](double a, double b) { return a - b; }); }},
      {"_operator.mul", [](Stack& s) { binary(s, multiply, [](double a, double b) { return a * b; }); }},
      {"_operator.floordiv", [](Stack& s) { binary(s, floor_div, real_floor_div); }},
      {"_operator.mod", [](Stack& s) { binary(s, modulo, real_modulo); }},
      {"_operator.truediv",
       [](Stack& s) {
         const auto as_reals = [](auto a, auto b) { return divide(static_cast<double>(a), static_cast<double>(b)); };
         both(s, as_reals);
       }},
      {"_operator.pow",
       [](Stack& s) {
         check_count(s, 2);
         const IValue result = power(s[0], s[1]);
         s.assign(1, result);
       }},
      {"_operator.lshift", [](Stack& s) { integers(s, shift_left); }},
      {"_operator.rshift", [](Stack& s) { integers(s, shift_right); }},
      {"_operator.eq", [](Stack& s) { both(s, [](auto a, auto b) { return a == b; }); }},
      {"_operator.ne", [](Stack& s) { both(s, [](auto a, auto b) { return a != b; }); }},
      {"_operator.lt", [](Stack& s) { both(s, [](auto a, auto b) { return a < b; }); }},
      {"_operator.le", [](Stack& s) { both(s, [](auto a, auto b) { return a <= b; }); }},
      {"_operator.gt", [](Stack& s) { both(s, [](auto a, auto b) { return a > b; }); }},
      {"_operator.ge", [](Stack& s) { both(s, [](auto a, auto b) { return a >= b; }); }},
      {"_operator.and_",
       [](Stack& s) {
         check_count(s, 2);
         const IValue result = logical(s[0], s[1], /*conjunction=*/true);
         s.assign(1, result);
       }},
      {"_operator.or_",
       [](Stack& s) {
         check_count(s, 2);
         const IValue result = logical(s[0], s[1], /*conjunction=*/false);
         s.assign(1, result);
       }},
      {"_operator.neg",
       [](Stack& s) {
         unary(s, [](const IValue& a) { return is_real(a) ? IValue(-real(a)) : IValue(subtract(0, integer(a))); });
       }},
      {"_operator.pos", [](Stack& s) { unary(s, [](const IValue& a) { return a; }); }},
      {"math.trunc", [](Stack& s) { round_with(s, [](double a) { return std::trunc(a); }); }},
      {"math.floor", [](Stack& s) { round_with(s, [](double a) { return std::floor(a); }); }},
      {"math.ceil", [](Stack& s) { round_with(s, [](double a) { return std::ceil(a); }); }},
      // Python rounds halves to even, as nearbyint does in the default rounding mode.
      {"builtins.round", [](Stack& s) { round_with(s, [](double a) { return std::nearbyint(a); }); }},
      {"torch.sym_int", [](Stack& s) { round_with(s, [](double a) { return std::trunc(a); }); }},
      {"torch.sym_float", [](Stack& s) { unary(s, [](const IValue& a) { return real(a); }); }},
      {"torch.sym_not", [](Stack& s) { unary(s, [](const IValue& a) { return !truth(a); }); }},
      {"torch.sym_max", [](Stack& s) { both(s, [](auto a, auto b) { return a > b ? a : b; }); }},
      {"torch.sym_min", [](Stack& s) { both(s, [](auto a, auto b) { return a < b ? a : b; }); }},
      {"torch.sym_ite",
       [](Stack& s) {
         check_count(s, 3);
         const IValue result = truth(s[0]) ? s[1] : s[2];
         s.assign(1, result);
       }},
  };
  return all;
}

void square_root(Stack& stack) {
  unary(stack, [](const IValue& a) {
    if (real(a) < 0) refuse_size("the root of a negative size");
    return std::sqrt(real(a));
  });
}

}  // namespace

Function symbolic_function(const std::string& target) {
  if (target == "torch.sym_sqrt" || target == "torch._sym_sqrt" || target == "math.sqrt") return square_root;
  const auto found = functions().find(target);
  return found == functions().end() ? nullptr : found->second;
}

}  // namespace sinew::model
