#include "spec/overrides.h"

#include <algorithm>

#include "spec/aliases.h"
#include "spec/options.h"

namespace sinew::spec {
namespace {

void set_place(Node& node, Position position) {
  node.position = position;
  for (Node& item : node.items) set_place(item, position);
  for (Entry& entry : node.entries) {
    entry.position = position;
    set_place(entry.value, position);
  }
}

// Returns the index of the last override inside this node; -1 if there is none.
int override_within(const Node& node) {
  int found = node.position.override_index;
  for (const Node& item : node.items) found = std::max(found, override_within(item));
  for (const Entry& entry : node.entries) {
    found = std::max({found, entry.position.override_index, override_within(entry.value)});
  }
  return found;
}

// Finds or creates the section `key`. Expands a short form ("model: cnn") to a section.
Node& section_below(Node& parent, const std::string& dotted, const std::string& key, Position position) {
  Node* node = parent.find(key);
  if (node == nullptr) {
    Node fresh;
    fresh.kind = Node::Kind::map;
    fresh.position = position;
    parent.entries.push_back({key, position, std::move(fresh)});
    return parent.entries.back().value;
  }
  const Option* short_form = short_form_of(dotted);
  if (node->kind == Node::Kind::scalar && short_form != nullptr) {
    Node value = std::move(*node);
    *node = Node();
    node->kind = Node::Kind::map;
    node->position = value.position;
    const Position where = value.position;
    node->entries.push_back({short_form->leaf(), where, std::move(value)});
  }
  return *node;
}

void put(Node& root, const std::string& key, Node value, const std::vector<std::string>& overrides,
         std::vector<Finding>& findings) {
  const Position position = value.position;
  Node* section = &root;
  size_t begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != std::string::npos; begin = dot + 1) {
    section = &section_below(*section, key.substr(0, dot), key.substr(begin, dot - begin), position);
    if (section->kind != Node::Kind::map) return;  // the reader reports that this is no section
  }
  const std::string leaf = key.substr(begin);
  Node* old = section->find(leaf);
  if (old == nullptr) {
    section->entries.push_back({leaf, position, std::move(value)});
    return;
  }
  if (const int earlier = override_within(*old); earlier >= 0) {
    findings.push_back({position, "SPEC_BAD_OVERRIDE",
                        "it replaces the earlier override " + shown(overrides[static_cast<size_t>(earlier)]),
                        "keep one of the two, or give the override of the section first"});
    return;
  }
  for (Entry& entry : section->entries) {
    if (entry.key != leaf) continue;
    entry = {leaf, position, std::move(value)};
    return;
  }
}

std::vector<std::string> every_key() {
  std::vector<std::string> keys;
  for (const Section& section : section_table()) keys.push_back(section.key);
  for (const Option& option : option_table()) keys.push_back(option.key);
  return keys;
}

// Finds the one option or section, in any section, that `name` may mean. An option is found by the last part of its
// key, its alias or its name in other tools. An option of `section` with such an alias or other name is taken first.
// Returns "" if there is no such option or section, or more than one.
std::string same_name_elsewhere(const std::string& section, const std::string& name) {
  std::vector<std::string> found;
  for (const Option& option : option_table()) {
    const bool other_name =
        (" " + option.other_names + " ").find(" " + name + " ") != std::string::npos || option.alias == name;
    if (other_name && option.section() == section) return option.key;
    if (other_name || option.leaf() == name) found.push_back(option.key);
  }
  for (const Section& other : section_table()) {
    if (other.key.ends_with("." + name) || other.key == name) found.push_back(other.key);
  }
  return found.size() == 1 && name.find(' ') == std::string::npos ? found[0] : "";
}

}  // namespace

std::string key_hint(const std::string& section, const std::string& key) {
  if (key == "<<") return "YAML 1.2 has no merge keys: write the keys out";
  const std::vector<std::string> known = keys_below(section);
  const std::string choices = section.empty() ? "keys at the top: " + listed(known) : "keys here: " + listed(known);
  if (key.find('.') != std::string::npos && (find_option(key) != nullptr || find_section(key) != nullptr)) {
    return "dotted keys are for the command line: in a file, write sections as indented lines";
  }
  const std::string elsewhere = same_name_elsewhere(section, key);
  if (elsewhere.starts_with(section + ".")) {
    return "did you mean '" + elsewhere.substr(section.size() + 1) + "'?";
  }
  const std::string meant = did_you_mean(key, known);
  if (!meant.empty()) return "did you mean '" + meant + "'?";
  if (!elsewhere.empty()) return "did you mean '" + elsewhere + "'? " + choices;
  return choices;
}

std::vector<std::string> apply_overrides(Node& root, const std::vector<std::string>& overrides,
                                         std::vector<Finding>& findings) {
  std::vector<std::string> unread;
  for (size_t i = 0; i < overrides.size(); ++i) {
    const std::string& text = overrides[i];
    const Position position{0, 0, static_cast<int>(i)};
    const size_t equals = text.find('=');
    const std::string key = without_alias(text.substr(0, equals));
    if (equals == std::string::npos || key.empty()) {
      findings.push_back(
          {position, "SPEC_BAD_OVERRIDE", "an override must be key=value", "for example optimizer.lr=3e-4"});
      continue;
    }
    if (find_option(key) == nullptr && find_section(key) == nullptr && owner_of_entry(key) == nullptr) {
      const std::string elsewhere = same_name_elsewhere("", key);
      std::string meant = elsewhere.empty() ? did_you_mean(key, every_key()) : elsewhere;
      if (key.starts_with(meant + ".")) meant.clear();  // `key` is inside the section `meant`
      const size_t dot = key.rfind('.');
      const std::string section = dot == std::string::npos ? "" : key.substr(0, dot);
      findings.push_back({position, "SPEC_UNKNOWN_KEY", "unknown key " + shown(key),
                          meant.empty() ? key_hint(find_section(section) ? section : "", key.substr(dot + 1))
                                        : "did you mean '" + meant + "'?"});
      continue;
    }
    Tree value = parse_tree(text.substr(equals + 1));
    for (const Finding& finding : value.findings)
      findings.push_back({position, finding.code, finding.what, finding.hint});
    if (!value.findings.empty()) {
      unread.push_back(key);
      continue;
    }
    Node node = value.root ? std::move(*value.root) : Node();
    set_place(node, position);
    replace_aliases(node, key, findings);
    put(root, key, std::move(node), overrides, findings);
  }
  return unread;
}

}  // namespace sinew::spec
