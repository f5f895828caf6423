// Inside web/: implements MLflow's model registry on the store: registered models, versions and aliases.
//
// MLflow's client finds what Sinew registered, and `sinew models` finds what MLflow's client registered. Deleting a
// model or a version hides it, and its number is never reused. A tag holds a version's stage, which MLflow has
// deprecated.
#pragma once

#include "web/mlflow.h"

namespace sinew::web {

constexpr const char* kStageTag = "sinew.mlflow.stage";
// Marks the record of a logged model, which is not a registered model. The value is the id of its experiment.
constexpr const char* kLoggedModelTag = "sinew.mlflow.logged_model";

store::Record require_model(Context& context, const std::string& name);
store::Record require_version(Context& context, const std::string& name, int64_t version);
// Returns the versions of a model, newest first, without hidden ones.
std::vector<store::Record> versions_of(Context& context, const std::string& name);
// Returns the versions of all models, with the model's name as the key.
std::map<std::string, std::vector<store::Record>> all_versions(Context& context);
Json registered_model_json(const store::Record& model, const std::vector<store::Record>& versions);
Json version_json(const store::Record& version, const std::vector<store::Alias>& aliases);
// Returns the artifact URI from which a client can download the version's files.
std::string download_location(Context& context, const store::Record& version, int max_depth = 8);
// Returns the artifact URI from which a client can download the files at the source of a version. If the source is a
// "models:/..." URI, follows it, through at most `max_depth` such URIs.
std::string download_location(Context& context, const std::string& source, int max_depth = 8);

// Points an alias at a version, or removes the alias if `version` is 0. Checks no gates. Throws Refused if the store
// refuses the change.
void move_alias(Context& context, const std::string& model, const std::string& alias, int64_t version,
                std::optional<int64_t> expected = {});

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
