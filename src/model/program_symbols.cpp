// Arithmetic on symbolic sizes: applies Python's operators and torch.sym_* to the actual numbers of a run.
#include <cmath>
#include <map>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::IValue;
using torch::jit::Stack;

bool is_real(const IValue& value) {
  return value.isDouble();
}
double real(const IValue& value) {
  return value.isDouble() ? value.toDouble() : value.isBool() ? value.toBool() : static_cast<double>(value.toInt());
}
int64_t integer(const IValue& value) {
  return value.isBool() ? value.toBool() : value.isDouble() ? static_cast<int64_t>(value.toDouble()) : value.toInt();
}
bool truth(const IValue& value) {
  return value.isBool() ? value.toBool() : is_real(value) ? value.toDouble() != 0 : value.toInt() != 0;
}

// Applies `of_integers` if both operands are integers, as in Python, else `of_reals`.
template <typename OfIntegers, typename OfReals>
void binary(Stack& stack, OfIntegers of_integers, OfReals of_reals) {
  TORCH_CHECK(stack.size() == 2, "expects two numbers, got ", stack.size());
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
template <typename Operation>
void unary(Stack& stack, Operation operation) {
  TORCH_CHECK(stack.size() == 1, "expects one number, got ", stack.size());
  const IValue a = stack[0];
  stack.clear();
  stack.emplace_back(operation(a));
}

int64_t floor_div(int64_t a, int64_t b) {
  TORCH_CHECK(b != 0, "division of a symbolic size by zero");
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}
int64_t modulo(int64_t a, int64_t b) {
  return a - floor_div(a, b) * b;
}
double real_modulo(double a, double b) {
  return a - std::floor(a / b) * b;
}
IValue power(const IValue& a, const IValue& b) {
  if (is_real(a) || is_real(b) || integer(b) < 0) return std::pow(real(a), real(b));
  int64_t result = 1;
  for (int64_t i = 0, base = integer(a); i < integer(b); ++i) {
    TORCH_CHECK(!__builtin_mul_overflow(result, base, &result), "a power of symbolic sizes overflows");
  }
  return result;
}
int64_t rounded(double value) {
  TORCH_CHECK(std::isfinite(value) && std::abs(value) < 0x1p62, "a symbolic size became ", value);
  return static_cast<int64_t>(value);
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"_operator.add", [](Stack& s) { both(s, [](auto a, auto b) { return a + b; }); }},
      {"_operator.sub", [](Stack& s) { both(s, [](auto a, auto b) { return a - b; }); }},
      {"_operator.mul", [](Stack& s) { both(s, [](auto a, auto b) { return a * b; }); }},
      {"_operator.floordiv",
       [](Stack& s) { binary(s, floor_div, [](double a, double b) { return std::floor(a / b); }); }},
      {"_operator.mod", [](Stack& s) { binary(s, modulo, real_modulo); }},
      {"_operator.truediv",
       [](Stack& s) {
         const auto divide = [](auto a, auto b) { return static_cast<double>(a) / static_cast<double>(b); };
         binary(s, divide, divide);
       }},
      {"_operator.pow",
       [](Stack& s) {
         TORCH_CHECK(s.size() == 2);
         const IValue result = power(s[0], s[1]);
         s.assign(1, result);
       }},
      {"_operator.eq", [](Stack& s) { both(s, [](auto a, auto b) { return a == b; }); }},
      {"_operator.ne", [](Stack& s) { both(s, [](auto a, auto b) { return a != b; }); }},
      {"_operator.lt", [](Stack& s) { both(s, [](auto a, auto b) { return a < b; }); }},
      {"_operator.le", [](Stack& s) { both(s, [](auto a, auto b) { return a <= b; }); }},
      {"_operator.gt", [](Stack& s) { both(s, [](auto a, auto b) { return a > b; }); }},
      {"_operator.ge", [](Stack& s) { both(s, [](auto a, auto b) { return a >= b; }); }},
      {"_operator.and_",
       [](Stack& s) {
         TORCH_CHECK(s.size() == 2);
         s.assign(1, s[0].isBool() ? IValue(truth(s[0]) && truth(s[1])) : IValue(integer(s[0]) & integer(s[1])));
       }},
      {"_operator.or_",
       [](Stack& s) {
         TORCH_CHECK(s.size() == 2);
         s.assign(1, s[0].isBool() ? IValue(truth(s[0]) || truth(s[1])) : IValue(integer(s[0]) | integer(s[1])));
       }},
      {"_operator.neg",
       [](Stack& s) { unary(s, [](const IValue& a) { return is_real(a) ? IValue(-real(a)) : IValue(-integer(a)); }); }},
      {"_operator.pos", [](Stack& s) { unary(s, [](const IValue& a) { return a; }); }},
      {"math.trunc", [](Stack& s) { unary(s, [](const IValue& a) { return rounded(std::trunc(real(a))); }); }},
      {"math.floor", [](Stack& s) { unary(s, [](const IValue& a) { return rounded(std::floor(real(a))); }); }},
      {"math.ceil", [](Stack& s) { unary(s, [](const IValue& a) { return rounded(std::ceil(real(a))); }); }},
      // Python rounds halves to even, as nearbyint does in the default rounding mode.
      {"builtins.round", [](Stack& s) { unary(s, [](const IValue& a) { return rounded(std::nearbyint(real(a))); }); }},
      {"torch.sym_int", [](Stack& s) { unary(s, [](const IValue& a) { return rounded(std::trunc(real(a))); }); }},
      {"torch.sym_float", [](Stack& s) { unary(s, [](const IValue& a) { return real(a); }); }},
      {"torch.sym_not", [](Stack& s) { unary(s, [](const IValue& a) { return !truth(a); }); }},
      {"torch.sym_max", [](Stack& s) { both(s, [](auto a, auto b) { return a > b ? a : b; }); }},
      {"torch.sym_min", [](Stack& s) { both(s, [](auto a, auto b) { return a < b ? a : b; }); }},
      {"torch.sym_ite",
       [](Stack& s) {
         TORCH_CHECK(s.size() == 3);
         const IValue result = truth(s[0]) ? s[1] : s[2];
         s.assign(1, result);
       }},
  };
  return all;
}

void square_root(Stack& stack) {
  unary(stack, [](const IValue& a) { return std::sqrt(real(a)); });
}

}  // namespace

Function symbolic_function(const std::string& target) {
  if (target == "torch.sym_sqrt" || target == "torch._sym_sqrt" || target == "math.sqrt") return square_root;
  const auto found = functions().find(target);
  return found == functions().end() ? nullptr : found->second;
}

}  // namespace sinew::model
