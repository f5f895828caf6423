// Says in words what a program holds.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "base/joined.h"
#include "program/size_text.h"

namespace sinew::program {
namespace {

// "1.53 G"
std::string scaled_number(double number) {
  const char* units[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(units); ++unit) number /= 1000;
  char text[40];
  std::snprintf(text, sizeof text, "%.3g%s", number, units[unit]);
  return text;
}

// "float32 [s77, 1, 28, 28]"
std::string fact_shape(const TensorMeta& meta) {
  std::string text = std::string(name_of(meta.dtype)) + " [";
  for (const Dim& dim : meta.sizes) {
    if (&dim != &meta.sizes.front()) text += ", ";
    text += size_text(dim);
  }
  return text + "]";
}

std::string fact_value(const Program& program, const Argument& argument) {
  const auto* ref = std::get_if<ValueRef>(&argument.value);
  if (!ref) return "not a tensor";
  const Value& value = program.graph.values.at(static_cast<size_t>(ref->id));
  return value.meta ? fact_shape(*value.meta) : "a number";
}

void add_inputs_and_outputs(const Program& program, std::vector<Fact>& facts) {
  using Input = InputSpec::Kind;
  using Output = OutputSpec::Kind;
  for (const InputSpec& input : program.inputs) {
    if (input.kind == Input::user) facts.push_back({"input", input.name, fact_value(program, {ValueRef{input.value}})});
    if (input.kind == Input::user_constant) facts.push_back({"input", input.name, "fixed when it was exported"});
  }
  for (const OutputSpec& output : program.outputs) {
    if (output.kind == Output::user || output.kind == Output::loss)
      facts.push_back({"output", output.name.empty() ? "-" : output.name, fact_value(program, output.value)});
    if (output.kind == Output::buffer_mutation)
      facts.push_back({"updates", output.name, "at the end of each training step"});
  }
  for (const auto& [symbol, range] : program.ranges) {
    const auto bound = [](const std::optional<int64_t>& value, const char* none) {
      return value ? std::to_string(*value) : std::string(none);
    };
    facts.push_back({"size", symbol, bound(range.min, "any") + " to " + bound(range.max, "any")});
  }
}

void add_weights(const Program& program, std::vector<Fact>& facts) {
  int64_t parameters = 0, numbers = 0, frozen = 0, buffers = 0;
  std::set<std::pair<std::string, int64_t>> places;
  for (const InputSpec& input : program.inputs) {
    if (input.kind == InputSpec::Kind::buffer) ++buffers;
    if (input.kind != InputSpec::Kind::parameter) continue;
    const auto& meta = program.graph.values.at(static_cast<size_t>(input.value)).meta;
    const StoredTensor& stored = program.weights.at(input.name);
    if (!places.emplace(stored.member, stored.offset).second) continue;  // tied weights: one parameter under two names
    ++parameters;
    if (meta && !meta->requires_grad) ++frozen;
    numbers += element_count(stored.sizes);
  }
  facts.push_back(
      {"parameters", std::to_string(parameters),
       grouped_digits(numbers) + " numbers" + (frozen > 0 ? ", " + std::to_string(frozen) + " of them frozen" : "")});
  facts.push_back({"buffers", std::to_string(buffers), ""});
}

void count_operators(const Graph& graph, std::map<std::string, int64_t>& counts) {
  for (const Node& node : graph.nodes) {
    ++counts[node.target];
    for (const NamedArgument& input : node.inputs) {
      if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&input.value.value))
        count_operators(**body, counts);
    }
  }
}

void add_operators(const Program& program, std::vector<Fact>& facts) {
  std::map<std::string, int64_t> counts;
  count_operators(program.graph, counts);
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [name, times] : counts) sorted.emplace_back(-times, name);
  std::ranges::sort(sorted);
  for (const auto& [times, name] : sorted)
    facts.push_back(
        {"operator", name.starts_with("torch.ops.") ? name.substr(10) : name, "x" + std::to_string(-times)});
}

void add_flops(const Program& program, std::vector<Fact>& facts) {
  const Flops flops = flops_of(program);
  const std::string ones = joined(flops.symbols, ", ");
  facts.push_back(
      {"flops", scaled_number(flops.total),
       "forward" + (ones.empty() ? "" : ", with " + ones + " = 1") + "; training takes about three times that"});
  for (const auto& [name, amount] : flops.by_operator) facts.push_back({"flops", name, scaled_number(amount)});
  for (const auto& [name, times] : flops.not_counted)
    facts.push_back({"flops", name, "x" + std::to_string(times) + " not counted: the file does not say their shapes"});
}

}  // namespace

std::vector<Fact> facts_of(const Program& program) {
  std::vector<Fact> facts;
  add_inputs_and_outputs(program, facts);
  add_weights(program, facts);
  add_operators(program, facts);
  add_flops(program, facts);
  return facts;
}

std::string grouped_digits(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

}  // namespace sinew::program
