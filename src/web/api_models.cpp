// Serves models, versions and aliases over HTTP. The registry decides whether an alias may move, and says why.
#include <algorithm>
#include <map>

#include "registry/registry.h"
#include "web/api_routes.h"
#include "web/artifacts.h"
#include "web/frozen.h"
#include "web/mlflow_limits.h"
#include "web/mlflow_registry.h"
#include "web/upload.h"

namespace sinew::web {
namespace {

using store::Kind;

Json model_json(const store::Record& model) {
  std::map<std::string, Json> aliases;  // a Json object would compare each new name with all its earlier names
  for (const store::Alias& alias : model.aliases) {
    if (alias.version > 0) aliases[alias.name] = {{"version", alias.version}, {"previous", alias.previous}};
  }
  return {{"name", model.subject.id}, {"begun_ms", model.begun_ms}, {"aliases", aliases}, {"tags", model.tags}};
}

Json version_summary(const store::Record& version) {
  Json json{{"model", version.subject.id},
            {"version", version.subject.number},
            {"run", version.parent},
            {"begun_ms", version.begun_ms},
            {"tags", version.tags}};
  const Json body = Json::parse(version.body, nullptr, false);
  if (body.is_object()) json["facts"] = body;
  return json;
}

Json lineage_json(const registry::Lineage& tree) {
  Json from = Json::array();
  for (const registry::Lineage& source : tree.from) from.push_back(lineage_json(source));
  return {{"role", tree.role},     {"kind", store::to_string(tree.subject.kind)},
          {"id", tree.subject.id}, {"number", tree.subject.number},
          {"text", tree.text},     {"from", from}};
}

Json promotion_json(const registry::Promotion& promotion) {
  return {{"done", promotion.done},
          {"from", promotion.from},
          {"to", promotion.to},
          {"why", promotion.decision.why},
          {"facts", promotion.decision.facts}};
}

// Returns the lease and the caller that the registry must name in its writes, as every write of this server does.
registry::Mover mover_of(const Context& context) {
  registry::Mover mover;
  if (context.options.lease) mover.held.push_back(*context.options.lease);
  mover.actor = {context.caller.name, context.caller.address};
  return mover;
}

// Only an admin may weaken the gates. It weakens them to skip them, to accept a version that is worse than the
// champion, or to choose the metric, such as the loss on the training data.
void check_gates(const Context& context, const registry::PromotionRules& gates, bool force) {
  if (context.caller.role == Role::kAdmin) return;
  const auto refuse = [](const std::string& what, const char* hint) {
    throw Refused(kForbidden, what + " requires the role admin", hint);
  };
  if (force) refuse("promoting against the gates", "leave out 'force'");
  if (!(gates.margin >= 0)) refuse("a margin below 0", "leave out 'margin', or use a margin of 0 or more");
  if (gates.metric != registry::PromotionRules().metric) refuse("choosing the metric to compare", "leave out 'metric'");
}

// An alias is a promise to those who load a model by it. So only an admin makes a new one, except for the champion.
void check_promoted_alias(Context& context, const std::string& model, const std::string& name) {
  check_alias(name);
  if (context.caller.role == Role::kAdmin || name == registry::kChampion) return;
  const auto is_it = [&](const store::Alias& alias) { return alias.name == name && alias.version > 0; };
  if (std::ranges::any_of(require_model(context, model).aliases, is_it)) return;
  throw Refused(kForbidden, "making the alias '" + name + "' requires the role admin",
                "promote to an alias that the model has, or leave out 'alias'");
}

// If the gates refuse the promotion, the response is the promotion with its reason and status 409, not an error object.
http::Response answer_of(const registry::Promotion& promotion) {
  return json_response(promotion_json(promotion), promotion.done ? 200 : 409);
}

}  // namespace

void move_alias(Context& context, const std::string& model, const std::string& alias, int64_t version,
                std::optional<int64_t> expected) {
  const auto outcome = registry::set_alias(context.store, model, alias, version, expected, mover_of(context));
  if (!outcome) refuse(outcome.error());
}

http::Response api_models(Context& context, const Call& call) {
  const Args args(call);
  Json list = Json::array();
  store::Query query{.kind = Kind::kModel, .metrics = false};
  query.before = args.integer("before", 0);
  query.limit = args.integer("limit", 1000, 1, 10'000);
  for (const store::Record& model : context.store.list(query)) {
    list.push_back(model_json(model));
  }
  return json_response({{"models", list}});
}

http::Response api_model(Context& context, const Call& call) {
  const store::Record model = require_model(context, call.path.at("model"));
  Json json = model_json(model);
  json["versions"] = Json::array();
  for (const store::Record& version : versions_of(context, model.subject.id))
    json["versions"].push_back(version_summary(version));
  return json_response(json);
}

http::Response api_model_version(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("model"), args.integer("version"));
  Json json = version_summary(version);
  json["files"] = Json::array();
  for (const store::Attachment& file : context.store.attachments(version.subject)) {
    json["files"].push_back({{"path", file.path}, {"sha256", file.digest}, {"bytes", file.bytes}});
  }
  return json_response(json);
}

http::Response api_lineage(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("model"), args.integer("version"));
  return json_response(lineage_json(registry::lineage(context.store, version.subject)));
}

http::Response api_promote(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("model"), args.integer("version"));
  check_has_files(version);
  registry::PromotionRules gates;
  gates.metric = args.text("metric", gates.metric);
  if (args.has("margin")) gates.margin = args.number("margin");
  const bool force = args.flag("force", false);
  check_gates(context, gates, force);
  const std::string alias = args.text("alias", registry::kChampion);
  check_promoted_alias(context, version.subject.id, alias);
  return answer_of(registry::promote(context.store, version.subject.id, version.subject.number, gates, alias, force,
                                     mover_of(context)));
}

http::Response api_rollback(Context& context, const Call& call) {
  const store::Record model = require_model(context, call.path.at("model"));
  return answer_of(registry::rollback(context.store, model.subject.id, Args(call).text("alias", registry::kChampion),
                                      mover_of(context)));
}

// Moves an alias without checking the gates. If the caller names the version that the alias points to now, the store
// refuses the change when the alias points to another version.
http::Response api_set_alias(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("model"));
  const int64_t version = args.integer("version", 0, 0, INT64_MAX);
  const std::string alias = args.text("alias");
  if (version > 0) {
    check_alias(alias);
    check_has_files(require_version(context, model.subject.id, version));
  }
  const std::optional<int64_t> expected = args.has("expected") ? std::optional(args.integer("expected")) : std::nullopt;
  move_alias(context, model.subject.id, alias, version, expected);
  return json_response({{"model", model.subject.id}, {"alias", alias}, {"version", version}});
}

// Gives a pending version the files that its source has now. The caller may send `files` (paths with SHA-256), the
// files that it expects. If the source has others, the version stays pending.
http::Response api_freeze_version(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("model"), args.integer("version"));
  if (!is_pending(version)) {
    throw Refused(kConflict, "this version has its files already", "create another version of other files");
  }
  const std::string source = text_or_empty(body_of(version), "source");
  const FrozenFiles frozen = freeze_files(context, download_location(context, source));
  if (frozen.files.empty())
    throw Refused(kNoFiles, "there are no files at '" + source + "'", "upload them there first");
  std::map<std::string, std::string> digests;
  for (const store::Attachment& file : frozen.files) digests[file.path] = file.digest;
  const Json found = digests;
  const auto expected = args.json().find("files");
  if (expected != args.json().end() && nlohmann::json(*expected) != nlohmann::json(found)) {
    throw Refused(kConflict, "the files at '" + source + "' are not the expected ones: they are " + found.dump(),
                  "upload the expected files, or leave out 'files'");
  }
  change_record(context, version.subject, [&](const store::Record& now) {
    Json body = body_of(now);
    body.erase(kPending);
    body["frozen"] = true;
    store::Batch batch{{store::Update{now.subject, {}, dump_json(body)}}};
    for (const store::Attachment& file : frozen.files)
      batch.changes.push_back(store::Attach{now.subject, file.path, file.digest, file.bytes});
    store_upload_count(context, batch);
    batch.active = {now.subject};
    return batch;
  });
  return json_response({{"model", version.subject.id}, {"version", version.subject.number}, {"files", found}});
}

http::Response api_version_file(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("model"), args.integer("version"));
  return download(context, call.request, version.subject, args.text("path"));
}

}  // namespace sinew::web
