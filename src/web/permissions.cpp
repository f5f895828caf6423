#include "web/permissions.h"

#include <algorithm>

#include "web/api_routes.h"
#include "web/artifacts.h"
#include "web/mlflow.h"
#include "web/mlflow_models.h"
#include "web/mlflow_registry.h"

namespace sinew::web {
namespace {

using store::Kind;
using store::Subject;

enum class Needs {
  kOwner,      // the caller must own the record that the request changes
  kContainer,  // the record only contains what the caller makes (an experiment, a model), and may have another owner
  kNothing,    // the request changes no record that exists
};

Subject run_in_path(const Call& call) {
  return {Kind::kRun, call.path.at("run")};
}
Subject run_in_body(const Call& call) {
  return {Kind::kRun, run_of(Args(call))};
}
Subject experiment_in_body(const Call& call) {
  return {Kind::kExperiment, Args(call).text("experiment_id", "0")};
}
Subject model_in_path(const Call& call) {
  return {Kind::kModel, call.path.at("model")};
}
Subject logged_model_in_path(const Call& call) {
  return {Kind::kModel, call.path.at("model_id")};
}
Subject model_in_body(const Call& call) {
  return {Kind::kModel, Args(call).text("name")};
}
Subject version_in_body(const Call& call) {
  const Args args(call);
  return {Kind::kVersion, args.text("name"), args.integer("version")};
}
Subject version_in_path(const Call& call) {
  const Args args(call);
  return {Kind::kVersion, args.text("model"), args.integer("version")};
}
Subject artifact_owner(const Call& call) {
  return parse_artifact_ref(call.path.at("path")).subject;
}
Subject nothing(const Call&) {
  return {};
}

struct Rule {
  Handle handle;
  Needs needs;
  Subject (*subject)(const Call& call);
};

constexpr Rule kRules[] = {
    {api_add_points, Needs::kOwner, run_in_path},
    {api_control, Needs::kOwner, run_in_path},
    {api_put_run_file, Needs::kOwner, run_in_path},
    {api_promote, Needs::kContainer, model_in_path},
    {api_rollback, Needs::kContainer, model_in_path},
    {api_set_alias, Needs::kContainer, model_in_path},
    {api_freeze_version, Needs::kOwner, version_in_path},
    {experiments_create, Needs::kNothing, nothing},
    {experiments_delete, Needs::kOwner, experiment_in_body},
    {experiments_restore, Needs::kOwner, experiment_in_body},
    {experiments_update, Needs::kOwner, experiment_in_body},
    {experiments_set_tag, Needs::kOwner, experiment_in_body},
    {experiments_delete_tag, Needs::kOwner, experiment_in_body},
    {runs_create, Needs::kContainer, experiment_in_body},
    {runs_update, Needs::kOwner, run_in_body},
    {runs_delete, Needs::kOwner, run_in_body},
    {runs_restore, Needs::kOwner, run_in_body},
    {runs_set_tag, Needs::kOwner, run_in_body},
    {runs_delete_tag, Needs::kOwner, run_in_body},
    {runs_log_parameter, Needs::kOwner, run_in_body},
    {runs_log_metric, Needs::kOwner, run_in_body},
    {runs_log_batch, Needs::kOwner, run_in_body},
    {runs_log_model, Needs::kOwner, run_in_body},
    {runs_log_inputs, Needs::kOwner, run_in_body},
    {runs_log_outputs, Needs::kOwner, run_in_body},
    {mlflow_artifacts_put, Needs::kOwner, artifact_owner},
    {mlflow_artifacts_delete, Needs::kOwner, artifact_owner},
    {logged_models_create, Needs::kContainer, experiment_in_body},
    {logged_models_finalize, Needs::kOwner, logged_model_in_path},
    {logged_models_delete, Needs::kOwner, logged_model_in_path},
    {logged_models_set_tags, Needs::kOwner, logged_model_in_path},
    {logged_models_delete_tag, Needs::kOwner, logged_model_in_path},
    {logged_models_log_params, Needs::kOwner, logged_model_in_path},
    {registered_models_create, Needs::kContainer, model_in_body},
    {registered_models_update, Needs::kOwner, model_in_body},
    {registered_models_rename, Needs::kNothing, nothing},
    {registered_models_delete, Needs::kOwner, model_in_body},
    {registered_models_set_tag, Needs::kOwner, model_in_body},
    {registered_models_delete_tag, Needs::kOwner, model_in_body},
    {alias_set, Needs::kContainer, model_in_body},
    {alias_delete, Needs::kContainer, model_in_body},
    {versions_create, Needs::kContainer, model_in_body},
    {versions_update, Needs::kOwner, version_in_body},
    {versions_delete, Needs::kOwner, version_in_body},
    {versions_transition, Needs::kOwner, version_in_body},
    {versions_set_tag, Needs::kOwner, version_in_body},
    {versions_delete_tag, Needs::kOwner, version_in_body},
    {not_offered, Needs::kNothing, nothing},
};

const Rule* rule_of(const Route& route) {
  const auto* found = std::ranges::find(kRules, route.handle, &Rule::handle);
  return found == std::end(kRules) ? nullptr : found;
}

// Parses the body once, for this check and for the handler.
void parse_body(Call& call) {
  const http::Request& request = call.request;
  if (call.body || request.sink || request.method == "GET" || request.method == "HEAD") return;
  call.body = std::make_shared<const Json>(parse_object(request.body));
}

// Returns nullopt for an id that no record can have, and for a record that does not exist.
std::optional<store::Record> find_record(Context& context, const Subject& subject) {
  const bool possible = !subject.id.empty() && subject.id.size() <= 500 && subject.id.find('\0') == std::string::npos;
  return possible ? context.store.find(subject) : std::nullopt;
}

[[noreturn]] void refuse_scope(const Caller& caller, const char* what, const std::string& name) {
  throw Refused(
      kOutOfScope,
      "the token '" + caller.name + "' may not change the " + what + " '" + name + "': it is not in its scope",
      "use another token, or ask an administrator for one with this scope");
}

bool has_scope(const Caller& caller) {
  const TokenRights all;
  return caller.token &&
         (caller.token->rights.experiments != all.experiments || caller.token->rights.models != all.models);
}

// Refuses an experiment unless its id or its name is in the scope.
void check_experiment(Context& context, const std::string& id) {
  const auto& patterns = context.caller.token->rights.experiments;
  const auto record = find_record(context, {Kind::kExperiment, id});
  if (fits_scope(patterns, id) || (record && fits_scope(patterns, record->name))) return;
  refuse_scope(context.caller, "experiment", record && !record->name.empty() ? record->name : id);
}

// Refuses a subject outside the scope of the caller's token. Runs and logged models belong to the scope of their
// experiment.
void check_scope(Context& context, const Subject& subject) {
  if (subject.kind == Kind::kExperiment) return check_experiment(context, subject.id);
  const auto record = find_record(context, subject);
  if (subject.kind == Kind::kRun) {
    if (record) check_experiment(context, record->parent);
    return;
  }
  const auto logged = record ? record->tags.find(kLoggedModelTag) : store::Labels::const_iterator();
  if (record && logged != record->tags.end()) return check_experiment(context, logged->second);
  if (!fits_scope(context.caller.token->rights.models, subject.id)) refuse_scope(context.caller, "model", subject.id);
}

// Returns whether the caller may change a run without an owner, which the index found in a directory. A token may do so
// if its scope names experiments: then an administrator has given it the runs of these experiments.
bool is_given_by_scope(const Caller& caller, const store::Record& record) {
  if (record.subject.kind != Kind::kRun || !record.owner.empty() || !caller.token) return false;
  const auto& patterns = caller.token->rights.experiments;
  return std::ranges::find(patterns, "*") == patterns.end();  // check_scope() has compared the names
}

}  // namespace

void check_experiment_scope(const Caller& caller, const std::string& name) {
  if (has_scope(caller) && !fits_scope(caller.token->rights.experiments, name))
    refuse_scope(caller, "experiment", name);
}

void check_change(Context& context, const store::Record& record) {
  if (has_scope(context.caller)) check_scope(context, record.subject);
  check_owner(context.caller, record);
}

void check_owner(const Caller& caller, const store::Record& record) {
  if (caller.role == Role::kAdmin || (!caller.name.empty() && record.owner == caller.name)) return;
  const std::string what = std::string(store::to_string(record.subject.kind)) + " '" + record.subject.id + "'";
  throw Refused(kNotOwner,
                what + " belongs to " + (record.owner.empty() ? "the server" : "the token '" + record.owner + "'") +
                    "; the token '" + caller.name + "' may not change it",
                "use the token that created it, or ask an administrator");
}

void check_permission(Context& context, const Route& route, Call& call) {
  const Rule* rule = rule_of(route);
  if (rule == nullptr || rule->needs == Needs::kNothing) return;
  const bool owner = rule->needs == Needs::kOwner && context.caller.role != Role::kAdmin;
  const bool scope = has_scope(context.caller);
  if (!owner && !scope) return;
  parse_body(call);
  const Subject subject = rule->subject(call);
  if (scope) check_scope(context, subject);
  const auto record = owner ? find_record(context, subject) : std::nullopt;
  if (record && !is_given_by_scope(context.caller, *record)) check_owner(context.caller, *record);
}

bool has_permission_rule(const Route& route) {
  return rule_of(route) != nullptr;
}

}  // namespace sinew::web
