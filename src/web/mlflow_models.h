// Inside web/: the logged models of MLflow 3: artifacts of an experiment before a user registers them. The store keeps
// a logged model as a hidden model record, so that no list of registered models shows it. The record's body holds
// MLflow's data.
#pragma once

#include "web/mlflow.h"

namespace sinew::web {

std::string logged_model_location(Context& context, const store::Record& model);
std::string version_location(const store::Subject& version);  // the artifact URI of the version's own copy of its files

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
