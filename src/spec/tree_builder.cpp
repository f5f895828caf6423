#include "spec/tree_builder.h"

#include <string>
#include <utility>

namespace sinew::spec {

void TreeBuilder::add(Node node, Anchor anchor) {
  const Size size{1, node.text.size()};
  add(std::move(node), anchor, size);
}

void TreeBuilder::add_alias(Anchor anchor, Position position) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    throw Stop{
        {position, "SPEC_BAD_SYNTAX", "this alias lies inside the value of its own anchor", "write the value out"}};
  }
  count_nodes(found->second.size.nodes, position);
  copied_ += found->second.size.bytes;
  if (copied_ > kMostBytes) {
    throw Stop{{position, "SPEC_TOO_LARGE", "the aliases expand to more than 1 MiB of text",
                "write a shorter text, or use fewer aliases"}};
  }
  Node copy = found->second.node;
  copy.position = position;
  add(std::move(copy), 0, found->second.size);
}

void TreeBuilder::open(Node::Kind kind, Position position, Anchor anchor, bool flow) {
  if (open_.size() >= kMostDepth) {
    throw Stop{{position, "SPEC_TOO_LARGE",
                "lists and sections are nested more than " + std::to_string(kMostDepth) + " levels deep",
                "a job file needs 4 levels: check brackets and indentation"}};
  }
  Open level;
  level.node.kind = kind;
  level.node.position = position;
  level.anchor = anchor;
  level.sizes_before = sizes_;
  level.flow = flow;
  open_.push_back(std::move(level));
}

void TreeBuilder::close() {
  Open level = std::move(open_.back());  // it holds a key without a value only if the text broke off
  open_.pop_back();
  const Size size{1 + sizes_.nodes - level.sizes_before.nodes, sizes_.bytes - level.sizes_before.bytes};
  sizes_ = level.sizes_before;
  add(std::move(level.node), level.anchor, size);
}

std::optional<Position> TreeBuilder::open_bracket() const {
  return open_.empty() || !open_.back().flow ? std::nullopt : std::optional(open_.back().node.position);
}

void TreeBuilder::close_all() {
  while (!open_.empty()) {
    open_.back().node.broken = open_.back().node.kind == Node::Kind::list;
    close();
  }
}

void TreeBuilder::count_nodes(size_t count, Position position) {
  nodes_ += count;
  if (nodes_ > kMostNodes) {
    throw Stop{{position, "SPEC_TOO_LARGE",
                "more than " + std::to_string(kMostNodes) + " values, with aliases expanded",
                "shorten the file; aliases of aliases multiply values"}};
  }
}

void TreeBuilder::add(Node node, Anchor anchor, Size size) {
  if (anchor != 0) anchors_[anchor] = {node, size};
  sizes_.nodes += size.nodes;
  sizes_.bytes += size.bytes;
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  Open& level = open_.back();
  if (level.node.kind == Node::Kind::list) {
    level.node.items.push_back(std::move(node));
  } else if (!level.has_key) {
    level.key = std::move(node);
    level.has_key = true;
  } else {
    level.has_key = false;
    add_entry(level, std::move(node));
  }
}

void TreeBuilder::add_entry(Open& level, Node value) {
  const Node& key = level.key;
  if (key.kind != Node::Kind::scalar) {
    findings_.push_back({key.position, "SPEC_BAD_SYNTAX",
                         key.kind == Node::Kind::null ? "there is no key before the ':'"
                                                      : "a key must be a plain word, not a list or a section",
                         "write 'key: value'"});
    return;
  }
  if (value.kind == Node::Kind::null) value.position = key.position;  // the library reports the position after the key
  const auto [first, is_new] = level.lines.emplace(key.text, key.position.line);
  if (!is_new) {
    findings_.push_back({key.position, "SPEC_DUPLICATE_KEY",
                         shown(key.text) + " is given twice, first on line " + std::to_string(first->second),
                         "keep one of them"});
    return;
  }
  level.node.entries.push_back({key.text, key.position, std::move(value)});
}

}  // namespace sinew::spec
