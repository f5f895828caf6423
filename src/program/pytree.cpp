#include "program/pytree.h"

#include <algorithm>

#include "program/archive.h"

namespace sinew::program {
namespace {

std::vector<std::string> texts_of(const JsonView& view) {
  std::vector<std::string> texts;
  for (const Json& json : view.array()) {
    const JsonView item = view.of(json);
    // The keys of a dictionary may be integers. As names, 1 and "1" are the same.
    if (item.is_text())
      texts.push_back(item.text());
    else if (std::holds_alternative<int64_t>(json.value))
      texts.push_back(std::to_string(item.integer()));
    else
      item.refuse("PROGRAM_UNSUPPORTED", "is not a name: the keys of a dictionary must be text or integers",
                  "use strings as keys in the inputs and outputs of forward");
  }
  return texts;
}

// Returns the keys of a dictionary from its context. The context of a defaultdict is an object. The context of any
// other dictionary is a text that contains JSON.
std::vector<std::string> dictionary_keys(const JsonView& context) {
  if (context.is_object()) return texts_of(context.get("dict_context"));
  const Document inner = parse_json(context.text(), "context of a tree");
  return texts_of(JsonView(inner));
}

// Returns names for the children of a class of the user. The context of a dataclass is [[names of the fields], [fields
// that were None]]. Another class may write any context. If the context has no such form, the children get no names.
std::vector<std::string> guessed_keys(const std::optional<JsonView>& context, size_t children) {
  if (!context || !context->is_text()) return {};
  try {
    const Document inner = parse_json(context->text(), "context of a tree");
    JsonView view(inner);
    if (view.is_array() && !view.array().empty() && view.of(view.array()[0]).is_array())
      view = view.of(view.array()[0]);
    if (!view.is_array() || view.array().size() != children) return {};
    return texts_of(view);
  } catch (const Error&) {
    return {};  // the names of the leaves are then numbers
  }
}

class TreeReader {
 public:
  explicit TreeReader(const FieldNames& fields) : fields_(fields) {}

  Tree read(const JsonView& view) const {
    view.allow({"type", "context", "children_spec"});
    const JsonView children = view.get("children_spec");
    const auto type = view.find("type");
    const auto context = view.find("context");
    Tree tree;
    if (!type) {
      if (context || !children.array().empty()) {
        view.refuse("PROGRAM_BAD_SCHEMA", "is a leaf, but has a context or children");
      }
      return tree;
    }
    for (const Json& child : children.array()) tree.children.push_back(read(children.of(child)));
    name_children(tree, *type, context, view);
    if (!tree.keys.empty() && tree.keys.size() != tree.children.size()) {
      view.refuse("PROGRAM_BAD_SCHEMA", "has " + std::to_string(tree.keys.size()) + " names for " +
                                            std::to_string(tree.children.size()) + " children");
    }
    return tree;
  }

 private:
  void name_children(Tree& tree, const JsonView& type, const std::optional<JsonView>& context,
                     const JsonView& view) const {
    const std::string& name = type.text();
    if (name == "builtins.tuple") {
      tree.kind = Tree::Kind::tuple;
    } else if (name == "builtins.list" || name == "collections.deque") {
      tree.kind = Tree::Kind::list;
    } else if (name == "builtins.dict" || name == "collections.OrderedDict" || name == "collections.defaultdict") {
      tree.kind = Tree::Kind::dict;
      if (context) tree.keys = dictionary_keys(*context);
      if (!context || (tree.keys.empty() && !tree.children.empty())) {
        view.refuse("PROGRAM_BAD_SCHEMA", "is a dictionary without keys");
      }
    } else if (name == "builtins.NoneType") {
      tree.kind = Tree::Kind::none;
      if (!tree.children.empty()) view.refuse("PROGRAM_BAD_SCHEMA", "is None, but has children");
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
  const JsonView& view;
  // The number of leaves of the graph. Further leaves are counted but get no name, because the names could need 1,024
  // times as much memory as the file.
  const size_t wanted;
  std::vector<std::string> names = {};
  size_t count = 0;

  void collect(const Tree& tree, const std::string& name) {
    if (name.size() > kMaxLeafName) {
      view.refuse("PROGRAM_TOO_LARGE", "has a leaf with a name of over 1024 bytes: " + in_quotes(name));
    }
    if (tree.kind == Tree::Kind::leaf && ++count <= wanted) names.push_back(name);
    for (size_t i = 0; i < tree.children.size(); ++i) {
      const std::string step = tree.keys.empty() ? std::to_string(i) : tree.keys[i];
      collect(tree.children[i], name.empty() ? step : name + '.' + step);
    }
  }

  std::vector<std::string> checked(const std::string& what) {
    if (count != wanted) {
      view.refuse("PROGRAM_BAD_GRAPH", "has " + std::to_string(count) + " leaves for " + std::to_string(wanted) +
                                           " values of the user's " + what);
    }
    return std::move(names);
  }
};

}  // namespace

Tree read_tree(const JsonView& view, const FieldNames& fields) {
  // The text is itself a JSON document. Its errors are reported with the place of the text.
  const Document inner = [&] {
    try {
      return parse_json(view.text(), "tree");
    } catch (const Error& error) {
      view.refuse(error.code, error.what(), error.hint);
    }
  }();
  try {
    const JsonView outer(inner);
    if (outer.array().size() != 2) outer.refuse("PROGRAM_BAD_SCHEMA", "should be [1, a tree]");
    const JsonView version = outer.of(outer.array()[0]);
    if (version.integer() != 1) {
      version.refuse("PROGRAM_UNSUPPORTED_VERSION",
                     "is version " + std::to_string(version.integer()) + " of trees; Sinew reads version 1",
                     "export the model with the version of torch that Sinew is built for");
    }
    return TreeReader(fields).read(outer.of(outer.array()[1]));
  } catch (const Error& error) {
    view.refuse(error.code, error.what(), error.hint);
  }
}

std::vector<std::string> output_names(const JsonView& view, const Tree& tree, size_t wanted) {
  Leaves leaves{view, wanted};
  leaves.collect(tree, "");
  return leaves.checked("output");
}

std::vector<std::string> input_names(const JsonView& view, const Tree& tree, const std::vector<std::string>& arguments,
                                     size_t wanted) {
  if (tree.children.size() != 2 || tree.children[0].kind != Tree::Kind::tuple ||
      tree.children[1].kind != Tree::Kind::dict) {
    view.refuse("PROGRAM_BAD_SCHEMA", "should be a pair of arguments and keyword arguments");
  }
  Leaves leaves{view, wanted};
  const Tree& positional = tree.children[0];
  for (size_t i = 0; i < positional.children.size(); ++i) {
    const bool named = i < arguments.size() && !arguments[i].empty();
    leaves.collect(positional.children[i], named ? arguments[i] : "args." + std::to_string(i));
  }
  const Tree& keywords = tree.children[1];
  for (size_t i = 0; i < keywords.children.size(); ++i) leaves.collect(keywords.children[i], keywords.keys[i]);
  return leaves.checked("input");
}

}  // namespace sinew::program
