#include "spec/tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "spec/one_line.h"
#include "spec/source_text.h"
#include "spec/syntax.h"
#include "spec/tree_builder.h"

namespace sinew::spec {
namespace {

// Passes the library's events to the builder, and refuses the YAML that a job file does not use.
class YamlEvents : public YAML::EventHandler {
 public:
  YamlEvents(const SourceText& source, TreeBuilder& builder, std::vector<Finding>& findings)
      : source_(source), builder_(builder), findings_(findings) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    throw Stop{{position(mark), "SPEC_UNSUPPORTED_YAML", "a second document begins here",
                "a job file is a single document: delete the line '---' or '...'"}};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    builder_.count_node(position(mark));
    Node node;
    node.position = position(mark);
    builder_.add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { builder_.add_alias(anchor, position(mark)); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    builder_.count_node(position(mark));
    Node node;
    node.kind = Node::Kind::scalar;
    node.broken = refuse_tag(mark, tag);
    node.position = position(mark);
    node.text = value;
    node.quoted = tag == "!";
    refuse_several_lines(mark, node, anchor != 0);
    builder_.add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, Node::Kind::list, style);
  }
  void OnSequenceEnd() override { builder_.close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, Node::Kind::map, style);
  }
  void OnMapEnd() override { builder_.close(); }

  // Removes the finding "this value continues on the next line", if it is the newest. A missing ':' or a wrong
  // indentation causes first this finding and then a syntax error, which describes the mistake better.
  void forget_run_on() {
    if (last_run_on_) findings_.pop_back();
    last_run_on_ = false;
  }

 private:
  Position position(const YAML::Mark& mark) const { return source_.position(mark.line, mark.column); }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind,
            YAML::EmitterStyle::value style) {
    refuse_tag(mark, tag);
    builder_.count_node(position(mark));
    builder_.open(kind, position(mark), anchor, style == YAML::EmitterStyle::Flow);
  }

  bool refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    const bool written = source_.rest_of_line(mark.line, mark.column).starts_with('!');
    const bool refused = written || !(tag.empty() || tag == "?" || tag == "!");
    if (refused) {
      findings_.push_back({position(mark), "SPEC_UNSUPPORTED_YAML", "job files do not use YAML tags ('!...')",
                           "delete the tag; to make a value a string, put it in quotes"});
    }
    return refused;
  }

  void refuse_several_lines(const YAML::Mark& mark, Node& node, bool anchored) {
    std::string_view rest = source_.rest_of_line(mark.line, mark.column);
    if (anchored && rest.starts_with('&')) {
      rest.remove_prefix(std::min(rest.find(' '), rest.size()));
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    }
    last_run_on_ = false;
    if (node.broken) return;  // its tag is already reported
    auto problem = not_on_one_line(node, rest);
    if (!problem) return;
    node.broken = true;
    last_run_on_ = !node.quoted;
    findings_.push_back(*std::move(problem));
  }

  const SourceText& source_;
  TreeBuilder& builder_;
  std::vector<Finding>& findings_;
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
  Tree tree;
  tree.findings = source.check();
  tree.complete = false;
  if (!tree.findings.empty()) return tree;

  TreeBuilder builder(tree.findings);
  YamlEvents events(source, builder, tree.findings);
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
    tree.complete = true;
  } catch (const Stop& stop) {
    tree.findings.push_back(stop.finding);
  } catch (const YAML::Exception& error) {
    events.forget_run_on();
    tree.findings.push_back(explain(error, builder, source));
  }
  if (!tree.complete) builder.close_all();
  tree.root = builder.take_root();
  return tree;
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));
}

}  // namespace sinew::spec
