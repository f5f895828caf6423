// Fuzzes models/model.json. There must be no crash and no hang, and memory must stay in proportion to the input. In an
// accepted program, every argument names a value that an input or an earlier node makes. An input that does not begin
// with '{' is a list of changes (offset, number of bytes to remove, byte to insert) to a good model. So even an empty
// corpus reaches the code behind the first checks.
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "program/sample_model.h"
#include "program/signature.h"

namespace sinew::program {
namespace {

class Walker {
 public:
  explicit Walker(const Graph& graph) : graph_(graph), made_(graph.values.size()) {}

  void walk() {
    for (const ValueId id : graph_.inputs) {
      if (id >= 0) make(id);
    }
    for (const Node& node : graph_.nodes) {
      for (const NamedArgument& input : node.inputs) use(input.value);
      for (const Argument& output : node.outputs) make_all(output);
    }
    for (const Argument& output : graph_.outputs) use(output);
  }

 private:
  void make(ValueId id) {
    SINEW_CHECK(id >= 0 && static_cast<size_t>(id) < made_.size() && !made_[static_cast<size_t>(id)]);
    made_[static_cast<size_t>(id)] = true;
  }
  void make_all(const Argument& output) {
    if (const auto* ref = std::get_if<ValueRef>(&output.value)) make(ref->id);
    if (const auto* list = std::get_if<List>(&output.value)) {
      for (const Argument& item : list->items) make_all(item);
    }
  }
  void use(const Argument& argument) {
    if (const auto* ref = std::get_if<ValueRef>(&argument.value))
      SINEW_CHECK(ref->id >= 0 && static_cast<size_t>(ref->id) < made_.size() && made_[static_cast<size_t>(ref->id)]);
    if (const auto* list = std::get_if<List>(&argument.value)) {
      for (const Argument& item : list->items) use(item);
    }
    if (const auto* dictionary = std::get_if<Dictionary>(&argument.value)) {
      for (const auto& [name, item] : dictionary->items) use(item);
    }
    if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&argument.value)) Walker(**body).walk();
  }

  const Graph& graph_;
  std::vector<bool> made_;
};

std::string model_of(const uint8_t* data, size_t size) {
  static const std::string good = Sample().model.dump();
  if (size == 0 || data[0] == '{') return {reinterpret_cast<const char*>(data), size};
  std::string text = good;
  for (size_t at = 0; at + 4 <= size; at += 4) {
    const size_t offset = static_cast<size_t>(data[at] | data[at + 1] << 8) % text.size();
    text.replace(offset, data[at + 2] % 8, 1, static_cast<char>(data[at + 3]));
  }
  return text;
}

}  // namespace
}  // namespace sinew::program

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::program;
  try {
    const Document document = parse_model(model_of(data, size), "f.pt2: models/model.json");
    Program program;
    read_model(document, program);
    Walker(program.graph).walk();
    size_t next = 0;
    for (const InputSpec& input : program.inputs) {
      if (input.kind != InputSpec::Kind::user_constant) SINEW_CHECK(input.value == program.graph.inputs[next++]);
    }
    SINEW_CHECK(next == program.graph.inputs.size() && program.outputs.size() == program.graph.outputs.size());
  } catch (const Error& error) {
    SINEW_CHECK(*error.what() != '\0' && !error.hint.empty());
  }
  return 0;
}
