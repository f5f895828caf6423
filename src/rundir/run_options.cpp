#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

constexpr int kDeepest = 16;
constexpr const char* kHint = "restore the file: sinew writes resolved.yaml when a run starts";
constexpr size_t kMostOptions = 5000;  // YAML aliases can make a small file expand to a huge one

std::string one_line(const YAML::Node& node, int depth);

void flatten(const YAML::Node& node, const std::string& key, int depth, std::map<std::string, std::string>& out) {
  if (depth > kDeepest || out.size() > kMostOptions)
    throw Error("RUN_NOT_OPTIONS", "nested too deeply or too long to be a job file", kHint);
  if (!node.IsMap() || node.size() == 0) {
    out[key] = one_line(node, depth);
    return;
  }
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    flatten(entry.second, key.empty() ? name : key + "." + name, depth + 1, out);
  }
}

std::string one_line(const YAML::Node& node, int depth) {
  if (depth > kDeepest) throw Error("RUN_NOT_OPTIONS", "nested too deeply to be a job file", kHint);
  if (node.IsScalar()) return node.Scalar();
  if (node.IsMap()) return node.size() == 0 ? "{}" : "{...}";
  if (!node.IsSequence()) return "";
  std::string text = "[";
  for (const auto& item : node) {
    text += (text.size() > 1 ? ", " : "") + one_line(item, depth + 1);
    if (text.size() > 1 << 16) throw Error("RUN_NOT_OPTIONS", "a list too long to be in a job file", kHint);
  }
  return text + "]";
}

}  // namespace

std::map<std::string, std::string> flat_options(const std::string& yaml) {
  if (yaml.size() > 1 << 20) throw Error("RUN_NOT_OPTIONS", "larger than a job file can be", kHint);
  try {
    const YAML::Node root = YAML::Load(yaml);
    if (!root.IsMap()) throw Error("RUN_NOT_OPTIONS", "not a mapping of options", kHint);
    std::map<std::string, std::string> options;
    flatten(root, "", 0, options);
    return options;
  } catch (const YAML::Exception& error) {
    throw Error("RUN_NOT_OPTIONS",
                std::to_string(error.mark.line + 1) + ":" + std::to_string(error.mark.column + 1) + ": " + error.msg,
                kHint);
  }
}

}  // namespace sinew::rundir
