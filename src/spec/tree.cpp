#include "spec/tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

#include "spec/source_text.h"
#include "spec/syntax.h"

namespace sinew::spec {
namespace {

// Ends the parsing; the finding says why.
struct Stop {
  Finding finding;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const SourceText& source) : source_(source) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    throw Stop{{place(mark), "SPEC_UNSUPPORTED_YAML", "a second document begins here",
                "a job file is a single document: delete the line '---' or '...'"}};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    count_nodes(1, place(mark));
    Node node;
    node.place = place(mark);
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Stop{{place(mark), "SPEC_BAD_SYNTAX", "this alias lies inside the value of its own anchor",
                  "write the value out"}};
    }
    count_nodes(found->second.size.nodes, place(mark));
    copied_ += found->second.size.bytes;
    if (copied_ > kMostBytes) {
      throw Stop{{place(mark), "SPEC_TOO_LARGE", "the aliases expand to more than 1 MiB of text",
                  "write a shorter text, or use fewer aliases"}};
    }
    Node copy = found->second.node;
    copy.place = place(mark);
    add(std::move(copy), 0, found->second.size);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    count_nodes(1, place(mark));
    Node node;
    node.kind = Node::Kind::scalar;
    node.broken = refuse_tag(mark, tag);
    node.place = place(mark);
    node.text = value;
    node.quoted = tag == "!";
    check_one_line(mark, node, anchor != 0);
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, Node::Kind::list, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, Node::Kind::map, style);
  }
  void OnMapEnd() override { close(); }

  Tree finish(bool complete) {
    if (!complete) {
      while (!open_.empty()) {  // keep the part that was parsed
        open_.back().node.broken = open_.back().node.kind == Node::Kind::list;
        close();
      }
    }
    tree_.complete = complete;
    tree_.root = std::move(root_);
    return std::move(tree_);
  }
  // The place of the innermost '[' or '{' that is not closed.
  std::optional<Place> open_bracket() const {
    return open_.empty() || !open_.back().flow ? std::nullopt : std::optional(open_.back().node.place);
  }
  void report(Finding finding) { tree_.findings.push_back(std::move(finding)); }
  // Removes the finding about a value that continues on the next line: the parser reports a missing ':' or a wrong
  // indentation so at first, and its later error is more exact.
  void forget_run_on() {
    if (last_run_on_) tree_.findings.pop_back();
    last_run_on_ = false;
  }

 private:
  struct Size {  // of a subtree
    size_t nodes = 0, bytes = 0;
  };
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    Size sizes_before;
    bool flow = false;
    bool has_key = false;
    Node key;
  };
  struct Anchored {
    Node node;
    Size size;
  };

  Place place(const YAML::Mark& mark) const { return source_.place(mark.line, mark.column); }

  void count_nodes(size_t count, Place where) {
    nodes_ += count;
    if (nodes_ > kMostNodes) {
      throw Stop{{where, "SPEC_TOO_LARGE", "more than " + std::to_string(kMostNodes) + " values, with aliases expanded",
                  "shorten the file; aliases of aliases multiply values"}};
    }
  }

  bool refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    const bool written = source_.rest_of_line(mark.line, mark.column).starts_with('!');
    const bool refused = written || !(tag.empty() || tag == "?" || tag == "!");
    if (refused) {
      report({place(mark), "SPEC_UNSUPPORTED_YAML", "job files do not use YAML tags ('!...')",
              "delete the tag; to make a value a string, put it in quotes"});
    }
    return refused;
  }

  // Refuses values of several lines. The library would join the lines, and would accept the end of the file as a
  // closing quote.
  void check_one_line(const YAML::Mark& mark, Node& node, bool anchored) {
    std::string_view rest = source_.rest_of_line(mark.line, mark.column);
    if (anchored && rest.starts_with('&')) {
      rest.remove_prefix(std::min(rest.find(' '), rest.size()));
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    }
    last_run_on_ = false;
    if (node.broken) return;  // its tag is already reported
    const bool block = node.quoted && (rest.starts_with('|') || rest.starts_with('>'));
    node.broken = node.quoted ? block || !closes(rest) : !rest.starts_with(node.text);
    if (!node.broken) return;
    if (block) {
      report({node.place, "SPEC_UNSUPPORTED_YAML", "this text has several lines",
              "write the value on one line, in quotes"});
    } else if (node.quoted) {
      report({node.place, "SPEC_NOT_CLOSED", "the quote is not closed on its line",
              "close it: a value must not continue on the next line"});
    } else {
      report({node.place, "SPEC_BAD_SYNTAX", "this value continues on the next line",
              "check whether the next line lacks a ':' or is indented too deep; write the value on one line"});
      last_run_on_ = true;
    }
  }

  static bool closes(std::string_view rest) {
    const char quote = rest.empty() ? ' ' : rest[0];
    for (size_t i = 1; i < rest.size(); ++i) {
      if (quote == '"' && rest[i] == '\\') {
        ++i;
      } else if (rest[i] == quote) {
        if (quote == '\'' && i + 1 < rest.size() && rest[i + 1] == quote) {
          ++i;
        } else {
          return true;
        }
      }
    }
    return false;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind,
            YAML::EmitterStyle::value style) {
    refuse_tag(mark, tag);
    count_nodes(1, place(mark));
    if (open_.size() >= kMostDepth) {
      throw Stop{{place(mark), "SPEC_TOO_LARGE",
                  "lists and sections are nested more than " + std::to_string(kMostDepth) + " levels deep",
                  "a job file needs 4 levels: check brackets and indentation"}};
    }
    Open level;
    level.node.kind = kind;
    level.node.place = place(mark);
    level.anchor = anchor;
    level.sizes_before = sizes_;
    level.flow = style == YAML::EmitterStyle::Flow;
    open_.push_back(std::move(level));
  }

  void close() {
    Open level = std::move(open_.back());  // it still holds a key without a value only if the text broke off
    open_.pop_back();
    const Size size{1 + sizes_.nodes - level.sizes_before.nodes, sizes_.bytes - level.sizes_before.bytes};
    sizes_ = level.sizes_before;
    add(std::move(level.node), level.anchor, size);
  }

  void add(Node node, YAML::anchor_t anchor) {
    const Size size{1, node.text.size()};
    add(std::move(node), anchor, size);
  }
  // `size` is the size of the node's whole subtree.
  void add(Node node, YAML::anchor_t anchor, Size size) {
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

  void add_entry(Open& level, Node value) {
    const Node& key = level.key;
    if (key.kind != Node::Kind::scalar) {
      report({key.place, "SPEC_BAD_SYNTAX",
              key.kind == Node::Kind::null ? "there is no key before the ':'"
                                           : "a key must be a plain word, not a list or a section",
              "write 'key: value'"});
      return;
    }
    if (value.kind == Node::Kind::null) value.place = key.place;  // the library reports the place after the key
    for (const Entry& entry : level.node.entries) {
      if (entry.key != key.text) continue;
      report({key.place, "SPEC_DUPLICATE_KEY",
              shown(key.text) + " is given twice, first on line " + std::to_string(entry.place.line),
              "keep one of them"});
      return;
    }
    level.node.entries.push_back({key.text, key.place, std::move(value)});
  }

  const SourceText& source_;
  Tree tree_;
  std::optional<Node> root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  size_t nodes_ = 0;   // so far, with aliases expanded
  size_t copied_ = 0;  // bytes of text that aliases copied
  Size sizes_;         // of the innermost open node so far
  int documents_ = 0;
  bool last_run_on_ = false;
};

Finding explain(const YAML::Exception& error, const TreeBuilder& builder, const SourceText& source) {
  if (error.mark.is_null())
    return {{}, "SPEC_BAD_SYNTAX", "this is not valid YAML: " + error.msg, "check quotes, brackets and indentation"};
  if (error.msg.find("flow not found") != std::string::npos && builder.open_bracket()) {
    return {*builder.open_bracket(), "SPEC_NOT_CLOSED", "this bracket is not closed",
            "close it with ']' or '}', and put a ',' between its items"};
  }
  return explain_syntax(error.msg, error.mark.line, error.mark.column, source);
}

}  // namespace

Tree parse_tree(std::string_view yaml) {
  if (yaml.starts_with("\xEF\xBB\xBF")) yaml.remove_prefix(3);  // a byte order mark
  const SourceText source(yaml);
  Tree bad;
  bad.findings = source.check();
  bad.complete = false;
  if (!bad.findings.empty()) return bad;

  TreeBuilder builder(source);
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.finish(true);
  } catch (const Stop& stop) {
    builder.report(stop.finding);
  } catch (const YAML::Exception& error) {
    builder.forget_run_on();
    builder.report(explain(error, builder, source));
  }
  return builder.finish(false);
}

Node* Node::find(std::string_view key) {
  for (Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

}  // namespace sinew::spec
