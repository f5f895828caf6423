// Reads the values of a parameter of tune.search: a list, or a range from low to high.
#include <cmath>

#include "spec/amounts.h"
#include "spec/search_parameter.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

using Form = SearchParameter::Kind;

bool read_end(const Node& map, const char* key, const std::set<std::string>& meant, const VariedOption& varied,
              double& value) {
  const Node* end = map.find(key);
  if (end == nullptr && meant.contains(key)) return false;  // the unknown key is already reported
  if (end == nullptr)
    return varied.say(map.position, "SPEC_BAD_SEARCH", "tune.search: " + varied.key() + " has no " + key,
                      varied.form());
  if (!varied.fits(*end)) return false;
  const auto number = is_number_node(*end) ? parse_number(end->text) : std::nullopt;
  if (!number)
    return varied.say(end->position, "SPEC_WRONG_TYPE", std::string(key) + " must be a number, got " + described(*end),
                      varied.form());
  value = *number;
  return true;
}

bool read_step(const Node& map, const VariedOption& varied, double& value) {
  const Node* step = map.find("step");
  if (step == nullptr) return true;
  const auto number = !step->broken && is_number_node(*step) ? parse_number(step->text) : std::nullopt;
  const bool whole = varied.option().type.kind == Kind::whole;
  if (!number || !(*number > 0) || (whole && *number != std::floor(*number)))
    return varied.say(
        step->position, "SPEC_WRONG_TYPE",
        std::string("step needs a ") + (whole ? "whole " : "") + "number above 0, got " + described(*step),
        "for example step: " + std::string(whole ? "2" : "0.1"));
  value = *number;
  return true;
}

bool check_range(const SearchParameter& p, Position position, const VariedOption& varied) {
  if (p.low >= p.high)
    return varied.say(position, "SPEC_BAD_RANGE",
                      "low is " + number_text(p.low) + " and must be below high, which is " + number_text(p.high),
                      "write the smaller number as low");
  if (p.log && p.low <= 0)
    return varied.say(position, "SPEC_BAD_RANGE", "a logarithmic range cannot begin at " + number_text(p.low),
                      "choose a low above 0, or delete log");
  if (p.log && p.step > 0)
    return varied.say(position, "SPEC_BAD_RANGE", "step and log cannot be combined", "keep one of the two");
  if (p.step > p.high - p.low)
    return varied.say(position, "SPEC_BAD_RANGE", "step is larger than the range", "choose a smaller step");
  return true;
}

}  // namespace

bool read_choices(const Node& list, const VariedOption& varied, SearchParameter& parameter) {
  parameter.kind = Form::choice;
  if (list.broken) return false;
  if (list.kind != Node::Kind::list)
    return varied.say(list.position, "SPEC_BAD_SEARCH", "choices needs a list, got " + described(list), varied.form());
  if (list.items.empty())
    return varied.say(list.position, "SPEC_BAD_SEARCH", "tune.search: " + varied.key() + " has an empty list",
                      varied.form());
  bool good = true;
  std::set<std::string> seen;
  for (const Node& item : list.items) {
    good = varied.fits(item) && good;
    const std::string text = flow_text(item);
    if (!seen.insert(text).second)
      good = varied.say(item.position, "SPEC_BAD_SEARCH", text + " is listed twice", "keep one of them");
    parameter.choices.push_back(text);
  }
  return good;
}

bool read_listed_choices(const Node& map, const VariedOption& varied, SearchParameter& parameter) {
  bool good = varied.refuse(map, {"low", "high", "log", "step"}, " cannot be given together with choices");
  good = varied.read_flag(map, "ordered", parameter.ordered) && good;
  return read_choices(*map.find("choices"), varied, parameter) && good;
}

bool read_range(const Node& map, const std::set<std::string>& meant, const VariedOption& varied,
                SearchParameter& parameter) {
  const Option& option = varied.option();
  parameter.kind = option.type.kind == Kind::whole ? Form::whole : Form::real;
  if (!takes_range(option))
    return varied.say(map.position, "SPEC_BAD_SEARCH",
                      "tune.search: " + varied.key() + " cannot have a range: it takes " + expectation(option),
                      varied.form());
  bool good = varied.refuse(map, {"ordered"}, " belongs to choices: a range is always ordered");
  good = varied.read_flag(map, "log", parameter.log) && good;
  good = read_end(map, "low", meant, varied, parameter.low) && good;
  good = read_end(map, "high", meant, varied, parameter.high) && good;
  good = read_step(map, varied, parameter.step) && good;
  return good && check_range(parameter, map.position, varied);
}

}  // namespace sinew::spec
