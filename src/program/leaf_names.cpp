// Names the inputs and outputs of a program as its user does, by the arguments and the result of forward().
#include <set>

#include "program/archive.h"
#include "program/pytree.h"
#include "program/signature.h"

namespace sinew::program {
namespace {

using Input = InputSpec::Kind;
using Output = OutputSpec::Kind;

FieldNames field_names(const JsonView& module) {
  FieldNames names;
  if (const auto fields = module.find("treespec_namedtuple_fields")) {
    for (const JsonMember& member : fields->object()) {
      const JsonView entry = fields->of(member.value);
      entry.allow({"field_names"});
      const JsonView list = entry.get("field_names");
      for (const Json& name : list.array()) names[member.name].push_back(list.of(name).text());
    }
  }
  return names;
}

// Returns the signature of the root module. In the file, that is the entry without a name.
JsonView root_call(const JsonView& module) {
  const JsonView calls = module.get("module_call_graph");
  for (const Json& json : calls.array()) {
    const JsonView call = calls.of(json);
    call.allow({"fqn", "signature"});
    if (!call.get("fqn").text().empty()) continue;
    if (const auto signature = call.find("signature")) return *signature;
  }
  calls.refuse("PROGRAM_BAD_SCHEMA", "has no signature of the root module, so its inputs have no names");
}

void assign(const std::vector<std::string*>& wanted, std::vector<std::string> names) {
  for (size_t i = 0; i < names.size(); ++i) *wanted[i] = std::move(names[i]);
}

}  // namespace

void name_leaves(const JsonView& graph_module, Program& program) {
  const FieldNames fields = field_names(graph_module);
  const JsonView call = root_call(graph_module);
  call.allow({"inputs", "outputs", "in_spec", "out_spec", "forward_arg_names"});
  std::vector<std::string> arguments;
  if (const auto names = call.find("forward_arg_names")) {
    for (const Json& name : names->array()) arguments.push_back(names->of(name).text());
  }
  const JsonView in = call.get("in_spec"), out = call.get("out_spec");
  program.input_tree = read_tree(in, fields);
  program.output_tree = read_tree(out, fields);
  std::vector<std::string*> wanted;
  for (InputSpec& input : program.inputs) {
    if (input.kind == Input::user || input.kind == Input::user_constant) wanted.push_back(&input.name);
  }
  assign(wanted, input_names(in, program.input_tree, arguments, wanted.size()));
  std::set<std::string_view> seen;
  for (const std::string* name : wanted) {
    if (!seen.insert(*name).second) in.refuse("PROGRAM_BAD_GRAPH", "gives two inputs the name " + in_quotes(*name));
  }
  wanted.clear();
  for (OutputSpec& output : program.outputs) {
    if (output.kind == Output::user || output.kind == Output::loss) wanted.push_back(&output.name);
  }
  assign(wanted, output_names(out, program.output_tree, wanted.size()));
}

}  // namespace sinew::program
