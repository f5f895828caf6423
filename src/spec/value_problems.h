// Collects the problems of one option's value, with messages that name the option and say what it accepts. Private to
// spec/.
#pragma once

#include <string>
#include <vector>

#include "spec/options.h"
#include "spec/tree.h"

namespace sinew::spec {

// Collects the problems found while the value of `option` is read. Each method that reports a problem appends a Finding
// to `findings` and returns false, so that a reader can write `return problems.wrong(node)`.
class ValueProblems {
 public:
  ValueProblems(const Option& option, std::vector<Finding>& findings) : option_(option), findings_(findings) {}

  const Option& option() const { return option_; }
  // Chooses whether the following messages name an item of the option's list or the option itself.
  void set_in_list(bool in_list) { in_list_ = in_list; }

  bool say(const Node& node, ErrorCode code, std::string what, std::string hint);
  bool wrong(const Node& node, std::string hint = "") { return wrong(node, std::move(hint), "SPEC_WRONG_TYPE"); }
  bool malformed(const Node& node, std::string hint = "") { return wrong(node, std::move(hint), "SPEC_BAD_FORMAT"); }
  bool out_of_range(const Node& node);

  std::string subject() const;  // "trainer.shards", or "an item of model.hidden"
  std::string usage() const;    // a hint: "for example shards: 8"

 private:
  bool wrong(const Node& node, std::string hint, ErrorCode code);
  std::string wanted() const;

  const Option& option_;
  std::vector<Finding>& findings_;
  bool in_list_ = false;
};

}  // namespace sinew::spec
