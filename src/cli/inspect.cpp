// `sinew inspect`: what a model file says of itself, before anything is trained.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "base/disk.h"
#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/worker_process.h"
#include "program/program.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew inspect FILE\n\n"
    "Shows what a model file holds: of a .pt2 (torch.export) its inputs, outputs, parameters, buffers and operators,\n"
    "and whether all of them can be trained here; of a .safetensors file its tensors.\n\n"
    "Exit code 0: it can be trained; 4: it can not, with each reason.\n";

std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
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

void line(const char* what, const std::string& name, const std::string& text) {
  std::printf("%-11s %-24s %s\n", what, name.c_str(), text.c_str());
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
    line("size", symbol, bound(range.least, "any") + " to " + bound(range.most, "any"));
  }
}

void show_weights(const program::Program& program) {
  int64_t parameters = 0, numbers = 0, frozen = 0, buffers = 0;
  std::set<std::pair<std::string, int64_t>> places;
  for (const program::InputSpec& input : program.inputs) {
    if (input.kind == program::InputSpec::Kind::buffer) ++buffers;
    if (input.kind != program::InputSpec::Kind::parameter) continue;
    const auto& meta = program.graph.values.at(static_cast<size_t>(input.value)).meta;
    const program::Stored& stored = program.weights.at(input.name);
    if (!places.emplace(stored.member, stored.offset).second) continue;  // tied: one parameter under two names
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

void show_program(const std::string& path) {
  const program::Program program = program::read_program(path);
  std::printf("%s: a program of torch.export, torch %s, schema %lld.%lld\n", path.c_str(),
              program.torch_version.c_str(), static_cast<long long>(program.schema_version[0]),
              static_cast<long long>(program.schema_version[1]));
  show_inputs_and_outputs(program);
  show_weights(program);
  show_operators(program);
  std::fflush(stdout);
}

void show_safetensors(const std::string& path) {
  const auto file = checkpoint::read_safetensors(system_disk(), path);
  if (!file) throw Error(file.error(), "copy the file again");
  int64_t numbers = 0;
  for (const auto& [name, array] : file->tensors) numbers += array.count();
  std::printf("%s: %zu tensors, %s numbers\n", path.c_str(), file->tensors.size(), grouped(numbers).c_str());
  for (const auto& [name, array] : file->tensors) {
    std::string shape;
    for (const int64_t size : array.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    line(std::string(name_of(array.dtype)).c_str(), name, "[" + shape + "]");
  }
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  if (arguments.size() != 1 || arguments[0].starts_with("-"))
    throw UsageError("inspect takes one file", "sinew inspect net.pt2");
  const std::string& path = arguments[0];
  if (path.ends_with(".safetensors")) {
    show_safetensors(path);
    return kDone;
  }
  if (!path.ends_with(".pt2"))
    throw UsageError(path + " is no model file that this program knows", "a .pt2 of torch.export, or .safetensors");
  show_program(path);
  return become_worker({"inspect", path});
}

}  // namespace sinew::cli
