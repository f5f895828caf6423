#include "spec/values.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/comparison.h"
#include "base/error.h"
#include "base/utf8.h"
#include "spec/amounts.h"
#include "spec/search.h"

namespace sinew::spec {
namespace {

// Reads the value of one option. Each problem becomes one finding.
class Reader {
 public:
  Reader(const Option& option, const Environment& environment, std::vector<Finding>& findings)
      : option_(option), environment_(environment), findings_(findings) {}

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

  bool read(const Node& node, bool& value) {
    if (!is_true_or_false(node)) {
      const bool word = node.kind == Node::Kind::scalar &&
                        is_one_of(lower(node.text), {"yes", "no", "on", "off", "true", "false", "y", "n", "0", "1"});
      return wrong(node, word ? "write true or false, in lower case and without quotes" : "");
    }
    value = node.text == "true";
    return true;
  }

  bool read(const Node& node, int64_t& value) {
    if (option_.type.kind == Kind::bytes) return read_bytes(node, value);
    uint64_t magnitude = 0;
    bool negative = false;
    if (!read_whole(node, magnitude, negative)) return false;
    value = negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
    return true;
  }

  bool read(const Node& node, uint64_t& value) {
    bool negative = false;
    return read_whole(node, value, negative);
  }

  bool read(const Node& node, Auto<int64_t>& value) {
    if (is_string_node(node) && node.text == "auto") {
      value.reset();
      return true;
    }
    int64_t number = 0;
    if (!read(node, number)) return false;
    value = number;
    return true;
  }

  bool read(const Node& node, double& value) {
    if (option_.type.kind == Kind::time) {
      Duration duration;
      if (!read(node, duration)) return false;
      value = duration.amount;
      return true;
    }
    if (!is_number_node(node)) return wrong(node, number_hint(node));
    const std::optional<double> number = parse_number(node.text);
    if (!number || !option_.type.range.holds(*number)) return out_of_range(node);
    value = *number;
    return true;
  }

  bool read(const Node& node, Duration& value) {
    if (is_number_node(node)) return wrong(node, "add a unit: " + unit_examples(node.text));
    if (!is_string_node(node)) return wrong(node);
    const std::optional<Duration> duration = parse_duration(node.text);
    if (!duration) return malformed(node, duration_hint(node.text));
    if (!unit_allowed(*duration)) {
      return say(node, "SPEC_BAD_UNIT", option_.key + " does not take the unit of " + shown(node.text),
                 option_.type.units.find('h') == std::string::npos
                     ? "use one of " + unit_words() + ": the result must not depend on the clock"
                     : "use one of " + unit_words());
    }
    if (duration->amount <= 0 && !option_.type.zero) {
      return say(node, "SPEC_OUT_OF_RANGE", option_.key + " must be more than 0, got " + shown(node.text),
                 "for example " + example(option_));
    }
    value = *duration;
    return true;
  }

  bool read(const Node& node, std::optional<Objective>& value) {
    if (!is_string_node(node)) return wrong(node);
    value = parse_objective(node.text);
    return value ? true : malformed(node);
  }

  bool read(const Node& node, Objective& value) {
    std::optional<Objective> one;
    if (!read(node, one)) return false;
    value = *std::move(one);
    return true;
  }

  bool read(const Node& node, std::vector<SearchParameter>& search) {
    search.clear();
    return read_search(node, environment_, search, findings_);
  }

  bool read(const Node& node, std::vector<NamedValue>& values) {
    values.clear();
    if (node.kind != Node::Kind::map || node.entries.empty()) return wrong(node);
    bool good = true;
    for (const Entry& entry : node.entries) {
      if (!is_variable_name(entry.key)) {
        findings_.push_back({entry.place, "SPEC_BAD_NAME",
                             option_.key + ": " + shown(entry.key) + " is not a valid name",
                             "use at most 64 letters, digits and '_', and start with a letter or '_'"});
        good = false;
        continue;
      }
      NamedValue value{entry.key, "", NamedValue::Kind::text};
      good = !entry.value.broken && read_named(entry.value, value) && good;
      values.push_back(std::move(value));
    }
    return good;
  }

  template <typename T>
  bool read(const Node& node, std::vector<T>& values) {
    if (node.kind != Node::Kind::list) {
      return wrong(node, node.kind == Node::Kind::scalar
                             ? "put it in brackets: " + option_.leaf() + ": " + example(option_)
                             : "");
    }
    bool good = true;
    values.clear();
    in_list_ = true;
    for (const Node& item : node.items) {
      T value{};
      good = !item.broken && read(item, value) && good;
      values.push_back(std::move(value));
    }
    in_list_ = false;
    const Type& type = option_.type;
    if (values.size() < type.min_items || values.size() > type.max_items) {
      const std::string wanted = type.min_items == type.max_items
                                     ? "exactly " + std::to_string(type.min_items)
                                     : std::to_string(type.min_items) + " to " + std::to_string(type.max_items);
      return say(node, "SPEC_BAD_LENGTH",
                 option_.key + " needs " + wanted + " items, got " + std::to_string(values.size()),
                 values.empty() && !option_.unset.empty() ? "to mean '" + option_.unset + "', leave the key out"
                                                          : "for example " + option_.leaf() + ": " + example(option_));
    }
    return good;
  }

 private:
  bool say(const Node& node, ErrorCode code, std::string what, std::string hint) {
    findings_.push_back({node.place, code, std::move(what), std::move(hint)});
    return false;
  }

  bool malformed(const Node& node, std::string hint = "") { return wrong(node, std::move(hint), "SPEC_BAD_FORMAT"); }

  bool wrong(const Node& node, std::string hint = "", ErrorCode code = "SPEC_WRONG_TYPE") {
    if (node.kind == Node::Kind::null) {
      return say(node, "SPEC_MISSING_VALUE", subject() + " has no value",
                 "write " + wanted() + (in_list_ ? "" : ", or leave the key out"));
    }
    if (hint.empty() && node.kind == Node::Kind::scalar && node.text.find("${") != std::string::npos) {
      hint = "variables are replaced in texts, names and paths only; use an override: " + option_.key + "=...";
    }
    if (hint.empty()) hint = "for example " + option_.leaf() + ": " + example(option_);
    return say(node, code, subject() + " needs " + wanted() + ", got " + described(node), hint);
  }

  std::string subject() const { return in_list_ ? "an item of " + option_.key : option_.key; }
  std::string wanted() const { return in_list_ ? item_expectation(option_) : expectation(option_); }

  bool out_of_range(const Node& node) {
    return say(node, "SPEC_OUT_OF_RANGE", subject() + " is " + node.text + ", but must be " + wanted(),
               "for example " + option_.leaf() + ": " + example(option_));
  }

  static std::string number_hint(const Node& node) {
    if (node.kind != Node::Kind::scalar) return "";
    if (node.text.starts_with("0x") || node.text.starts_with("0o")) return "write it in decimal";
    if (node.quoted && is_number(node.text)) return "remove the quotes: " + node.text;
    std::string bare = node.text;
    std::erase_if(bare, [](char letter) { return letter == '_' || letter == ',' || letter == '\''; });
    while (bare.size() > 1 && bare[0] == '0' && std::isdigit(static_cast<unsigned char>(bare[1])) != 0)
      bare.erase(0, 1);
    if (bare != node.text && is_number(bare)) return "write " + bare;
    return "";
  }

  bool read_whole(const Node& node, uint64_t& magnitude, bool& negative) {
    if (!is_number_node(node)) return wrong(node, number_hint(node));
    const std::optional<Whole> whole = parse_whole(node.text);
    const std::optional<double> number = parse_number(node.text);
    if (!whole) {
      const bool fraction = number && *number != std::floor(*number);
      return fraction ? wrong(node) : out_of_range(node);
    }
    const std::vector<std::string>& choices = option_.type.choices;
    if (!choices.empty()) {
      const std::string text = (whole->negative ? "-" : "") + std::to_string(whole->magnitude);
      if (std::find(choices.begin(), choices.end(), text) == choices.end()) return out_of_range(node);
      magnitude = whole->magnitude;
      return true;
    }
    // A double is too coarse for the 64 bits of the seed, but the seed's bounds are those that parse_whole checks.
    const double value =
        whole->negative ? -static_cast<double>(whole->magnitude) : static_cast<double>(whole->magnitude);
    if (!option_.type.range.holds(value)) return out_of_range(node);
    magnitude = whole->magnitude;
    negative = whole->negative;
    return true;
  }

  bool read_bytes(const Node& node, int64_t& value) {
    constexpr uint64_t kMost = 999'999'999'999'999'999;  // as many digits as a size with a unit may have
    std::optional<int64_t> bytes;
    if (is_number_node(node)) {
      const std::optional<Whole> whole = parse_whole(node.text);
      if (whole && !whole->negative && whole->magnitude <= kMost) bytes = static_cast<int64_t>(whole->magnitude);
    } else if (is_string_node(node)) {
      bytes = parse_bytes(node.text);
    }
    if (bytes == 0)
      return say(node, "SPEC_OUT_OF_RANGE", option_.key + " must be more than 0", "for example " + example(option_));
    if (!bytes) {
      return malformed(node, "write a whole number and B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, without a space: " +
                                 example(option_));
    }
    value = *bytes;
    return true;
  }

  bool read_choice(const Node& node, std::string& value) {
    const std::vector<std::string>& choices = option_.type.choices;
    if (!is_string_node(node)) return wrong(node);
    if (std::find(choices.begin(), choices.end(), node.text) == choices.end()) {
      const std::string meant = did_you_mean(node.text, choices);
      return say(node, "SPEC_BAD_CHOICE", option_.key + " cannot be " + shown(node.text),
                 (meant.empty() ? "" : "did you mean '" + meant + "'? ") + ("choose one of: " + listed(choices)));
    }
    value = node.text;
    return true;
  }

  bool read_metric(const Node& node, std::string& value) {
    if (!is_string_node(node)) return wrong(node);
    const bool is_auto = option_.type.auto_metric && node.text == "auto";
    if (!is_auto && !is_metric(node.text)) {
      return malformed(node, node.text.find('/') == std::string::npos && is_metric("val/" + node.text)
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
      return say(node, error.code, option_.key + ": " + error.what(), error.hint);
    }
    return true;
  }

  bool read_interval(const Node& node, std::string& value) {
    Duration duration;
    if (!(is_string_node(node) && node.text == "never") && !read(node, duration)) return false;
    value = node.text;
    return true;
  }

  // Takes words as a shell does: 10 and true are the texts "10" and "true", and "" is a valid argument.
  bool read_word(const Node& node, std::string& value) {
    if (node.kind != Node::Kind::scalar) return wrong(node);
    return (node.quoted && node.text.empty()) || read_expanded(node, value);
  }

  bool read_named(const Node& node, NamedValue& value) {
    if (node.kind != Node::Kind::scalar) {
      return say(node, "SPEC_WRONG_TYPE",
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

  bool read_text(const Node& node, std::string& value) {
    if (node.kind == Node::Kind::scalar && (!is_string_node(node) || is_ambiguous(node))) {
      return wrong(node, "put it in quotes if it is a text: '" + node.text + "'");
    }
    if (!is_string_node(node)) return wrong(node);
    return read_expanded(node, value);
  }

  bool read_expanded(const Node& node, std::string& value) {
    const Expanded expanded = expand_variables(node.text, environment_);
    if (!expanded.problem.empty()) return say(node, expanded.code, subject() + ": " + expanded.problem, expanded.hint);
    const bool replaced = expanded.text != node.text;
    const std::string from = replaced ? ", from " + shown(node.text) : "";
    const auto refuse = [&](ErrorCode code, const std::string& what, const std::string& hint) {
      return say(node, replaced ? ErrorCode("SPEC_BAD_VARIABLE_VALUE") : code, what + from, hint);
    };
    if (expanded.text.empty()) {
      return refuse("SPEC_MISSING_VALUE", subject() + " is empty",
                    option_.unset.empty() ? "for example " + option_.leaf() + ": " + example(option_)
                                          : "to mean '" + option_.unset + "', leave the key out");
    }
    if (first_invalid_utf8(expanded.text) != std::string_view::npos)
      return refuse("SPEC_BAD_BYTES", subject() + " is not UTF-8 text", "set the environment variable to UTF-8 text");
    const bool lines = option_.type.kind == Kind::word;  // a command's words may hold line ends and tabs
    const auto is_control = [lines](unsigned char letter) {
      return (letter < 0x20 && !(lines && (letter == '\n' || letter == '\t'))) || letter == 0x7F;
    };
    if (std::any_of(expanded.text.begin(), expanded.text.end(), is_control)) {
      return refuse("SPEC_BAD_BYTES", subject() + " contains a control character",
                    "delete line ends and other control characters");
    }
    if (option_.type.kind == Kind::name && !is_name(expanded.text)) {
      return refuse("SPEC_BAD_NAME", option_.key + " cannot be " + shown(expanded.text),
                    "use at most 64 letters, digits, '_', '-', '.' or spaces, and start with a letter, digit or '_'");
    }
    value = expanded.text;
    return true;
  }

  bool unit_allowed(const Duration& duration) const {
    static constexpr const char* kUnits[] = {"ep", "st", "sp", "tok", "s", "dur"};  // in the order of Duration::Unit
    const std::string words = " " + option_.type.units + " ";
    return words.find(std::string(" ") + kUnits[static_cast<int>(duration.unit)] + " ") != std::string::npos;
  }

  std::string unit_words() const {
    std::string words;
    for (const char letter : option_.type.units) words += letter == ' ' ? std::string(", ") : std::string(1, letter);
    return words;
  }

  std::string unit_examples(const std::string& number) const {
    const bool times = option_.type.kind == Kind::time;
    return times ? number + "h (hours), " + number + "m (minutes)" : number + "ep (epochs), " + number + "st (steps)";
  }

  std::string duration_hint(const std::string& text) const {
    std::string bare = text;
    std::erase(bare, ' ');
    if (bare != text && parse_duration(bare)) return "write it without the space: " + bare;
    if (text.find("${") != std::string::npos) return "";
    if (is_number(text)) return "add a unit: " + unit_examples(text);
    return "write a number and one of " + unit_words() +
           (option_.type.kind == Kind::time ? "" : "; k, M and G before st, sp, tok") + ": " + example(option_);
  }

  const Option& option_;
  const Environment& environment_;
  std::vector<Finding>& findings_;
  bool in_list_ = false;
};

}  // namespace

bool read_value(const Option& option, const Node& node, const Environment& environment, Job& job,
                std::vector<Finding>& findings) {
  if (node.broken) return false;
  Reader reader(option, environment, findings);
  return visit_value(option, job, [&](auto& value) { return reader.read(node, value); });
}

}  // namespace sinew::spec
