// Shows the contents of a .pt2 file.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "base/joined.h"
#include "base/printable.h"
#include "cli/inspect.h"
#include "program/program.h"

namespace sinew::cli {
namespace {

// "1.53 G"
std::string scaled(double number) {
  const char* units[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(units); ++unit) number /= 1000;
  char text[40];
  std::snprintf(text, sizeof text, "%.3g%s", number, units[unit]);
  return text;
}

// "float32 [s77, 1, 28, 28]"
std::string shape_text(const program::TensorMeta& meta) {
  std::string text = std::string(name_of(meta.dtype)) + " [";
  for (const program::Dim& dim : meta.sizes) {
    if (&dim != &meta.sizes.front()) text += ", ";
    text += dim.fixed ? std::to_string(*dim.fixed) : dim.symbol.empty() ? "computed" : dim.symbol;
  }
  return text + "]";
}

std::string value_text(const program::Program& program, const program::Argument& argument) {
  const auto* ref = std::get_if<program::ValueRef>(&argument.value);
  if (!ref) return "not a tensor";
  const program::Value& value = program.graph.values.at(static_cast<size_t>(ref->id));
  return value.meta ? shape_text(*value.meta) : "a number";
}

void show_inputs_and_outputs(const program::Program& program) {
  using Input = program::InputSpec::Kind;
  using Output = program::OutputSpec::Kind;
  for (const program::InputSpec& input : program.inputs) {
    if (input.kind == Input::user) line("input", input.name, value_text(program, {program::ValueRef{input.value}}));
    if (input.kind == Input::user_constant) line("input", input.name, "fixed when it was exported");
  }
  for (const program::OutputSpec& output : program.outputs) {
    if (output.kind == Output::user || output.kind == Output::loss)
      line("output", output.name.empty() ? "-" : output.name, value_text(program, output.value));
    if (output.kind == Output::buffer_mutation) line("updates", output.name, "at the end of each training step");
  }
  for (const auto& [symbol, range] : program.ranges) {
    const auto bound = [](const std::optional<int64_t>& value, const char* none) {
      return value ? std::to_string(*value) : std::string(none);
    };
    line("size", symbol, bound(range.min, "any") + " to " + bound(range.max, "any"));
  }
}

void show_weights(const program::Program& program) {
  int64_t parameters = 0, numbers = 0, frozen = 0, buffers = 0;
  std::set<std::pair<std::string, int64_t>> places;
  for (const program::InputSpec& input : program.inputs) {
    if (input.kind == program::InputSpec::Kind::buffer) ++buffers;
    if (input.kind != program::InputSpec::Kind::parameter) continue;
    const auto& meta = program.graph.values.at(static_cast<size_t>(input.value)).meta;
    const program::StoredTensor& stored = program.weights.at(input.name);
    if (!places.emplace(stored.member, stored.offset).second) continue;  // tied weights: one parameter under two names
    ++parameters;
    if (meta && !meta->requires_grad) ++frozen;
    numbers += element_count(stored.sizes);
  }
  line("parameters", std::to_string(parameters),
       grouped(numbers) + " numbers" + (frozen > 0 ? ", " + std::to_string(frozen) + " of them frozen" : ""));
  line("buffers", std::to_string(buffers), "");
}

void count(const program::Graph& graph, std::map<std::string, int64_t>& counts) {
  for (const program::Node& node : graph.nodes) {
    ++counts[node.target];
    for (const program::NamedArgument& input : node.inputs) {
      if (const auto* body = std::get_if<std::shared_ptr<const program::Graph>>(&input.value.value))
        count(**body, counts);
    }
  }
}

void show_operators(const program::Program& program) {
  std::map<std::string, int64_t> counts;
  count(program.graph, counts);
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [name, times] : counts) sorted.emplace_back(-times, name);
  std::ranges::sort(sorted);
  for (const auto& [times, name] : sorted)
    line("operator", name.starts_with("torch.ops.") ? name.substr(10) : name, "x" + std::to_string(-times));
}

void show_flops(const program::Program& program) {
  const program::Flops flops = program::flops_of(program);
  const std::string ones = joined(flops.symbols, ", ");
  line("flops", scaled(flops.total),
       "forward" + (ones.empty() ? "" : ", with " + ones + " = 1") + "; training takes about three times that");
  for (const auto& [name, amount] : flops.by_operator) line("flops", name, scaled(amount));
  for (const auto& [name, times] : flops.not_counted)
    line("flops", name, "x" + std::to_string(times) + " not counted: the file does not say their shapes");
}

}  // namespace

void show_program(const std::string& path) {
  const program::Program program = program::read_program(path);
  std::printf("%s: a program of torch.export, torch %s, schema %lld.%lld\n", path.c_str(),
              printable(program.torch_version).c_str(), static_cast<long long>(program.schema_version[0]),
              static_cast<long long>(program.schema_version[1]));
  show_inputs_and_outputs(program);
  show_weights(program);
  show_operators(program);
  show_flops(program);
  std::fflush(stdout);
}

}  // namespace sinew::cli
