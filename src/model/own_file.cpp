// Models of the user's own as files: looked at, and given back in the format they came in.
#include "base/disk.h"
#include "base/error.h"
#include "model/makers.h"
#include "model/model.h"

namespace sinew::model {

FileReport inspect_file(const std::string& file) {
  if (file.ends_with(".pt2")) return {{}, program_problems(file)};
  if (file.ends_with(".so")) return inspect_library(file);
  return inspect_script(file);
}

std::string own_file_name(const std::string& model_name) {
  if (model_name == "program") return "model.pt2";
  if (model_name == "torchscript") return "model.pt";
  return model_name == "library" ? "model.so" : "";
}

void save_own_file(const spec::ModelOptions& options, const std::vector<NamedTensor>& values, const std::string& to) {
  if (options.name == "program") return save_program(options.file, values, to);
  if (options.name == "torchscript") return save_script(options.file, values, to);
  const std::vector<std::byte> code = system_disk().read(options.file);
  write_durably(system_disk(), to, std::span(code));
}

}  // namespace sinew::model
