// Logged models of MLflow 3: a model among the artifacts of an experiment, known before anybody registers it. In the
// store a hidden model record, so that no list of registered models has it; its facts are in the body.
#pragma once

#include "web/mlflow.h"

namespace sinew::web {

std::string logged_model_location(Context& context, const store::Record& model);
std::string version_location(const store::Subject& version);  // where a version's own files are

Response logged_models_create(Context&, const Call&);
Response logged_models_get(Context&, const Call&);
Response logged_models_finalize(Context&, const Call&);
Response logged_models_delete(Context&, const Call&);
Response logged_models_search(Context&, const Call&);
Response logged_models_set_tags(Context&, const Call&);
Response logged_models_delete_tag(Context&, const Call&);
Response logged_models_log_params(Context&, const Call&);
Response logged_models_list_artifacts(Context&, const Call&);

}  // namespace sinew::web
