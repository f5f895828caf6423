// Gives the defaults that depend on the model.
#include "spec/options.h"

namespace sinew::spec {

ModelOptions default_model(const std::string& name) {
  ModelOptions options;
  options.name = name;
  if (name == "tabular") {  // the values of RealMLP-TD (model/tabular.cpp)
    options.hidden = {256, 256, 256};
    options.activation = "auto";
    options.dropout = 0.15;
  }
  return options;
}

Job default_job(const std::string& model) {
  Job job;
  job.model = default_model(model);
  return job;
}

void take_model_defaults(Job& job, const std::function<bool(const std::string&)>& is_given) {
  Job usual = default_job(job.model.name);
  for (const Option& option : option_table()) {
    if (!option.key.starts_with("model.") || is_given(option.key)) continue;
    std::visit([&](auto reach) { reach(job) = reach(usual); }, option.access);
  }
}

}  // namespace sinew::spec
