// The map below tune.search: which options a study varies, and between what. Private to spec/.
#pragma once

#include <string>
#include <vector>

#include "spec/options.h"
#include "spec/tree.h"

namespace sinew::spec {

// Options a search can not vary: those of the study itself, and the run's name.
bool is_searchable(const Option& option);

bool takes_range(const Option& option);  // one number without a list of its own

// Reads the node into `search`, every value judged by the option it is for; or reports every reason why not. True when
// all was good.
bool read_search(const Node& node, const Environment& environment, std::vector<SearchParameter>& search,
                 std::vector<Finding>& findings);

// One line of YAML that read_search reads back.
std::string search_text(const std::vector<SearchParameter>& search);

// Values at the edges of what a study may try, each as overrides that also meet the conditions: for the rules between
// options. `at`: the parameter they probe. Without those that break a constraint: no trial has them.
struct SearchProbe {
  size_t at = 0;
  std::vector<std::string> overrides;
};
std::vector<SearchProbe> probes_of(const Job& job, size_t most);

}  // namespace sinew::spec
