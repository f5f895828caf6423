// `sinew schema` prints the JSON Schema of the job file, or its reference page.
#include <cstdio>

#include "cli/options.h"

namespace sinew::cli {

int run_schema(const Arguments& arguments) {
  bool markdown = false;
  Options options("schema", "The JSON Schema (draft 2020-12) of the job file, for editors and other programs");
  options.flag("--markdown", markdown, "print the reference page of all options instead");
  if (!options.parse(arguments)) return kDone;
  std::fputs((markdown ? spec::reference_markdown() : spec::json_schema()).c_str(), stdout);
  return kDone;
}

}  // namespace sinew::cli
