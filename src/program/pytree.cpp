#include "program/pytree.h"

#include <algorithm>

#include "program/archive.h"

namespace sinew::program {
namespace {

std::vector<std::string> texts_of(const Spot& spot) {
  std::vector<std::string> texts;
  for (const Json& json : spot.array()) {
    const Spot item = spot.of(json);
    // A dictionary's keys may be numbers; to a reader of names 1 and "1" are one.
    if (item.is_text())
      texts.push_back(item.text());
    else if (std::holds_alternative<int64_t>(json.value))
      texts.push_back(std::to_string(item.integer()));
    else
      item.refuse("is no name: keys of a dictionary must be text or integers");
  }
  return texts;
}

// What the node's context says of its children's names; it is JSON in text for all but a defaultdict.
std::vector<std::string> dictionary_keys(const Spot& context) {
  if (context.is_object()) return texts_of(context.get("dict_context"));
  const Document inner = parse_json(context.text(), "context of a tree");
  return texts_of(Spot(inner));
}

// Classes of the user's own: a dataclass says [[names of the fields], [those that were None]], others whatever they
// like.
std::vector<std::string> guessed_keys(const std::optional<Spot>& context, size_t children) {
  if (!context || !context->is_text()) return {};
  try {
    const Document inner = parse_json(context->text(), "context of a tree");
    Spot spot(inner);
    if (spot.is_array() && !spot.array().empty() && spot.of(spot.array()[0]).is_array())
      spot = spot.of(spot.array()[0]);
    if (!spot.is_array() || spot.array().size() != children) return {};
    return texts_of(spot);
  } catch (const Error&) {
    return {};  // the leaves go by their numbers then
  }
}

class TreeReader {
 public:
  explicit TreeReader(const FieldNames& fields) : fields_(fields) {}

  Tree read(const Spot& spot) const {
    spot.allow({"type", "context", "children_spec"});
    const Spot children = spot.get("children_spec");
    const auto type = spot.find("type");
    const auto context = spot.find("context");
    Tree tree;
    if (!type) {
      if (context || !children.array().empty()) spot.refuse("is a leaf, but has a context or children");
      return tree;
    }
    for (const Json& child : children.array()) tree.children.push_back(read(children.of(child)));
    name_children(tree, *type, context, spot);
    if (!tree.keys.empty() && tree.keys.size() != tree.children.size()) {
      spot.refuse("has " + std::to_string(tree.keys.size()) + " names for " + std::to_string(tree.children.size()) +
                  " children");
    }
    return tree;
  }

 private:
  void name_children(Tree& tree, const Spot& type, const std::optional<Spot>& context, const Spot& spot) const {
    const std::string& name = type.text();
    if (name == "builtins.tuple") {
      tree.kind = Tree::Kind::tuple;
    } else if (name == "builtins.list" || name == "collections.deque") {
      tree.kind = Tree::Kind::list;
    } else if (name == "builtins.dict" || name == "collections.OrderedDict" || name == "collections.defaultdict") {
      tree.kind = Tree::Kind::dict;
      if (!context) spot.refuse("is a dictionary without keys");
      tree.keys = dictionary_keys(*context);
      if (tree.keys.empty() && !tree.children.empty()) spot.refuse("is a dictionary without keys");
    } else if (name == "builtins.NoneType") {
      tree.kind = Tree::Kind::none;
      if (!tree.children.empty()) spot.refuse("is None, but has children");
    } else if (name == "collections.namedtuple") {
      tree.kind = Tree::Kind::named_tuple;
      const auto found = context && context->is_text() ? fields_.find(context->text()) : fields_.end();
      if (found != fields_.end()) tree.keys = found->second;
    } else {
      tree.kind = Tree::Kind::other;
      tree.keys = guessed_keys(context, tree.children.size());
    }
  }

  const FieldNames& fields_;
};

struct Leaves {
  const Spot& spot;
  const size_t wanted;  // more than so many are not named: a name may be 1024 times as long as what it is made of
  std::vector<std::string> names = {};
  size_t count = 0;

  void collect(const Tree& tree, const std::string& name) {
    if (name.size() > kLongestLeafName) spot.refuse("has a leaf with a name of over 1024 bytes: " + shown(name));
    if (tree.kind == Tree::Kind::leaf && ++count <= wanted) names.push_back(name);
    for (size_t i = 0; i < tree.children.size(); ++i) {
      const std::string step = tree.keys.empty() ? std::to_string(i) : tree.keys[i];
      collect(tree.children[i], name.empty() ? step : name + '.' + step);
    }
  }

  std::vector<std::string> of_user(const std::string& what) {
    if (count != wanted) {
      spot.refuse("has " + std::to_string(count) + " leaves for " + std::to_string(wanted) + " values of the user's " +
                  what);
    }
    return std::move(names);
  }
};

}  // namespace

Tree read_tree(const Spot& spot, const FieldNames& fields) {
  // Errors inside name the text's own place by way of the outer one.
  const Document inner = [&] {
    try {
      return parse_json(spot.text(), "tree");
    } catch (const Error& error) {
      spot.refuse(error.what(), error.hint);
    }
  }();
  try {
    const Spot outer(inner);
    if (outer.array().size() != 2) outer.refuse("should be [1, a tree]");
    const Spot version = outer.of(outer.array()[0]);
    if (version.integer() != 1) {
      version.refuse("is version " + std::to_string(version.integer()) + " of trees; 1 is read",
                     "export the model with the version of torch that Sinew is built for");
    }
    return TreeReader(fields).read(outer.of(outer.array()[1]));
  } catch (const Error& error) {
    spot.refuse(error.what(), error.hint);
  }
}

std::vector<std::string> output_names(const Spot& spot, const Tree& tree, size_t wanted) {
  Leaves leaves{spot, wanted};
  leaves.collect(tree, "");
  return leaves.of_user("output");
}

std::vector<std::string> input_names(const Spot& spot, const Tree& tree, const std::vector<std::string>& arguments,
                                     size_t wanted) {
  if (tree.children.size() != 2 || tree.children[0].kind != Tree::Kind::tuple ||
      tree.children[1].kind != Tree::Kind::dict)
    spot.refuse("should be a pair of arguments and keyword arguments");
  Leaves leaves{spot, wanted};
  const Tree& places = tree.children[0];
  for (size_t i = 0; i < places.children.size(); ++i) {
    const bool named = i < arguments.size() && !arguments[i].empty();
    leaves.collect(places.children[i], named ? arguments[i] : "args." + std::to_string(i));
  }
  const Tree& keywords = tree.children[1];
  for (size_t i = 0; i < keywords.children.size(); ++i) leaves.collect(keywords.children[i], keywords.keys[i]);
  return leaves.of_user("input");
}

}  // namespace sinew::program
