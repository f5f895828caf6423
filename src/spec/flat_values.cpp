// Turns a job file into a flat list of dotted keys with their values. It uses the parser of job files, which limits the
// work: aliases must not expand a small text to more values than a job file can hold.
#include "spec/spec.h"
#include "spec/tree.h"

namespace sinew::spec {
namespace {

constexpr int kDeepestValue = 16;
constexpr size_t kMostValues = 5000, kMostValueBytes = 64 << 10;

using Flat = std::expected<std::map<std::string, std::string>, std::string>;

// Returns the value on one line, or nullopt if it is nested too deeply or too long.
std::optional<std::string> value_on_one_line(const Node& node, int depth) {
  if (depth > kDeepestValue) return std::nullopt;
  switch (node.kind) {
    case Node::Kind::null: return "";
    case Node::Kind::scalar: return node.text;
    case Node::Kind::map: return node.entries.empty() ? "{}" : "{...}";
    case Node::Kind::list: break;
  }
  std::string text = "[";
  for (const Node& item : node.items) {
    const auto value = value_on_one_line(item, depth + 1);
    if (!value) return std::nullopt;
    text += (text.size() > 1 ? ", " : "") + *value;
    if (text.size() > kMostValueBytes) return std::nullopt;
  }
  return text + "]";
}

// Returns false if the tree has too many values, a value that is too long, or is nested too deeply.
bool flatten(const Node& node, const std::string& key, int depth, std::map<std::string, std::string>& values) {
  if (depth > kDeepestValue || values.size() > kMostValues) return false;
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    auto value = value_on_one_line(node, depth);
    if (!value) return false;
    values[key] = *std::move(value);
    return true;
  }
  for (const Entry& entry : node.entries) {
    if (!flatten(entry.value, key.empty() ? entry.key : key + "." + entry.key, depth + 1, values)) return false;
  }
  return true;
}

}  // namespace

std::expected<std::map<std::string, std::string>, std::string> flat_values(std::string_view yaml) {
  const Tree tree = parse_tree(yaml);
  if (!tree.complete) {
    const Finding& last = tree.findings.back();
    const std::string place = last.position.line == 0 ? ""
                                                      : std::to_string(last.position.line) + ":" +
                                                            std::to_string(last.position.column) + ": ";
    return std::unexpected(place + last.what);
  }
  if (!tree.root || tree.root->kind != Node::Kind::map) return std::unexpected("not a mapping of options");
  std::map<std::string, std::string> values;
  if (!flatten(*tree.root, "", 0, values)) return std::unexpected("nested too deeply, or too long, to be a job file");
  return values;
}

}  // namespace sinew::spec
