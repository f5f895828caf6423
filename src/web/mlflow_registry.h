// MLflow's model registry over the store: a registered model is a model, a version a version, an alias an alias.
//
// What Sinew registered of its own runs is found by the client, and what the client registers by `sinew models`. A
// deleted model or version is hidden; numbers of versions are never given twice. Stages, long deprecated, are a tag.
#pragma once

#include "web/mlflow.h"

namespace sinew::web {

constexpr const char* kStageTag = "sinew.mlflow.stage";
constexpr const char* kLoggedModelTag = "sinew.mlflow.logged_model";  // of what is no registered model: its experiment

store::Record need_model(Context& context, const std::string& name);
store::Record need_version(Context& context, const std::string& name, int64_t version);
// Newest first; without hidden ones. Of one model, or of all by their models' names.
std::vector<store::Record> versions_of(Context& context, const std::string& name);
std::map<std::string, std::vector<store::Record>> all_versions(Context& context);
Json registered_model_json(const store::Record& model, const std::vector<store::Record>& versions);
Json version_json(const store::Record& version, const std::vector<store::Alias>& aliases);
// Where the files of a version are, as a place the client can download from; and those of what it was made of.
std::string place_of(Context& context, const store::Record& version, int deepest = 8);
std::string download_place(Context& context, const std::string& source, int deepest = 8);

Response registered_models_create(Context&, const Call&);
Response registered_models_get(Context&, const Call&);
Response registered_models_update(Context&, const Call&);
Response registered_models_rename(Context&, const Call&);
Response registered_models_delete(Context&, const Call&);
Response registered_models_search(Context&, const Call&);
Response registered_models_latest(Context&, const Call&);
Response registered_models_set_tag(Context&, const Call&);
Response registered_models_delete_tag(Context&, const Call&);
Response alias_set(Context&, const Call&);
Response alias_get(Context&, const Call&);
Response alias_delete(Context&, const Call&);

Response versions_create(Context&, const Call&);
Response versions_get(Context&, const Call&);
Response versions_update(Context&, const Call&);
Response versions_delete(Context&, const Call&);
Response versions_search(Context&, const Call&);
Response versions_transition(Context&, const Call&);
Response versions_set_tag(Context&, const Call&);
Response versions_delete_tag(Context&, const Call&);
Response versions_download_uri(Context&, const Call&);

}  // namespace sinew::web
