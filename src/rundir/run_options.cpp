#include "base/error.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::rundir {

std::map<std::string, std::string> flat_options(const std::string& yaml) {
  auto values = spec::flat_values(yaml);
  if (values) return *std::move(values);
  throw Error("RUN_NOT_OPTIONS", values.error(), "restore the file: sinew writes resolved.yaml when a run starts");
}

}  // namespace sinew::rundir
