// Reads and checks the values of options that are numbers: whole and real ones, sizes in bytes, and amounts of training
// or time.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "spec/value_readers.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

std::string number_hint(const Node& node) {
  if (node.kind != Node::Kind::scalar) return "";
  if (node.text.starts_with("0x") || node.text.starts_with("0o")) return "write it in decimal";
  if (node.quoted && is_number(node.text)) return "remove the quotes: " + node.text;
  std::string bare = node.text;
  std::erase_if(bare, [](char letter) { return letter == '_' || letter == ',' || letter == '\''; });
  while (bare.size() > 1 && bare[0] == '0' && std::isdigit(static_cast<unsigned char>(bare[1])) != 0) bare.erase(0, 1);
  if (bare != node.text && is_number(bare)) return "write " + bare;
  return "";
}

bool unit_allowed(const Duration& duration, const Option& option) {
  static constexpr const char* kUnits[] = {"ep", "st", "sp", "tok", "s", "dur"};  // in the order of Duration::Unit
  const std::string words = " " + option.type.units + " ";
  return words.find(std::string(" ") + kUnits[static_cast<int>(duration.unit)] + " ") != std::string::npos;
}

std::string unit_words(const Option& option) {
  std::string words;
  for (const char letter : option.type.units) words += letter == ' ' ? std::string(", ") : std::string(1, letter);
  return words;
}

std::string unit_examples(const std::string& number, const Option& option) {
  const bool times = option.type.kind == Kind::time;
  return times ? number + "h (hours), " + number + "m (minutes)" : number + "ep (epochs), " + number + "st (steps)";
}

std::string duration_hint(const std::string& text, const Option& option) {
  std::string bare = text;
  std::erase(bare, ' ');
  if (bare != text && parse_duration(bare)) return "write it without the space: " + bare;
  if (text.find("${") != std::string::npos) return "";
  if (is_number(text)) return "add a unit: " + unit_examples(text, option);
  return "write a number and one of " + unit_words(option) +
         (option.type.kind == Kind::time ? "" : "; k, M and G before st, sp, tok") + ": " + example(option);
}

}  // namespace

bool read_whole(const Node& node, ValueProblems& problems, Whole& value) {
  if (!is_number_node(node)) return problems.wrong(node, number_hint(node));
  const std::optional<Whole> whole = parse_whole(node.text);
  const std::optional<double> number = parse_number(node.text);
  if (!whole) {
    const bool fraction = number && *number != std::floor(*number);
    return fraction ? problems.wrong(node) : problems.out_of_range(node);
  }
  const Type& type = problems.option().type;
  const std::vector<std::string>& choices = type.choices;
  if (!choices.empty()) {
    const std::string text = (whole->negative ? "-" : "") + std::to_string(whole->magnitude);
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) return problems.out_of_range(node);
    value = *whole;
    return true;
  }
  // A double cannot hold every 64-bit seed exactly. This is harmless, because the seed may be any 64-bit number, which
  // parse_whole has checked.
  const double rounded =
      whole->negative ? -static_cast<double>(whole->magnitude) : static_cast<double>(whole->magnitude);
  if (!type.range.holds(rounded) && !(type.zero && rounded == 0)) return problems.out_of_range(node);
  value = *whole;
  return true;
}

bool read_real(const Node& node, ValueProblems& problems, double& value) {
  const Option& option = problems.option();
  if (option.type.kind == Kind::time) {
    Duration duration;
    if (!read_duration(node, problems, duration)) return false;
    value = duration.amount;
    return true;
  }
  if (!is_number_node(node)) return problems.wrong(node, number_hint(node));
  const std::optional<double> number = parse_number(node.text);
  if (!number || !option.type.range.holds(*number)) return problems.out_of_range(node);
  value = *number;
  return true;
}

bool read_bytes(const Node& node, ValueProblems& problems, int64_t& value) {
  const Option& option = problems.option();
  constexpr uint64_t kMost = 999'999'999'999'999'999;  // as many digits as a size with a unit may have
  std::optional<int64_t> bytes;
  if (is_number_node(node)) {
    const std::optional<Whole> whole = parse_whole(node.text);
    if (whole && !whole->negative && whole->magnitude <= kMost) bytes = static_cast<int64_t>(whole->magnitude);
  } else if (is_string_node(node)) {
    bytes = parse_bytes(node.text);
  }
  if (bytes == 0)
    return problems.say(node, "SPEC_OUT_OF_RANGE", option.key + " must be more than 0",
                        "for example " + example(option));
  if (!bytes) {
    return problems.malformed(
        node, "write a whole number and B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, without a space: " + example(option));
  }
  value = *bytes;
  return true;
}

bool read_duration(const Node& node, ValueProblems& problems, Duration& value) {
  const Option& option = problems.option();
  if (is_number_node(node)) return problems.wrong(node, "add a unit: " + unit_examples(node.text, option));
  if (!is_string_node(node)) return problems.wrong(node);
  const std::optional<Duration> duration = parse_duration(node.text);
  if (!duration) return problems.malformed(node, duration_hint(node.text, option));
  if (!unit_allowed(*duration, option)) {
    return problems.say(node, "SPEC_BAD_UNIT", option.key + " does not take the unit of " + shown(node.text),
                        option.type.units.find('h') == std::string::npos
                            ? "use one of " + unit_words(option) + ": the result must not depend on the clock"
                            : "use one of " + unit_words(option));
  }
  if (duration->amount <= 0 && !option.type.zero) {
    return problems.say(node, "SPEC_OUT_OF_RANGE", option.key + " must be more than 0, got " + shown(node.text),
                        "for example " + example(option));
  }
  value = *duration;
  return true;
}

}  // namespace sinew::spec
