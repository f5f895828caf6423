#include "spec/values.h"

#include "spec/search.h"
#include "spec/value_readers.h"

namespace sinew::spec {
namespace {

// Reads the value of one option by the type of its member of Job. Each problem becomes one finding.
class Reader {
 public:
  Reader(const Option& option, const Environment& environment, std::vector<Finding>& findings)
      : option_(option), environment_(environment), findings_(findings), problems_(option, findings) {}

  bool read(const Node& node, std::string& value) { return read_text_of_kind(node, problems_, environment_, value); }
  bool read(const Node& node, double& value) { return read_real(node, problems_, value); }
  bool read(const Node& node, Duration& value) { return read_duration(node, problems_, value); }

  bool read(const Node& node, bool& value) {
    if (!is_true_or_false(node)) {
      const bool word = node.kind == Node::Kind::scalar &&
                        is_one_of(lower(node.text), {"yes", "no", "on", "off", "true", "false", "y", "n", "0", "1"});
      return problems_.wrong(node, word ? "write true or false, in lower case and without quotes" : "");
    }
    value = node.text == "true";
    return true;
  }

  bool read(const Node& node, int64_t& value) {
    if (option_.type.kind == Kind::bytes) return read_bytes(node, problems_, value);
    Whole whole;
    if (!read_whole(node, problems_, whole)) return false;
    value = whole.negative ? -static_cast<int64_t>(whole.magnitude) : static_cast<int64_t>(whole.magnitude);
    return true;
  }

  bool read(const Node& node, uint64_t& value) {
    Whole whole;
    if (!read_whole(node, problems_, whole)) return false;
    value = whole.magnitude;
    return true;
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

  bool read(const Node& node, std::optional<Objective>& value) {
    if (!is_string_node(node)) return problems_.wrong(node);
    value = parse_objective(node.text);
    return value ? true : problems_.malformed(node);
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
    if (node.kind != Node::Kind::map || node.entries.empty()) return problems_.wrong(node);
    bool good = true;
    for (const Entry& entry : node.entries) {
      if (!is_variable_name(entry.key)) {
        findings_.push_back({entry.position, "SPEC_BAD_NAME",
                             option_.key + ": " + shown(entry.key) + " is not a valid name",
                             "use at most 64 letters, digits and '_', and start with a letter or '_'"});
        good = false;
        continue;
      }
      NamedValue value{entry.key, "", NamedValue::Kind::text};
      good = !entry.value.broken && read_named_value(entry.value, problems_, environment_, value) && good;
      values.push_back(std::move(value));
    }
    return good;
  }

  template <typename T>
  bool read(const Node& node, std::vector<T>& values) {
    if (node.kind != Node::Kind::list) {
      return problems_.wrong(node, node.kind == Node::Kind::scalar
                                       ? "put it in brackets: " + option_.leaf() + ": " + example(option_)
                                       : "");
    }
    bool good = true;
    values.clear();
    problems_.set_in_list(true);
    for (const Node& item : node.items) {
      T value{};
      good = !item.broken && read(item, value) && good;
      values.push_back(std::move(value));
    }
    problems_.set_in_list(false);
    const Type& type = option_.type;
    if (values.size() < type.min_items || values.size() > type.max_items) {
      const std::string wanted = type.min_items == type.max_items
                                     ? "exactly " + std::to_string(type.min_items)
                                     : std::to_string(type.min_items) + " to " + std::to_string(type.max_items);
      return problems_.say(
          node, "SPEC_BAD_LENGTH", option_.key + " needs " + wanted + " items, got " + std::to_string(values.size()),
          values.empty() && !option_.unset.empty() ? "to mean '" + option_.unset + "', leave the key out"
                                                   : problems_.usage());
    }
    return good;
  }

 private:
  const Option& option_;
  const Environment& environment_;
  std::vector<Finding>& findings_;
  ValueProblems problems_;
};

}  // namespace

bool read_value(const Option& option, const Node& node, const Environment& environment, Job& job,
                std::vector<Finding>& findings) {
  if (node.broken) return false;
  Reader reader(option, environment, findings);
  return visit_value(option, job, [&](auto& value) { return reader.read(node, value); });
}

}  // namespace sinew::spec
