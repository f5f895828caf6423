// Reads texts: choices, names, metrics, paths, and the arguments of a command.
#include <algorithm>

#include "base/comparison.h"
#include "base/error.h"
#include "base/utf8.h"
#include "spec/value_readers.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

// Reads the texts of one option.
class TextReader {
 public:
  TextReader(ValueProblems& problems, const Environment& environment)
      : problems_(problems), option_(problems.option()), environment_(environment) {}

  bool read(const Node& node, std::string& value) {
    switch (option_.type.kind) {
      case Kind::choice: return read_choice(node, value);
      case Kind::metric: return read_metric(node, value);
      case Kind::interval: return read_interval(node, value);
      case Kind::comparison: return read_comparison(node, value);
      case Kind::word: return read_word(node, value);
      default: return read_text(node, value);
    }
  }

  bool read_named(const Node& node, NamedValue& value) {
    if (node.kind != Node::Kind::scalar) {
      return problems_.say(
          node, "SPEC_WRONG_TYPE",
          option_.key + "." + value.name + " needs a number, a word, true or false, got " + described(node),
          "write one value for each name: " + option_.key + ": " + example(option_));
    }
    value.kind = is_number_node(node)     ? NamedValue::Kind::number
                 : is_true_or_false(node) ? NamedValue::Kind::flag
                                          : NamedValue::Kind::text;
    value.value = node.text;
    if (value.kind != NamedValue::Kind::text || (node.quoted && node.text.empty())) return true;
    if (!read_text(node, value.value)) return false;
    const bool names = node.text.find("${") != std::string::npos && escape_dollars(value.value) != node.text;
    if (option_.key == "env" && names) value.given = node.text;
    return true;
  }

 private:
  bool read_choice(const Node& node, std::string& value) {
    const std::vector<std::string>& choices = option_.type.choices;
    if (!is_string_node(node)) return problems_.wrong(node);
    if (std::find(choices.begin(), choices.end(), node.text) == choices.end()) {
      const std::string meant = did_you_mean(node.text, choices);
      return problems_.say(
          node, "SPEC_BAD_CHOICE", option_.key + " cannot be " + shown(node.text),
          (meant.empty() ? "" : "did you mean '" + meant + "'? ") + ("choose one of: " + listed(choices)));
    }
    value = node.text;
    return true;
  }

  bool read_metric(const Node& node, std::string& value) {
    if (!is_string_node(node)) return problems_.wrong(node);
    const bool is_auto = option_.type.auto_metric && node.text == "auto";
    if (!is_auto && !is_metric(node.text)) {
      return problems_.malformed(node, node.text.find('/') == std::string::npos && is_metric("val/" + node.text)
                                           ? "name the split: val/" + node.text
                                           : "write a split and a name: val/loss, val/accuracy, train/loss");
    }
    value = node.text;
    return true;
  }

  bool read_comparison(const Node& node, std::string& value) {
    if (!read_text(node, value)) return false;
    try {
      const Comparison read(value);
    } catch (const Error& error) {
      return problems_.say(node, error.code, option_.key + ": " + error.what(), error.hint);
    }
    return true;
  }

  bool read_interval(const Node& node, std::string& value) {
    Duration duration;
    if (!(is_string_node(node) && node.text == "never") && !read_duration(node, problems_, duration)) return false;
    value = node.text;
    return true;
  }

  // Reads an argument as a shell does: 10 and true are the texts "10" and "true", and "" is a valid argument.
  bool read_word(const Node& node, std::string& value) {
    if (node.kind != Node::Kind::scalar) return problems_.wrong(node);
    return (node.quoted && node.text.empty()) || read_expanded(node, value);
  }

  bool read_text(const Node& node, std::string& value) {
    if (node.kind == Node::Kind::scalar && (!is_string_node(node) || is_ambiguous(node))) {
      return problems_.wrong(node, "put it in quotes if it is a text: '" + node.text + "'");
    }
    if (!is_string_node(node)) return problems_.wrong(node);
    return read_expanded(node, value);
  }

  bool read_expanded(const Node& node, std::string& value) {
    const Expanded expanded = expand_variables(node.text, environment_);
    if (!expanded.problem.empty())
      return problems_.say(node, expanded.code, problems_.subject() + ": " + expanded.problem, expanded.hint);
    const bool replaced = expanded.text != node.text;
    const std::string from = replaced ? ", from " + shown(node.text) : "";
    const auto refuse = [&](ErrorCode code, const std::string& what, const std::string& hint) {
      return problems_.say(node, replaced ? ErrorCode("SPEC_BAD_VARIABLE_VALUE") : code, what + from, hint);
    };
    if (expanded.text.empty()) {
      return refuse("SPEC_MISSING_VALUE", problems_.subject() + " is empty",
                    option_.unset.empty() ? problems_.usage() : "to mean '" + option_.unset + "', leave the key out");
    }
    if (first_invalid_utf8(expanded.text) != std::string_view::npos)
      return refuse("SPEC_BAD_BYTES", problems_.subject() + " is not UTF-8 text",
                    "set the environment variable to UTF-8 text");
    const bool lines = option_.type.kind == Kind::word;  // a command's arguments may hold line ends and tabs
    const auto is_control = [lines](unsigned char letter) {
      return (letter < 0x20 && !(lines && (letter == '\n' || letter == '\t'))) || letter == 0x7F;
    };
    if (std::any_of(expanded.text.begin(), expanded.text.end(), is_control)) {
      return refuse("SPEC_BAD_BYTES", problems_.subject() + " contains a control character",
                    "delete line ends and other control characters");
    }
    if (option_.type.kind == Kind::name && !is_name(expanded.text)) {
      return refuse("SPEC_BAD_NAME", option_.key + " cannot be " + shown(expanded.text),
                    "use at most 64 letters, digits, '_', '-', '.' or spaces, and start with a letter, digit or '_'");
    }
    value = expanded.text;
    return true;
  }

  ValueProblems& problems_;
  const Option& option_;
  const Environment& environment_;
};

}  // namespace

bool read_text_of_kind(const Node& node, ValueProblems& problems, const Environment& environment, std::string& value) {
  return TextReader(problems, environment).read(node, value);
}

bool read_named_value(const Node& node, ValueProblems& problems, const Environment& environment, NamedValue& value) {
  return TextReader(problems, environment).read_named(node, value);
}

}  // namespace sinew::spec
