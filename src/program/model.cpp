// models/model.json as a whole: its version, the graph, the signature, ranges of symbols.
#include <limits>

#include "program/archive.h"
#include "program/signature.h"

namespace sinew::program {
namespace {

constexpr int64_t kMajor = 8, kMinor = 20;  // torch 2.13

std::array<int64_t, 2> read_version(const Spot& root) {
  const Spot version = root.get("schema_version");
  const Spot major = version.get("major"), minor = version.get("minor");
  if (major.integer() != kMajor) {
    const bool newer = major.integer() > kMajor;
    major.refuse("is schema " + std::to_string(major.integer()) + "; Sinew reads schema " + std::to_string(kMajor) +
                     (newer ? ", which is older" : ", which is newer"),
                 newer ? "export the model with torch 2.13, or use a Sinew that reads this schema"
                       : "export the model again, with torch 2.13");
  }
  return {major.integer(), minor.integer(0, std::numeric_limits<int32_t>::max())};
}

std::map<std::string, Range> read_ranges(const Spot& spot) {
  std::map<std::string, Range> ranges;
  for (const JsonMember& member : spot.object()) {
    const Spot entry = spot.of(member.value);
    entry.allow({"min_val", "max_val"});
    Range range;
    if (const auto least = entry.find("min_val")) range.least = least->integer();
    if (const auto most = entry.find("max_val")) range.most = most->integer();
    if (range.least && range.most && *range.least > *range.most) entry.refuse("is a range from more to less");
    ranges.emplace(member.name, range);
  }
  return ranges;
}

}  // namespace

Document parse_model(std::string_view text, const std::string& place) {
  Document document = parse_json(text, place);
  document.younger = read_version(Spot(document))[1] > kMinor;
  return document;
}

void read_model(const Document& document, Program& program) {
  const Spot root(document);
  program.schema_version = read_version(root);
  root.allow({"graph_module", "opset_version", "range_constraints", "schema_version", "verifiers", "torch_version",
              "guards_code"});
  const Spot module = root.get("graph_module");
  module.allow({"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"});
  if (const auto version = root.find("torch_version")) program.torch_version = version->text();
  program.ranges = read_ranges(root.get("range_constraints"));
  Symbols symbols;
  GraphReader reader(symbols);
  program.graph = reader.read(module.get("graph"));
  read_signature(module, reader, program);
}

}  // namespace sinew::program
