#include "program/signature.h"

#include <set>

#include "program/archive.h"
#include "program/pytree.h"

namespace sinew::program {
namespace {

using Input = InputSpec::Kind;
using Output = OutputSpec::Kind;

class SignatureReader {
 public:
  SignatureReader(const Spot& module, GraphReader& reader, Program& program)
      : module_(module), reader_(reader), program_(program) {}

  void read() {
    const Spot signature = module_.get("signature");
    signature.allow({"input_specs", "output_specs"});
    read_inputs(signature.get("input_specs"));
    read_outputs(signature.get("output_specs"));
    name_leaves();
    resolve_input_mutations();
  }

 private:
  // Spec and graph say the inputs twice; they must say the same.
  void read_inputs(const Spot& specs) {
    const auto& inputs = program_.graph.inputs;
    size_t next = 0;
    for (const Json& json : specs.array()) {
      const Spot spec = specs.of(json);
      InputSpec input = read_input(spec);
      if (input.kind != Input::user_constant) {
        if (next == inputs.size() || inputs[next] != input.value) spec.refuse("is not the graph's input of that place");
        ++next;
      }
      if (input.kind == Input::parameter || input.kind == Input::buffer || input.kind == Input::constant) {
        if (!names_.insert(input.name).second) spec.refuse("names " + shown(input.name) + " a second time");
      }
      program_.inputs.push_back(std::move(input));
    }
    if (next != inputs.size()) {
      specs.refuse("has " + std::to_string(next) + " values for the graph's " + std::to_string(inputs.size()) +
                   " inputs");
    }
  }

  InputSpec read_input(const Spot& spec) {
    const auto [kind, value] = spec.only();
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
        value.refuse("is no tensor and no symbolic integer");
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

  Argument read_constant(const Spot& spot) {
    const auto [kind, value] = spot.only();
    if (kind != "as_none" && kind != "as_int" && kind != "as_float" && kind != "as_string" && kind != "as_bool")
      spot.refuse("is " + shown(kind) + ", which no constant can be");
    return reader_.argument(spot);
  }

  // Of a spec whose arg is {"name": a tensor}.
  ValueId value_of(const Spot& spec) {
    const Spot arg = spec.get("arg");
    arg.allow({"name"});
    const ValueId id = reader_.value_of(arg.get("name"));
    if (program_.graph.values[static_cast<size_t>(id)].kind != ValueKind::tensor) arg.refuse("is not a tensor");
    return id;
  }

  [[noreturn]] static void refuse_kind(const Spot& spec, std::string_view kind, const std::string& what) {
    if (kind == "custom_obj")
      spec.refuse("is an object of a custom class",
                  "only tensors and numbers can be run; keep script objects out of the exported model");
    if (kind == "token")
      spec.refuse("is an effect token", "keep operators with side effects, such as printing, out of the model");
    if (kind == "gradient_to_parameter" || kind == "gradient_to_user_input")
      spec.refuse("is a gradient: the graph has its backward pass in it",
                  "export the model alone, with torch.export.export; Sinew makes the gradients");
    spec.refuse("is " + shown(kind) + ", a kind of " + what + " that schema 8 does not have");
  }

  void read_outputs(const Spot& specs) {
    const auto& outputs = program_.graph.outputs;
    if (specs.array().size() != outputs.size()) {
      specs.refuse("has " + std::to_string(specs.array().size()) + " entries for the graph's " +
                   std::to_string(outputs.size()) + " outputs");
    }
    for (const Json& json : specs.array()) {
      const Spot spec = specs.of(json);
      OutputSpec output = read_output(spec);
      const Argument& made = outputs[program_.outputs.size()];
      const auto* here = std::get_if<ValueRef>(&output.value.value);
      const auto* there = std::get_if<ValueRef>(&made.value);
      if (output.value.value.index() != made.value.index() || (here != nullptr && here->id != there->id))
        spec.refuse("is not the graph's output of that place");
      if (std::holds_alternative<List>(made.value) || std::holds_alternative<Dictionary>(made.value) ||
          std::holds_alternative<std::shared_ptr<const Graph>>(made.value))
        spec.refuse("is a list or a graph; an output is one value");
      program_.outputs.push_back(std::move(output));
    }
  }

  OutputSpec read_output(const Spot& spec) {
    const auto [kind, value] = spec.only();
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

  std::string known(const Spot& name, Input kind) const {
    for (const InputSpec& input : program_.inputs) {
      if (input.kind == kind && input.name == name.text()) return input.name;
    }
    name.refuse("names " + shown(name.text()) + ", which is no " + (kind == Input::buffer ? "buffer" : "parameter") +
                " among the inputs");
  }

  FieldNames field_names() const {
    FieldNames names;
    if (const auto fields = module_.find("treespec_namedtuple_fields")) {
      for (const JsonMember& member : fields->object()) {
        const Spot entry = fields->of(member.value);
        entry.allow({"field_names"});
        const Spot list = entry.get("field_names");
        for (const Json& name : list.array()) names[member.name].push_back(list.of(name).text());
      }
    }
    return names;
  }

  // The call of the whole module, which is the entry without a name.
  Spot root_call() const {
    const Spot calls = module_.get("module_call_graph");
    for (const Json& json : calls.array()) {
      const Spot call = calls.of(json);
      call.allow({"fqn", "signature"});
      if (!call.get("fqn").text().empty()) continue;
      if (const auto signature = call.find("signature")) return *signature;
    }
    calls.refuse("has no signature of the module itself, so its inputs have no names");
  }

  void name_leaves() {
    const FieldNames fields = field_names();
    const Spot call = root_call();
    call.allow({"inputs", "outputs", "in_spec", "out_spec", "forward_arg_names"});
    std::vector<std::string> arguments;
    if (const auto names = call.find("forward_arg_names")) {
      for (const Json& name : names->array()) arguments.push_back(names->of(name).text());
    }
    const Spot in = call.get("in_spec"), out = call.get("out_spec");
    program_.input_tree = read_tree(in, fields);
    program_.output_tree = read_tree(out, fields);
    std::vector<std::string*> wanted;
    for (InputSpec& input : program_.inputs) {
      if (input.kind == Input::user || input.kind == Input::user_constant) wanted.push_back(&input.name);
    }
    give(in, wanted, input_names(in, program_.input_tree, arguments), "input");
    const std::set<std::string> all = [&] {
      std::set<std::string> names;
      for (const std::string* name : wanted) names.insert(*name);
      return names;
    }();
    if (all.size() != wanted.size()) in.refuse("gives two inputs one name");
    wanted.clear();
    for (OutputSpec& output : program_.outputs) {
      if (output.kind == Output::user || output.kind == Output::loss) wanted.push_back(&output.name);
    }
    give(out, wanted, output_names(out, program_.output_tree), "output");
  }

  static void give(const Spot& spot, const std::vector<std::string*>& wanted, std::vector<std::string> names,
                   const std::string& what) {
    if (names.size() != wanted.size()) {
      spot.refuse("has " + std::to_string(names.size()) + " leaves for " + std::to_string(wanted.size()) +
                  " values of the user's " + what);
    }
    for (size_t i = 0; i < names.size(); ++i) *wanted[i] = std::move(names[i]);
  }

  // The file says the graph's own name of the input; the user knows it by another.
  void resolve_input_mutations() {
    for (const auto& [place, name] : mutated_inputs_) {
      const ValueId id = reader_.value_of(name);
      const InputSpec* found = nullptr;
      for (const InputSpec& input : program_.inputs) {
        if (input.kind == Input::user && input.value == id) found = &input;
      }
      if (found == nullptr) name.refuse("names " + shown(name.text()) + ", which is no input of the user's");
      program_.outputs[place].name = found->name;
    }
  }

  const Spot module_;
  GraphReader& reader_;
  Program& program_;
  std::set<std::string> names_;
  std::vector<std::pair<size_t, Spot>> mutated_inputs_;
};

}  // namespace

void read_signature(const Spot& graph_module, GraphReader& reader, Program& program) {
  SignatureReader(graph_module, reader, program).read();
}

}  // namespace sinew::program
