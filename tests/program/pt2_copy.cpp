// `pt2_copy IN OUT` copies the program IN to OUT with every floating-point parameter negated, and prints the names of
// the user inputs and outputs. pt2_check.py checks the result with torch.
#include <cstdio>
#include <deque>

#include "base/error.h"
#include "program/program.h"

namespace {

using namespace sinew;
using namespace sinew::program;

bool is_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

// Flips the sign bit, which is exact in every format.
void negate(Array& array) {
  const size_t width = size_of(array.dtype);
  auto* bytes = array.bytes.data();
  for (size_t i = 0; i < static_cast<size_t>(array.count()); ++i) bytes[i * width + width - 1] ^= std::byte{0x80};
}

void copy(const char* from, const char* to) {
  const Program program = read_program(from);
  std::deque<Array> arrays;
  std::vector<Replacement> replacements;
  for (const auto& [name, stored] : program.weights) {
    Array array = read_tensor(program, stored);
    if (!stored.is_parameter || !is_float(array.dtype)) continue;
    negate(array);
    arrays.push_back(std::move(array));
    replacements.push_back({name, &arrays.back()});
  }
  for (const auto& [name, stored] : program.constants) read_tensor(program, stored);
  write_program(program, replacements, to);
  for (const InputSpec& input : program.inputs) {
    if (input.kind == InputSpec::Kind::user || input.kind == InputSpec::Kind::user_constant)
      std::printf("input %s\n", input.name.c_str());
  }
  for (const OutputSpec& output : program.outputs) {
    if (output.kind == OutputSpec::Kind::user) std::printf("output %s\n", output.name.c_str());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: pt2_copy IN OUT\n");
    return 2;
  }
  try {
    copy(arguments[1], arguments[2]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n%s\n", error.what(), error.hint.c_str());
    return 1;
  }
  return 0;
}
