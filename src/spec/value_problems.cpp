#include "spec/value_problems.h"

#include "spec/values.h"

namespace sinew::spec {

bool ValueProblems::say(const Node& node, ErrorCode code, std::string what, std::string hint) {
  findings_.push_back({node.position, code, std::move(what), std::move(hint)});
  return false;
}

bool ValueProblems::out_of_range(const Node& node) {
  return say(node, "SPEC_OUT_OF_RANGE", subject() + " is " + node.text + ", but must be " + wanted(), usage());
}

std::string ValueProblems::subject() const {
  return in_list_ ? "an item of " + option_.key : option_.key;
}

std::string ValueProblems::usage() const {
  return "for example " + option_.leaf() + ": " + example(option_);
}

bool ValueProblems::wrong(const Node& node, std::string hint, ErrorCode code) {
  if (node.kind == Node::Kind::null) {
    return say(node, "SPEC_MISSING_VALUE", subject() + " has no value",
               "write " + wanted() + (in_list_ ? "" : ", or leave the key out"));
  }
  if (hint.empty() && node.kind == Node::Kind::scalar && node.text.find("${") != std::string::npos) {
    hint = "variables are replaced in texts, names and paths only; use an override: " + option_.key + "=...";
  }
  if (hint.empty()) hint = usage();
  return say(node, code, subject() + " needs " + wanted() + ", got " + described(node), hint);
}

std::string ValueProblems::wanted() const {
  return in_list_ ? item_expectation(option_) : expectation(option_);
}

}  // namespace sinew::spec
