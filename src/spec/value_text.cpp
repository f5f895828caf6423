// Writes texts about an option: its value, the values that it accepts, and an example.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/joined.h"
#include "spec/amounts.h"
#include "spec/search.h"
#include "spec/values.h"

namespace sinew::spec {

std::string quoted_text(const std::string& text) {
  const auto is_plain = [](unsigned char letter) {
    return letter < 0x80 &&
           (std::isalnum(letter) != 0 || letter == '_' || letter == '/' || letter == '.' || letter == '-');
  };
  const bool plain = std::all_of(text.begin(), text.end(), is_plain) && !text.empty() &&
                     (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '/');
  std::string lower = text;
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  static const std::vector<std::string> kWords = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"};
  if (plain && std::find(kWords.begin(), kWords.end(), lower) == kWords.end()) return text;
  std::string escaped = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') escaped += '\\';
    escaped += letter == '\n' ? "\\n" : letter == '\t' ? "\\t" : std::string(1, letter);
  }
  return escaped + '"';
}

namespace {

class Writer {
 public:
  explicit Writer(const Option& option) : option_(option) {}

  std::string write(const std::string& value) const {
    const Kind kind = option_.type.kind;
    if (kind == Kind::interval) return value;
    const bool expands = kind == Kind::text || kind == Kind::path || kind == Kind::name || kind == Kind::word;
    return quoted_text(expands ? escape_dollars(value) : value);
  }
  std::string write(bool value) const { return value ? "true" : "false"; }
  std::string write(int64_t value) const {
    return option_.type.kind == Kind::bytes ? bytes_text(value) : std::to_string(value);
  }
  std::string write(uint64_t value) const { return std::to_string(value); }
  std::string write(double value) const {
    return option_.type.kind == Kind::time ? time_text(value) : number_text(value);
  }
  std::string write(const Auto<int64_t>& value) const { return value ? write(*value) : "auto"; }
  std::string write(const Duration& value) const { return to_string(value); }
  std::string write(const std::optional<Objective>& value) const { return value ? to_string(*value) : ""; }
  std::string write(const Objective& value) const { return to_string(value); }
  std::string write(const NamedValue& value) const {
    const bool text = value.kind == NamedValue::Kind::text;
    const std::string written = value.given.empty() ? escape_dollars(value.value) : value.given;
    return value.name + ": " + (text ? quoted_text(written) : value.value);
  }
  std::string write(const std::vector<NamedValue>& values) const {
    return "{" + joined(values, ", ", [this](const NamedValue& value) { return write(value); }) + "}";
  }
  std::string write(const std::vector<SearchParameter>& search) const { return search_text(search); }
  template <typename T>
  std::string write(const std::vector<T>& values) const {
    return "[" + joined(values, ", ", [this](const T& value) { return write(value); }) + "]";
  }

 private:
  const Option& option_;
};

// Writes whole numbers with all digits, because 1e+06 is hard to read.
std::string bound_text(double bound) {
  return bound == std::floor(bound) ? std::to_string(static_cast<int64_t>(bound)) : number_text(bound);
}

std::string range_text(const Range& range) {
  if (!range.open_low && !range.open_high) return "from " + bound_text(range.low) + " to " + bound_text(range.high);
  return (range.open_low ? "above " : "of at least ") + bound_text(range.low) +
         (range.open_high ? " and below " : " and at most ") + bound_text(range.high);
}

std::string whole_range(const Option& option) {
  // Writes the largest 64-bit number with all digits, because 1.8446744073709552e+19 is hard to read.
  const bool fills_64_bits = std::holds_alternative<uint64_t& (*)(Job&)>(option.access);
  const auto low = std::to_string(static_cast<int64_t>(option.type.range.low));
  return "from " + low + " to " +
         (fills_64_bits ? std::to_string(~0ULL) : std::to_string(static_cast<int64_t>(option.type.range.high)));
}

std::string spaced(const std::string& words) {
  std::string text;
  for (const char letter : words) text += letter == ' ' ? std::string(", ") : std::string(1, letter);
  return text;
}

}  // namespace

std::string value_text(const Option& option, const Job& job) {
  if (!is_set(option, job)) return "";
  const Writer writer(option);
  return visit_value(option, job, [&](const auto& value) { return writer.write(value); });
}

std::string item_expectation(const Option& option) {
  const Type& type = option.type;
  switch (type.kind) {
    case Kind::text: return "a string";
    case Kind::word: return "a word";
    case Kind::values: return "names, each with a number, a word, true or false";
    case Kind::path: return "a path";
    case Kind::name: return "a plain name";
    case Kind::metric: return type.auto_metric ? "a metric like val/loss, or auto" : "a metric like val/loss";
    case Kind::choice: return "one of " + listed(type.choices);
    case Kind::flag: return "true or false";
    case Kind::whole:
      if (!type.choices.empty()) return either(type.choices);
      return "a whole number " + whole_range(option) +
             (option.can_be_auto() ? ", or auto"
              : option.type.zero   ? ", or 0"
                                   : "");
    case Kind::number: return "a number " + range_text(type.range);
    case Kind::duration: return "a duration in " + spaced(type.units);
    case Kind::interval: return "a duration in " + spaced(type.units) + ", or never";
    case Kind::bytes: return "a size in bytes";
    case Kind::time: return "a time in " + spaced(type.units);
    case Kind::objective: return "a metric, '>=' or '<=', and a number";
    case Kind::comparison: return "a comparison of parameters";
    case Kind::search: return "options, each with a range or a list of values";
  }
  return "";
}

std::string expectation(const Option& option) {
  if (!option.is_list()) return item_expectation(option);
  const Type& type = option.type;
  const std::string count = type.min_items == type.max_items ? "a list of " + std::to_string(type.min_items) : "a list";
  return count + ", each " + item_expectation(option);
}

std::string example(const Option& option) {
  if (option.can_be_auto()) return "4";
  if (option.type.kind == Kind::duration && option.type.zero) return "500st";
  const std::string usual = value_text(option, Job{});
  if (!usual.empty() && usual != "0") return usual;
  const std::string item = [&]() -> std::string {
    switch (option.type.kind) {
      case Kind::path: return "data/train.csv";
      case Kind::metric: return "val/loss";
      case Kind::time: return "2h";
      case Kind::bytes: return "4GiB";
      case Kind::objective: return "val/accuracy >= 0.92";
      case Kind::comparison: return "model.dim % model.heads == 0";
      case Kind::word: return "train.sh";
      case Kind::choice: return option.type.choices.front();
      case Kind::values: return option.key == "env" ? "{LANG: C}" : "{lr: 0.1, kind: small}";
      case Kind::search: return "{optimizer.lr: {low: 1e-4, high: 1e-1, log: true}}";
      case Kind::whole: return number_text(std::clamp(4.0, option.type.range.low, option.type.range.high));
      case Kind::number: return number_text(option.type.range.holds(0.1) ? 0.1 : option.type.range.high);
      default: return "price";
    }
  }();
  if (!option.is_list()) return item;
  return option.type.min_items == 2 ? "[" + item + ", " + item + "]" : "[" + item + "]";
}

}  // namespace sinew::spec
