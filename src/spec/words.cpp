// Recognises the types of scalars, and names nodes and texts in messages.
#include "base/joined.h"
#include "spec/amounts.h"
#include "spec/tree.h"

namespace sinew::spec {

bool is_true_or_false(const Node& node) {
  return node.kind == Node::Kind::scalar && !node.quoted && (node.text == "true" || node.text == "false");
}

bool is_number_node(const Node& node) {
  return node.kind == Node::Kind::scalar && !node.quoted && is_number(node.text);
}

bool is_string_node(const Node& node) {
  return node.kind == Node::Kind::scalar && !is_true_or_false(node) && !is_number_node(node);
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 60;
  const bool cut = text.size() > kLongest;
  if (cut) {
    text = text.substr(0, kLongest);
    while (!text.empty() && (text.back() & 0xC0) == 0x80) text.remove_suffix(1);  // do not cut a character in two
    if (!text.empty() && (text.back() & 0x80) != 0) text.remove_suffix(1);
  }
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\n') {
      quoted += "\\n";
    } else if (letter == '\t') {
      quoted += "\\t";
    } else {
      quoted += static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F ? '?' : letter;
    }
  }
  return quoted + (cut ? "...'" : "'");
}

std::string described(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "nothing";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a section of keys";
    case Node::Kind::scalar: break;
  }
  if (is_number_node(node)) return "the number " + node.text;
  if (is_true_or_false(node)) return node.text;
  return (node.quoted && is_number(node.text) ? "the quoted string " : "the string ") + shown(node.text);
}

std::string listed(const std::vector<std::string>& words) {
  return joined(words, ", ");
}

std::string either(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

}  // namespace sinew::spec
