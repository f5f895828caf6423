#include "web/mlflow_registry.h"

#include <algorithm>

#include "registry/registry.h"
#include "web/frozen.h"
#include "web/mlflow_limits.h"

namespace sinew::web {
namespace {

using store::Kind;

const Grammar kRegisteredModelGrammar{false, false, false, {"name"}, {"timestamp", "last_updated_timestamp"}};

store::Labels visible_tags(store::Labels tags) {
  std::erase_if(tags, [](const auto& tag) { return tag.first.starts_with("sinew.mlflow."); });
  return tags;
}

// The creation of a version counts as a change of its model, as in MLflow.
int64_t model_updated_ms(const store::Record& model, const std::vector<store::Record>& versions) {
  int64_t newest = updated_ms(model);
  for (const store::Record& version : versions) newest = std::max(newest, version.begun_ms);
  return newest;
}

Fact registered_model_fact(const store::Record& model, const Column& column,
                           const std::vector<store::Record>& versions) {
  if (column.field == Column::Field::kAttribute) {
    return column.key == "name" ? Fact(model.subject.id) : Fact(static_cast<double>(model_updated_ms(model, versions)));
  }
  const auto tag = model.tags.find(column.key);
  if (tag != model.tags.end()) return tag->second;
  // MLflow's client excludes prompts by comparing this tag with "true". Models without the tag must not be excluded.
  return column.key == "mlflow.prompt.is_prompt" ? Fact(std::string("false")) : Fact();
}

Json model_json(Context& context, const std::string& name) {
  return registered_model_json(require_model(context, name), versions_of(context, name));
}

}  // namespace

store::Record require_model(Context& context, const std::string& name) {
  store::Record model = context.require(Kind::kModel, name);
  if (model.hidden) refuse_missing("Registered Model with name=" + name + " not found");
  return model;
}

std::map<std::string, std::vector<store::Record>> all_versions(Context& context) {
  std::map<std::string, std::vector<store::Record>> versions;
  for (store::Record& version : all_records(context, Kind::kVersion)) {
    if (!version.hidden) versions[version.subject.id].push_back(std::move(version));
  }
  return versions;
}

std::vector<store::Record> versions_of(Context& context, const std::string& name) {
  return context.store.all({.kind = Kind::kVersion, .name = name, .metrics = false});
}

Json registered_model_json(const store::Record& model, const std::vector<store::Record>& versions) {
  Json json{{"name", model.subject.id},
            {"creation_timestamp", model.begun_ms},
            {"last_updated_timestamp", model_updated_ms(model, versions)},
            {"user_id", ""},
            {"description", body_of(model).value("description", "")},
            {"tags", labels_json(visible_tags(model.tags))},
            {"aliases", Json::array()},
            {"latest_versions", Json::array()}};
  for (const store::Alias& alias : model.aliases) {
    if (alias.version > 0) {
      json["aliases"].push_back({{"alias", alias.name}, {"version", std::to_string(alias.version)}});
    }
  }
  std::set<std::string> stages;  // stages for which the list already has the newest version
  for (const store::Record& version : versions) {
    Json entry = version_json(version, model.aliases);
    if (stages.insert(entry["current_stage"]).second) json["latest_versions"].push_back(std::move(entry));
  }
  return json;
}

Response registered_models_create(Context& context, const Call& call) {
  const Args args(call);
  const std::string name = args.text("name");
  if (name.empty()) refuse_invalid("Registered model name cannot be empty.");
  const std::string description = args.text("description", "");
  const std::string body = dump_json({{"description", description}});
  const store::Labels given = tags_of(args, kMaxRegistryTag);
  refuse_prompt(given);
  const auto before = context.store.find({Kind::kModel, name, 0});
  if (before && before->hidden && !before->tags.contains(kLoggedModelTag)) {
    if (context.caller.role != Role::kAdmin) {
      throw Refused(kForbidden,
                    "Registered Model (name=" + name + ") was deleted; restoring it requires the role admin",
                    "choose another name, or ask an administrator");
    }
    store::SetTags tags{before->subject, {given.begin(), given.end()}};
    for (const auto& [key, value] : before->tags) tags.tags.try_emplace(key, std::nullopt);
    store::Batch batch{{store::Update{before->subject, {}, body, false}}};
    if (!tags.tags.empty()) batch.changes.push_back(std::move(tags));
    context.write(std::move(batch));
  } else {
    store::Create create{{Kind::kModel, name}, "", name, body};
    create.tags = given;
    context.write(std::move(create));
  }
  return json_response({{"registered_model", model_json(context, name)}});
}

Response registered_models_get(Context& context, const Call& call) {
  return json_response({{"registered_model", model_json(context, Args(call).text("name"))}});
}

Response registered_models_update(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("name"));
  change_body(context, model.subject, [&](Json& body) { body["description"] = args.text("description", ""); });
  return json_response({{"registered_model", model_json(context, model.subject.id)}});
}

Response registered_models_rename(Context& context, const Call& call) {
  const Args args(call);
  require_model(context, args.text("name"));
  refuse_invalid("a registered model cannot be renamed, because its versions, aliases and history refer to its name",
                 "register the version under the new name, and delete this model when it is no longer used");
}

Response registered_models_delete(Context& context, const Call& call) {
  const std::string name = Args(call).text("name");
  const store::Record model = require_model(context, name);
  store::Batch batch;
  for (const store::Record& version : versions_of(context, name)) {
    for (store::Change& change : registry::deletion_of(context.store, version.subject))
      batch.changes.push_back(std::move(change));
  }
  for (const store::Alias& alias : model.aliases) {
    if (alias.version > 0) batch.changes.push_back(store::SetAlias{name, alias.name, 0, {}});
  }
  batch.changes.push_back(store::Update{model.subject, {}, {}, true});
  context.write(std::move(batch));
  return json_response(Json::object());
}

Response registered_models_search(Context& context, const Call& call) {
  const Args args(call);
  const auto clauses = parse_filter(args.text("filter", ""), kRegisteredModelGrammar);
  std::vector<Order> orders = parse_orders(args.texts("order_by"), kRegisteredModelGrammar);
  orders.push_back({{Column::Field::kAttribute, "name"}, true});
  std::vector<store::Record> found = all_records(context, Kind::kModel);
  auto versions = all_versions(context);
  std::erase_if(found, [&](const store::Record& model) {
    return model.hidden || !matches(clauses, [&](const Column& column) {
             return std::vector<Fact>{registered_model_fact(model, column, versions[model.subject.id])};
           });
  });
  const auto sorted = sorted_order(found.size(), orders, [&](size_t index, const Column& column) {
    return registered_model_fact(found[index], column, versions[found[index].subject.id]);
  });
  const Page page = page_of(args, found.size(), 100, 1000);
  Json answer{{"registered_models", Json::array()}};
  for (size_t i = page.first; i < page.last; ++i) {
    answer["registered_models"].push_back(
        registered_model_json(found[sorted[i]], versions[found[sorted[i]].subject.id]));
  }
  if (!page.next.empty()) answer["next_page_token"] = page.next;
  return json_response(answer);
}

Response registered_models_latest(Context& context, const Call& call) {
  const Args args(call);
  const std::vector<std::string> stages = args.texts("stages");
  Json answer{{"model_versions", Json::array()}};
  const Json model = model_json(context, args.text("name"));
  for (const Json& version : model["latest_versions"]) {
    const bool asked = stages.empty() || std::find(stages.begin(), stages.end(),
                                                   version["current_stage"].get<std::string>()) != stages.end();
    if (asked) answer["model_versions"].push_back(version);
  }
  return json_response(answer);
}

Response registered_models_set_tag(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("name"));
  refuse_prompt({{args.text("key"), args.text("value", "")}});
  context.write(tag_set(model.subject, args, kMaxRegistryTag));
  return json_response(Json::object());
}

Response registered_models_delete_tag(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("name"));
  context.write(tag_removed(model.subject, args));
  return json_response(Json::object());
}

Response alias_set(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("name"));
  const store::Record version = require_version(context, args.text("name"), args.integer("version"));
  const std::string alias = args.text("alias");
  check_alias(alias);
  check_has_files(version);
  move_alias(context, model.subject.id, alias, version.subject.number);
  return json_response(Json::object());
}

Response alias_get(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("name"));
  const std::string name = args.text("alias");
  for (const store::Alias& alias : model.aliases) {
    if (alias.name != name || alias.version == 0) continue;
    const store::Record version = require_version(context, model.subject.id, alias.version);
    return json_response({{"model_version", version_json(version, model.aliases)}});
  }
  // MLflow's client recognises a missing alias by the code of this refusal, not by the status.
  refuse_invalid("Registered model alias " + name + " not found.");
}

Response alias_delete(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("name"));
  const std::string name = args.text("alias");
  const bool there = std::any_of(model.aliases.begin(), model.aliases.end(),
                                 [&](const store::Alias& alias) { return alias.name == name && alias.version > 0; });
  if (there) move_alias(context, model.subject.id, name, 0);
  return json_response(Json::object());
}

}  // namespace sinew::web
