#include "spec/aliases.h"

#include "spec/options.h"

namespace sinew::spec {
namespace {

std::string dotted(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

void replace_alias(Node& section, const Option& option, std::vector<Finding>& findings) {
  for (auto entry = section.entries.begin(); entry != section.entries.end(); ++entry) {
    if (entry->key != option.alias) continue;
    if (section.find(option.leaf()) == nullptr) {
      entry->key = option.leaf();
      return;
    }
    findings.push_back(
        {entry->position, "SPEC_DUPLICATE_KEY",
         dotted(option.section(), option.alias) + " is another name of " + option.key + ", which is given as well",
         "delete " + option.alias});
    section.entries.erase(entry);
    return;
  }
}

}  // namespace

std::string without_alias(const std::string& key) {
  for (const Option& option : option_table()) {
    if (!option.alias.empty() && key == dotted(option.section(), option.alias)) return option.key;
  }
  return key;
}

void replace_aliases(Node& node, const std::string& section, std::vector<Finding>& findings) {
  if (node.kind != Node::Kind::map) return;
  for (const Option& option : option_table()) {
    if (!option.alias.empty() && option.section() == section) replace_alias(node, option, findings);
  }
  for (Entry& entry : node.entries) {
    const std::string key = dotted(section, entry.key);
    if (find_section(key) != nullptr) replace_aliases(entry.value, key, findings);
  }
}

}  // namespace sinew::spec
