// Parses a YAML text to a tree whose nodes know their positions, or finds what is wrong with the text. Private to
// spec/.
//
// The parser is stricter than YAML, so that a reader sees what the program reads: every key and value is on one
// line, keys are unique, and tags and several documents are refused. The size of the text, the depth of the tree and
// the number of nodes after the expansion of aliases are limited. The parser does not throw, whatever bytes it gets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sinew::spec {

struct Position {
  int line = 0, column = 0;  // 1-based, columns count characters; 0: unknown
  int override_index = -1;   // >= 0: the position is this override, not the file
};

struct Finding {
  Position position;
  ErrorCode code;
  std::string what, hint;
};

struct Entry;

struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Position position;
  std::string text;     // the text of a scalar
  bool quoted = false;  // true: the scalar is written in quotes, so it is a string
  bool broken = false;  // true: a problem of the node was reported, so its value is meaningless
  std::vector<Node> items;
  std::vector<Entry> entries;

  Node* find(std::string_view key);
  const Node* find(std::string_view key) const;
};

struct Entry {
  std::string key;
  Position position;  // the position of the key
  Node value;
};

struct Tree {
  std::optional<Node> root;  // the part before the first syntax error
  bool complete = true;      // false: a syntax error ended the parsing early
  std::vector<Finding> findings;
};

inline constexpr size_t kMostBytes = 1 << 20;
inline constexpr size_t kMostNodes = 50'000;  // more than the longest list that the option table allows
inline constexpr size_t kMostDepth = 64;

Tree parse_tree(std::string_view yaml);

// ---- types of scalars, and texts for messages ----------------------------------------------------------------------

bool is_true_or_false(const Node& node);
bool is_number_node(const Node& node);
bool is_string_node(const Node& node);
// How a message names the node: "the string 'abc'", "the number 5", "a list".
std::string described(const Node& node);
// The text in single quotes, for a message: control characters are escaped, long texts are cut.
std::string shown(std::string_view text);
std::string listed(const std::vector<std::string>& words);  // "a, b, c"
std::string either(const std::vector<std::string>& words);  // "a, b or c"

}  // namespace sinew::spec
