// `sinew schema`: the JSON Schema of the job file, or its reference page.
#include <cstdio>

#include "cli/commands.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew schema [--markdown]\n\n"
    "Prints the JSON Schema (draft 2020-12) of the job file, for editors and other programs.\n\n"
    "  --markdown   print the reference page of all options instead\n";

}  // namespace

int run_schema(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const bool markdown = !arguments.empty() && arguments[0] == "--markdown";
  if (arguments.size() > (markdown ? 1U : 0U)) {
    throw UsageError("unexpected argument '" + arguments[markdown ? 1 : 0] + "'", "sinew schema --help");
  }
  std::fputs((markdown ? spec::reference_markdown() : spec::json_schema()).c_str(), stdout);
  return kDone;
}

}  // namespace sinew::cli
