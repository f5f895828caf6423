#include "program/signature.h"

#include <map>

#include "program/archive.h"

namespace sinew::program {
namespace {

using Input = InputSpec::Kind;
using Output = OutputSpec::Kind;

class SignatureReader {
 public:
  SignatureReader(const JsonView& module, GraphReader& reader, Program& program)
      : module_(module), reader_(reader), program_(program) {}

  void read() {
    const JsonView signature = module_.get("signature");
    signature.allow({"input_specs", "output_specs"});
    read_inputs(signature.get("input_specs"));
    read_outputs(signature.get("output_specs"));
    name_leaves(module_, program_);
    resolve_input_mutations();
  }

 private:
  // Both the specs and the graph list the inputs, so the two lists must agree.
  void read_inputs(const JsonView& specs) {
    const auto& inputs = program_.graph.inputs;
    size_t next = 0;
    for (const Json& json : specs.array()) {
      const JsonView spec = specs.of(json);
      InputSpec input = read_input(spec);
      if (input.kind != Input::user_constant) {
        if (next == inputs.size() || inputs[next] != input.value) {
          spec.refuse("PROGRAM_BAD_GRAPH", "is not the graph's input at this position");
        }
        ++next;
      }
      if (input.kind == Input::user) {
        users_.emplace(input.value, program_.inputs.size());
      } else if (input.kind != Input::user_constant && !names_.emplace(input.name, input.kind).second) {
        spec.refuse("PROGRAM_BAD_GRAPH", "names " + in_quotes(input.name) + " a second time");
      }
      program_.inputs.push_back(std::move(input));
    }
    if (next != inputs.size()) {
      specs.refuse("PROGRAM_BAD_GRAPH", "has " + std::to_string(next) + " values for the graph's " +
                                            std::to_string(inputs.size()) + " inputs");
    }
  }

  InputSpec read_input(const JsonView& spec) {
    const auto [kind, value] = spec.single_member();
    InputSpec input;
    if (kind == "parameter") {
      value.allow({"arg", "parameter_name"});
      input.kind = Input::parameter;
      input.name = value.get("parameter_name").text();
    } else if (kind == "buffer") {
      value.allow({"arg", "buffer_name", "persistent"});
      input.kind = Input::buffer;
      input.name = value.get("buffer_name").text();
      input.persistent = value.get("persistent").boolean();
    } else if (kind == "tensor_constant") {
      value.allow({"arg", "tensor_constant_name"});
      input.kind = Input::constant;
      input.name = value.get("tensor_constant_name").text();
    } else if (kind == "user_input") {
      value.allow({"arg"});
      const Argument argument = reader_.argument(value.get("arg"));
      if (const auto* ref = std::get_if<ValueRef>(&argument.value))
        input.value = ref->id;
      else
        value.refuse("PROGRAM_BAD_GRAPH", "is neither a tensor nor a symbolic integer");
      return input;
    } else if (kind == "constant_input") {
      value.allow({"name", "value"});
      value.get("name").text();
      input.kind = Input::user_constant;
      input.constant = read_constant(value.get("value"));
      return input;
    } else {
      refuse_kind(spec, kind, "input");
    }
    input.value = value_of(value);
    return input;
  }

  Argument read_constant(const JsonView& view) {
    const auto [kind, value] = view.single_member();
    if (kind != "as_none" && kind != "as_int" && kind != "as_float" && kind != "as_string" && kind != "as_bool")
      view.refuse("PROGRAM_BAD_SCHEMA", "is " + in_quotes(kind) + ", which cannot be a constant");
    return reader_.argument(view);
  }

  // Returns the value of a spec that has the form {"arg": {"name": a tensor}}.
  ValueId value_of(const JsonView& spec) {
    const JsonView arg = spec.get("arg");
    arg.allow({"name"});
    const ValueId id = reader_.value_of(arg.get("name"));
    if (program_.graph.values[static_cast<size_t>(id)].kind != ValueKind::tensor) {
      arg.refuse("PROGRAM_BAD_GRAPH", "is not a tensor");
    }
    return id;
  }

  [[noreturn]] static void refuse_kind(const JsonView& spec, std::string_view kind, const std::string& what) {
    if (kind == "custom_obj") spec.refuse("PROGRAM_UNSUPPORTED", "is an object of a custom class", kCustomClassHint);
    if (kind == "token") {
      spec.refuse("PROGRAM_UNSUPPORTED", "is an effect token",
                  "keep operators with side effects, such as printing, out of the model");
    }
    if (kind == "gradient_to_parameter" || kind == "gradient_to_user_input") {
      spec.refuse("PROGRAM_UNSUPPORTED", "is a gradient: the graph includes the backward pass",
                  "export the model alone, with torch.export.export; Sinew computes the gradients");
    }
    spec.refuse("PROGRAM_BAD_SCHEMA", "is " + in_quotes(kind) + ", a kind of " + what + " that schema 8 does not have");
  }

  void read_outputs(const JsonView& specs) {
    const auto& outputs = program_.graph.outputs;
    if (specs.array().size() != outputs.size()) {
      specs.refuse("PROGRAM_BAD_GRAPH", "has " + std::to_string(specs.array().size()) + " entries for the graph's " +
                                            std::to_string(outputs.size()) + " outputs");
    }
    for (const Json& json : specs.array()) {
      const JsonView spec = specs.of(json);
      OutputSpec output = read_output(spec);
      const Argument& made = outputs[program_.outputs.size()];
      const auto* here = std::get_if<ValueRef>(&output.value.value);
      const auto* there = std::get_if<ValueRef>(&made.value);
      if (output.value.value.index() != made.value.index() || (here != nullptr && here->id != there->id))
        spec.refuse("PROGRAM_BAD_GRAPH", "is not the graph's output at this position");
      if (std::holds_alternative<List>(made.value) || std::holds_alternative<Dictionary>(made.value) ||
          std::holds_alternative<std::shared_ptr<const Graph>>(made.value))
        spec.refuse("PROGRAM_BAD_GRAPH", "is a list or a graph, but an output must be one value");
      program_.outputs.push_back(std::move(output));
    }
  }

  OutputSpec read_output(const JsonView& spec) {
    const auto [kind, value] = spec.single_member();
    OutputSpec output;
    if (kind == "user_output") {
      value.allow({"arg"});
      output.value = reader_.argument(value.get("arg"));
      return output;
    }
    if (kind == "loss_output") {
      value.allow({"arg"});
      output.kind = Output::loss;
    } else if (kind == "buffer_mutation") {
      value.allow({"arg", "buffer_name"});
      output.kind = Output::buffer_mutation;
      output.name = known(value.get("buffer_name"), Input::buffer);
    } else if (kind == "parameter_mutation") {
      value.allow({"arg", "parameter_name"});
      output.kind = Output::parameter_mutation;
      output.name = known(value.get("parameter_name"), Input::parameter);
    } else if (kind == "user_input_mutation") {
      value.allow({"arg", "user_input_name"});
      output.kind = Output::input_mutation;
      mutated_inputs_.emplace_back(program_.outputs.size(), value.get("user_input_name"));
    } else {
      refuse_kind(spec, kind, "output");
    }
    output.value = {ValueRef{value_of(value)}};
    return output;
  }

  std::string known(const JsonView& name, Input kind) const {
    const auto found = names_.find(name.text());
    if (found != names_.end() && found->second == kind) return found->first;
    name.refuse("PROGRAM_BAD_GRAPH", "names " + in_quotes(name.text()) + ", which is not a " +
                                         (kind == Input::buffer ? "buffer" : "parameter") + " among the inputs");
  }

  // The file names the input as the graph does. This function replaces the name by the one that the user knows.
  void resolve_input_mutations() {
    for (const auto& [output, name] : mutated_inputs_) {
      const ValueId id = reader_.value_of(name);
      const auto found = users_.find(id);
      if (found == users_.end()) {
        name.refuse("PROGRAM_BAD_GRAPH", "names " + in_quotes(name.text()) + ", which is not an input of the user");
      }
      program_.outputs[output].name = program_.inputs[found->second].name;
    }
  }

  const JsonView module_;
  GraphReader& reader_;
  Program& program_;
  std::map<std::string, Input> names_;  // the parameters, buffers and constants by name
  std::map<ValueId, size_t> users_;     // index of each input of the user, by its value
  std::vector<std::pair<size_t, JsonView>> mutated_inputs_;
};

}  // namespace

void read_signature(const JsonView& graph_module, GraphReader& reader, Program& program) {
  SignatureReader(graph_module, reader, program).read();
}

}  // namespace sinew::program
