#include "base/error.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::rundir {

std::map<std::string, std::string> flat_options(const std::string& yaml) {
  auto values = spec::flat_values(yaml);
  if (values) return *std::move(values);
  throw Error("RUN_NOT_OPTIONS", values.error(), "restore the file: sinew writes resolved.yaml when a run starts");
}

bool is_of_the_machine(const std::string& key) {
  if (key == "name" || key == "trainer.lanes") return true;
  for (const char* section : {"data.prefetch.", "logging.", "workers.", "cluster.", "budget.", "tune."}) {
    if (key.starts_with(section)) return true;
  }
  return false;
}

}  // namespace sinew::rundir
