// Reads models/model.json: the schema version, the graph, the signature, and the ranges of symbols.
#include <limits>

#include "program/archive.h"
#include "program/signature.h"

namespace sinew::program {
namespace {

constexpr int64_t kMajor = 8, kMinor = 20;  // torch 2.13

std::array<int64_t, 2> read_version(const JsonView& root) {
  const JsonView version = root.get("schema_version");
  const JsonView major = version.get("major"), minor = version.get("minor");
  if (major.integer() != kMajor) {
    const bool newer = major.integer() > kMajor;
    major.refuse("PROGRAM_UNSUPPORTED_VERSION",
                 "is schema " + std::to_string(major.integer()) + ", but Sinew reads the " +
                     (newer ? "older" : "newer") + " schema " + std::to_string(kMajor),
                 newer ? "export the model with torch 2.13, or use a Sinew that reads this schema"
                       : "export the model again, with torch 2.13");
  }
  return {major.integer(), minor.integer(0, std::numeric_limits<int32_t>::max())};
}

std::map<std::string, SymbolRange> read_ranges(const JsonView& view) {
  std::map<std::string, SymbolRange> ranges;
  for (const JsonMember& member : view.object()) {
    const JsonView entry = view.of(member.value);
    entry.allow({"min_val", "max_val"});
    SymbolRange range;
    if (const auto min = entry.find("min_val")) range.min = min->integer();
    if (const auto max = entry.find("max_val")) range.max = max->integer();
    if (range.min && range.max && *range.min > *range.max) {
      entry.refuse("PROGRAM_BAD_GRAPH", "is a range whose minimum exceeds its maximum");
    }
    ranges.emplace(member.name, range);
  }
  return ranges;
}

}  // namespace

Document parse_model(std::string_view text, const std::string& place) {
  Document document = parse_json(text, place);
  document.newer_schema = read_version(JsonView(document))[1] > kMinor;
  return document;
}

void read_model(const Document& document, Program& program) {
  const JsonView root(document);
  program.schema_version = read_version(root);
  root.allow({"graph_module", "opset_version", "range_constraints", "schema_version", "verifiers", "torch_version",
              "guards_code"});
  const JsonView module = root.get("graph_module");
  module.allow({"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"});
  if (const auto version = root.find("torch_version")) program.torch_version = version->text();
  program.ranges = read_ranges(root.get("range_constraints"));
  Symbols symbols;
  GraphReader reader(symbols);
  program.graph = reader.read(module.get("graph"));
  read_signature(module, reader, program);
}

}  // namespace sinew::program
