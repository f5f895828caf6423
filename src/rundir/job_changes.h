// Part of rundir.h: finds how the options of two jobs differ.
#pragma once

#include <string>
#include <vector>

namespace sinew::rundir {

struct OptionChange {
  std::string key, before, now;  // `before` or `now` is "absent" if that job has no such option
  // true: the option may change the numbers of a step, or the step at which the training ends
  bool of_result = true;
  bool of_end = false;  // true: it is of the result, but only decides when training ends
};

// Compares two texts of resolved.yaml, option by option; ignores comments and the reasons in them. An option that an
// older version did not write has its default. A pure function. Throws Error if a text is not a list of options.
std::vector<OptionChange> job_changes(const std::string& before, const std::string& now);
bool changes_result(const std::vector<OptionChange>& changes);
// "optimizer.lr was 0.1, is 0.01; model.dropout was 0, is 0.5", at most ten of them; those of the result first.
std::string to_string(const std::vector<OptionChange>& changes);

}  // namespace sinew::rundir
