// Reads the map tune.search: the options that a study varies, with their ranges or choices. Private to spec/.
#pragma once

#include <string>
#include <vector>

#include "spec/options.h"
#include "spec/tree.h"

namespace sinew::spec {

// Returns whether a study can vary the option. It cannot vary options of the study itself or the run's name.
bool is_searchable(const Option& option);

bool takes_range(const Option& option);  // a single number without a list of allowed values

// Reads the node into `search` and checks every value by the rules of its option. Appends each problem to `findings`,
// and returns true if there is none.
bool read_search(const Node& node, const Environment& environment, std::vector<SearchParameter>& search,
                 std::vector<Finding>& findings);

// One line of YAML; read_search reads it back.
std::string search_text(const std::vector<SearchParameter>& search);

// Sets one parameter of a search to one value: an end of its range, or one of its choices. The overrides also set the
// parameters in its "if:", so that the parameter is active. read_job applies each probe to the job and checks the rules
// between options.
struct SearchProbe {
  size_t at = 0;  // index of the parameter in tune.search
  std::vector<std::string> overrides;
};
// Returns at most `most` probes. Leaves out values that break a constraint, because no trial will use them.
std::vector<SearchProbe> probes_of(const Job& job, size_t most);

}  // namespace sinew::spec
