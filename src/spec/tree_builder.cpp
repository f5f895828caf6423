#include "spec/tree_builder.h"

#include <string>
#include <utility>

namespace sinew::spec {

void TreeBuilder::add(Node node, Anchor anchor) {
  const Size size{1, node.text.size()};
  add(std::move(node), anchor, size);
}

void TreeBuilder::add_alias(Anchor anchor, Place place) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    throw Stop{{place, "SPEC_BAD_SYNTAX", "this alias lies inside the value of its own anchor", "write the value out"}};
  }
  count_nodes(found->second.size.nodes, place);
  copied_ += found->second.size.bytes;
  if (copied_ > kMostBytes) {
    throw Stop{{place, "SPEC_TOO_LARGE", "the aliases expand to more than 1 MiB of text",
                "write a shorter text, or use fewer aliases"}};
  }
  Node copy = found->second.node;
  copy.place = place;
  add(std::move(copy), 0, found->second.size);
}

void TreeBuilder::open(Node::Kind kind, Place place, Anchor anchor, bool flow) {
  if (open_.size() >= kMostDepth) {
    throw Stop{{place, "SPEC_TOO_LARGE",
                "lists and sections are nested more than " + std::to_string(kMostDepth) + " levels deep",
                "a job file needs 4 levels: check brackets and indentation"}};
  }
  Open level;
  level.node.kind = kind;
  level.node.place = place;
  level.anchor = anchor;
  level.sizes_before = sizes_;
  level.flow = flow;
  open_.push_back(std::move(level));
}

void TreeBuilder::close() {
  Open level = std::move(open_.back());  // it still holds a key without a value only if the text broke off
  open_.pop_back();
  const Size size{1 + sizes_.nodes - level.sizes_before.nodes, sizes_.bytes - level.sizes_before.bytes};
  sizes_ = level.sizes_before;
  add(std::move(level.node), level.anchor, size);
}

std::optional<Place> TreeBuilder::open_bracket() const {
  return open_.empty() || !open_.back().flow ? std::nullopt : std::optional(open_.back().node.place);
}

void TreeBuilder::close_all() {
  while (!open_.empty()) {
    open_.back().node.broken = open_.back().node.kind == Node::Kind::list;
    close();
  }
}

void TreeBuilder::count_nodes(size_t count, Place place) {
  nodes_ += count;
  if (nodes_ > kMostNodes) {
    throw Stop{{place, "SPEC_TOO_LARGE", "more than " + std::to_string(kMostNodes) + " values, with aliases expanded",
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
    findings_.push_back({key.place, "SPEC_BAD_SYNTAX",
                         key.kind == Node::Kind::null ? "there is no key before the ':'"
                                                      : "a key must be a plain word, not a list or a section",
                         "write 'key: value'"});
    return;
  }
  if (value.kind == Node::Kind::null) value.place = key.place;  // the library reports the place after the key
  for (const Entry& entry : level.node.entries) {
    if (entry.key != key.text) continue;
    findings_.push_back({key.place, "SPEC_DUPLICATE_KEY",
                         shown(key.text) + " is given twice, first on line " + std::to_string(entry.place.line),
                         "keep one of them"});
    return;
  }
  level.node.entries.push_back({key.text, key.place, std::move(value)});
}

}  // namespace sinew::spec
