// A YAML text as a tree whose every node knows its place, or what is wrong with it. Private to spec/.
//
// Stricter than YAML on purpose, so that what a person sees is what is read: every key and value stands on one line,
// keys are unique, tags and several documents are refused. Bounded: size, depth and the number of nodes after aliases
// are expanded. Never throws, whatever the bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::spec {

struct Place {
  int line = 0, column = 0;  // 1-based, columns in characters; 0: none
  int override_index = -1;   // >= 0: this override of the command line instead of the file
};

struct Finding {
  Place place;
  std::string what, hint;
};

struct Entry;

struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Place place;
  std::string text;     // scalar
  bool quoted = false;  // scalar: certainly a string
  bool broken = false;  // reported already: its value means nothing
  std::vector<Node> items;
  std::vector<Entry> entries;

  Node* find(std::string_view key);
};

struct Entry {
  std::string key;
  Place place;  // of the key
  Node value;
};

struct Tree {
  std::optional<Node> root;  // what was read before the first syntax error
  bool complete = true;      // false: the text could not be read to its end
  std::vector<Finding> findings;
};

inline constexpr size_t kMostBytes = 1 << 20;
inline constexpr size_t kMostNodes = 50'000;  // more than the longest list of the option table
inline constexpr size_t kMostDepth = 64;

Tree parse_tree(std::string_view yaml);

// ---- what a plain or quoted scalar is ------------------------------------------------------------------------------

bool is_true_or_false(const Node& node);
bool is_number_node(const Node& node);
bool is_string_node(const Node& node);
// "the string 'abc'", "the number 5", "a list": how a message names what it found.
std::string described(const Node& node);
// Text for a message: quoted with ', control characters escaped, long ones cut.
std::string shown(std::string_view text);
std::string listed(const std::vector<std::string>& words);  // "a, b, c"
std::string either(const std::vector<std::string>& words);  // "a, b or c"

}  // namespace sinew::spec
