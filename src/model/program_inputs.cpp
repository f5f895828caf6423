#include "model/program_inputs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "model/program_plan.h"

namespace sinew::model {
namespace {

using program::Dim;
using program::InputSpec;
using program::Program;
using program::TensorMeta;

std::string shape_text(const std::string& dtype, const std::vector<std::string>& sizes) {
  std::string text = dtype + " [batch";
  for (const std::string& size : sizes) text += ", " + size;
  return text + "]";
}

std::string wanted_text(const TensorMeta& meta) {
  std::vector<std::string> sizes;
  for (size_t i = 1; i < meta.sizes.size(); ++i)
    sizes.push_back(meta.sizes[i].fixed ? std::to_string(*meta.sizes[i].fixed) : "any");
  return shape_text(std::string(name_of(meta.dtype)), sizes);
}

std::string given_text(const Shape& shape, const std::string& dtype) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return shape_text(dtype, sizes);
}

bool fits(const Dim& dim, int64_t size) {
  return !dim.fixed || *dim.fixed == size;
}

bool fits(const TensorMeta& meta, const Shape& sample) {
  if (meta.sizes.size() != sample.size() + 1) return false;
  for (size_t i = 0; i < sample.size(); ++i) {
    if (!fits(meta.sizes[i + 1], sample[i])) return false;
  }
  return true;
}

struct SampleSource {
  Binding::Source source = Binding::Source::input;
  int64_t first = 0, last = 0;
  Shape shape;  // the shape of one sample
  bool whole = false;
  std::string text;
};

std::optional<std::pair<int64_t, int64_t>> range_of(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  int64_t first = 0, last = 0;
  const char* middle = text.data() + colon;
  const char* end = text.data() + text.size();
  const auto a = std::from_chars(text.data(), middle, first), b = std::from_chars(middle + 1, end, last);
  if (a.ptr != middle || b.ptr != end || a.ec != std::errc() || b.ec != std::errc()) return std::nullopt;
  return std::pair(first, last);
}

SampleSource whole_input(const data::DataInfo& data) {
  return {Binding::Source::input, 0, 0, data.input_shape, data.input_dtype == DType::i64, "input"};
}
SampleSource whole_target(const data::DataInfo& data) {
  return {Binding::Source::target, 0, 0, data.target_shape, data.task != data::Task::regression, "target"};
}

SampleSource source_of(const std::string& text, const data::DataInfo& data) {
  if (text == "input") return whole_input(data);
  if (text == "target") return whole_target(data);
  const auto column = std::ranges::find(data.input_names, text);
  const auto place = column - data.input_names.begin();
  const auto range =
      column != data.input_names.end() ? std::optional(std::pair<int64_t, int64_t>(place, place + 1)) : range_of(text);
  const int64_t columns = data.input_shape.size() == 1 ? data.input_shape[0] : 0;
  if (!range)
    throw Error("MODEL_INPUTS_INVALID", "model.inputs names '" + text + "', which is no column of the data",
                "use input, target, columns as first:last" +
                    (data.input_names.empty()
                         ? ""
                         : ", or one of: " + data.input_names.front() + " ... " + data.input_names.back()));
  if (range->first < 0 || range->first >= range->second || range->second > columns)
    throw Error("MODEL_INPUTS_INVALID",
                "model.inputs names columns " + text + ", but a sample has " + std::to_string(columns),
                "give first:last, counted from 0, without the last");
  return {Binding::Source::columns, range->first, range->second, {range->second - range->first}, false, text};
}

bool is_whole(program::ScalarType type) {
  return type == program::ScalarType::i64 || type == program::ScalarType::i32;
}
bool is_real(program::ScalarType type) {
  return type == program::ScalarType::f32 || type == program::ScalarType::f64;
}

// Checks that the data fits what the program expects of an input, and binds the two.
Binding bind(const Program& program, const InputSpec& spec, const SampleSource& given) {
  if (const auto none = batching_problem(program, spec)) throw Error(*none);
  const auto& meta = program.graph.values.at(static_cast<size_t>(spec.value)).meta;
  const bool one = given.source == Binding::Source::columns && given.shape[0] == 1 && meta->sizes.size() == 1;
  const std::string has = given_text(given.shape, given.whole ? "int64" : "float32");
  if (!one && !fits(*meta, given.shape))
    throw Error("MODEL_INPUT_MISMATCH",
                program.path + ": input " + spec.name + " takes " + wanted_text(*meta) + ", but '" + given.text +
                    "' of the data is " + has,
                "choose other data in model.inputs, or export the model for this data");
  const bool image = given.source == Binding::Source::input && !given.whole;
  if (is_whole(meta->dtype) && image && given.shape.size() != 1)
    throw Error("MODEL_INPUT_MISMATCH",
                program.path + ": input " + spec.name + " takes " + wanted_text(*meta) + ", but '" + given.text +
                    "' of the data is " + has,
                "export the model for " + std::string(given.whole ? "int64" : "float32") + " inputs");
  Binding binding;
  binding.name = spec.name;
  binding.source = given.source;
  binding.first = given.first;
  binding.last = given.last;
  binding.one_value = one;
  binding.dtype = scalar_type(meta->dtype);
  binding.of = given.text;
  if (!one) binding.sample = given.shape;
  return binding;
}

std::string known_names(const std::vector<std::string>& names) {
  std::string text = "its inputs are ";
  for (const std::string& name : names) text += (&name == &names.front() ? "" : ", ") + name;
  return text;
}

std::map<std::string, SampleSource> sources(const std::string& file, const std::vector<std::string>& names,
                                            const std::vector<std::string>& wanted, const data::DataInfo& data) {
  std::map<std::string, SampleSource> given;
  for (const std::string& item : wanted) {
    const size_t at = item.find('=');
    SINEW_CHECK(at != std::string::npos, item);  // spec/ has checked it
    const std::string name = item.substr(0, at);
    if (std::ranges::find(names, name) == names.end())
      throw Error("MODEL_INPUTS_INVALID", "model.inputs names '" + name + "', which is no input of " + file,
                  known_names(names));
    if (!given.emplace(name, source_of(item.substr(at + 1), data)).second)
      throw Error("MODEL_INPUTS_INVALID", "model.inputs names '" + name + "' twice", known_names(names));
  }
  if (!wanted.empty()) return given;
  for (size_t i = 0; i < names.size() && i < 2; ++i)
    given.emplace(names[i], i == 0 ? whole_input(data) : whole_target(data));
  return given;
}

// Returns nullptr if the first output is no value of the graph.
const program::Value* first_value(const Program& program) {
  const size_t first = first_output(program);
  if (first == program.outputs.size()) return nullptr;
  const auto* ref = std::get_if<program::ValueRef>(&program.outputs[first].value.value);
  return ref ? &program.graph.values.at(static_cast<size_t>(ref->id)) : nullptr;
}

[[noreturn]] void missing_source(const std::string& file, const std::string& name,
                                 const std::vector<std::string>& names) {
  throw Error("MODEL_INPUTS_INVALID", file + ": input " + name + " has no source",
              "set model.inputs: ['" + name + "=...', ...]; " + known_names(names));
}

}  // namespace

std::optional<Error> batching_problem(const Program& program, const InputSpec& spec) {
  const auto& meta = program.graph.values.at(static_cast<size_t>(spec.value)).meta;
  const std::string input = program.path + ": input " + spec.name;
  if (!meta) return Error("MODEL_NOT_BATCHED", input + " has no shape in the file", "export the model again");
  if (meta->sizes.empty())
    return Error("MODEL_NOT_BATCHED", input + " is one number, not a batch", "give it a batch dimension");
  if (meta->sizes[0].fixed)
    return Error("MODEL_NOT_BATCHED",
                 input + " was exported for batches of exactly " + std::to_string(*meta->sizes[0].fixed),
                 "export it with dynamic_shapes={'" + spec.name + "': {0: torch.export.Dim('batch')}}");
  if (!is_whole(meta->dtype) && !is_real(meta->dtype))
    return Error("MODEL_INPUT_MISMATCH", input + " takes " + wanted_text(*meta) + ", but data is float32 or int64",
                 "export the model for float32 or int64 inputs, and convert them in forward");
  return std::nullopt;
}

std::vector<Binding> bind_inputs(const Program& program, const std::vector<std::string>& wanted,
                                 const data::DataInfo& data) {
  std::vector<const InputSpec*> users;
  std::vector<std::string> names;
  for (const InputSpec& spec : program.inputs) {
    if (spec.kind != InputSpec::Kind::user) continue;
    users.push_back(&spec);
    names.push_back(spec.name);
  }
  const std::map<std::string, SampleSource> given = sources(program.path, names, wanted, data);
  std::vector<Binding> bindings;
  for (const InputSpec* user : users) {
    const auto found = given.find(user->name);
    if (found == given.end()) missing_source(program.path, user->name, names);
    bindings.push_back(bind(program, *user, found->second));
  }
  if (const std::string problem = program::InputSizes(program).problem(shapes_of(bindings, -1)); !problem.empty())
    throw Error("MODEL_INPUT_MISMATCH", program.path + ": " + problem,
                "choose other data in model.inputs, or export the model for these sizes (dynamic_shapes)");
  return bindings;
}

std::vector<Shape> shapes_of(const std::vector<Binding>& bindings, int64_t samples) {
  std::vector<Shape> shapes;
  for (const Binding& binding : bindings) {
    shapes.push_back({samples});
    shapes.back().insert(shapes.back().end(), binding.sample.begin(), binding.sample.end());
  }
  return shapes;
}

std::vector<Binding> bind_names(const std::string& file, const std::vector<std::string>& names,
                                const std::vector<std::string>& optional, const std::vector<std::string>& wanted,
                                const data::DataInfo& data) {
  std::vector<std::string> known = names;
  known.insert(known.end(), optional.begin(), optional.end());
  const std::map<std::string, SampleSource> given = sources(file, wanted.empty() ? names : known, wanted, data);
  std::vector<Binding> bindings;
  for (const std::string& name : known) {
    const auto found = given.find(name);
    if (found == given.end() && std::ranges::find(optional, name) != optional.end()) continue;
    if (found == given.end()) missing_source(file, name, known);
    const SampleSource& source = found->second;
    bindings.push_back(
        {name, source.source, source.first, source.last, false, source.whole ? at::kLong : at::kFloat, source.text});
  }
  return bindings;
}

size_t first_output(const Program& program) {
  const auto first = std::ranges::find_if(program.outputs, [](const program::OutputSpec& spec) {
    return spec.kind == program::OutputSpec::Kind::user || spec.kind == program::OutputSpec::Kind::loss;
  });
  return static_cast<size_t>(first - program.outputs.begin());
}

std::optional<Error> output_problem(const Program& program) {
  const program::Value* value = first_value(program);
  if (!value || value->kind != program::ValueKind::tensor || !value->meta)
    return Error("MODEL_OUTPUT_MISMATCH", program.path + ": its first output is not a tensor",
                 "return the prediction, or the loss, first");
  using program::ScalarType;
  const ScalarType type = value->meta->dtype;
  if (is_real(type) || type == ScalarType::f16 || type == ScalarType::bf16) return std::nullopt;
  return Error(
      "MODEL_OUTPUT_MISMATCH",
      program.path + ": its first output is " + std::string(name_of(type)) + ", but the loss takes real numbers",
      "return the prediction, or the loss, first, as a float32 tensor");
}

void check_output(const Program& program, const data::DataInfo& data, int64_t outputs) {
  if (const auto problem = output_problem(program)) throw Error(*problem);
  const program::Value* value = first_value(program);
  const std::vector<Dim>& sizes = value->meta->sizes;
  if (outputs == 0) {
    if (sizes.empty()) return;
    throw Error(
        "MODEL_OUTPUT_MISMATCH",
        program.path + ": loss: program needs one number as the first output, but it is " + wanted_text(*value->meta),
        "return the loss first, reduced to one number");
  }
  Shape sample = data.task == data::Task::next_token ? Shape{data.tokens_per_sample} : Shape{};
  sample.push_back(outputs);
  const bool number = outputs == 1 && sizes.size() == 1;  // [batch] is accepted for one number a sample
  if (number || (!sizes.empty() && fits(*value->meta, sample))) return;
  throw Error("MODEL_OUTPUT_MISMATCH",
              program.path + ": its first output is " + (sizes.empty() ? "one number" : wanted_text(*value->meta)) +
                  ", but the loss takes " + given_text(sample, "float32"),
              sizes.empty() ? "set loss: program if the model returns its loss"
                            : "change the model's last layer or the data's classes");
}

torch::Tensor bound(const Binding& binding, const torch::Tensor& input, const torch::Tensor& target) {
  torch::Tensor given = binding.source == Binding::Source::target ? target : input;
  if (!given.defined())
    throw Error("MODEL_NEEDS_TARGET",
                "the program's input " + binding.name + " is the target, but these samples have none",
                "a model that returns its loss can be trained and evaluated, but cannot predict");
  if (binding.source == Binding::Source::columns) given = given.slice(1, binding.first, binding.last);
  if (binding.one_value) given = given.squeeze(1);
  if (given.scalar_type() == binding.dtype) return given;
  const torch::Tensor made = given.to(binding.dtype);
  if (made.is_floating_point()) return made;
  if (!torch::equal(made.to(given.scalar_type()), given))
    throw Error("MODEL_INPUT_MISMATCH",
                "the program's input " + binding.name + " takes whole numbers, but the data has others",
                "normalised columns are not whole numbers: set data.normalize: none");
  // Batches hold float32, which cannot represent every whole number above this one.
  constexpr double kAllDiffer = 1 << 24;
  if (given.is_floating_point() && given.numel() > 0 && given.abs().max().item<double>() >= kAllDiffer)
    throw Error("MODEL_INPUT_MISMATCH",
                "the program's input " + binding.name + " takes whole numbers, but '" + binding.of +
                    "' has numbers of " + std::to_string(1 << 24) + " and more, which float32 cannot tell apart",
                "renumber the values from 0");
  return made;
}

}  // namespace sinew::model
