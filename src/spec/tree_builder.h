// Builds the tree of a YAML text, node by node, within limits. Knows no YAML library. Private to spec/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/tree.h"

namespace sinew::spec {

// Thrown to end the parsing; the finding says why.
struct Stop {
  Finding finding;
};

// Builds the tree of one text, on one thread. Nodes come in the order of the text; in a map, keys and values alternate.
// A problem that does not end the parsing becomes a finding.
class TreeBuilder {
 public:
  using Anchor = size_t;  // 0: the node has none

  explicit TreeBuilder(std::vector<Finding>& findings) : findings_(findings) {}

  // Counts a node that begins here. Throws Stop if the tree is too large.
  void count_node(Position position) { count_nodes(1, position); }
  void add(Node node, Anchor anchor);  // a scalar or null
  void add_alias(Anchor anchor, Position position);
  void open(Node::Kind kind, Position position, Anchor anchor, bool flow);  // a list or map begins
  void close();                                                             // ends the innermost list or map

  // The position of the innermost '[' or '{' that is not closed.
  std::optional<Position> open_bracket() const;
  // Closes all open nodes after the text broke off, so that the parsed part is kept.
  void close_all();
  std::optional<Node> take_root() { return std::move(root_); }

 private:
  struct Size {  // the size of a subtree
    size_t nodes = 0, bytes = 0;
  };
  struct Open {
    Node node;
    Anchor anchor = 0;
    Size sizes_before;
    bool flow = false;
    bool has_key = false;
    Node key;
    std::map<std::string, int> lines;  // the keys so far, and the line of each
  };
  struct Anchored {
    Node node;
    Size size;
  };

  void count_nodes(size_t count, Position position);
  void add(Node node, Anchor anchor, Size size);  // `size` is that of the node's whole subtree
  void add_entry(Open& level, Node value);

  std::vector<Finding>& findings_;
  std::optional<Node> root_;
  std::vector<Open> open_;
  std::map<Anchor, Anchored> anchors_;
  size_t nodes_ = 0;   // nodes so far, with aliases expanded
  size_t copied_ = 0;  // bytes of text that aliases copied
  Size sizes_;         // the size so far of the innermost open node
};

}  // namespace sinew::spec
