#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/lower_case.h"
#include "registry/registry.h"
#include "web/frozen.h"
#include "web/mlflow_limits.h"
#include "web/mlflow_models.h"
#include "web/mlflow_registry.h"
#include "web/permissions.h"
#include "web/upload.h"

namespace sinew::web {
namespace {

using store::Kind;

const Grammar kVersionGrammar{false,
                              false,
                              false,
                              {"name", "run_id", "source_path"},
                              {"version_number", "creation_timestamp", "last_updated_timestamp"}};

Fact version_fact(const store::Record& version, const Column& column) {
  if (column.field != Column::Field::kAttribute) {
    const auto tag = version.tags.find(column.key);
    if (tag != version.tags.end()) return tag->second;
    return column.key == "mlflow.prompt.is_prompt" ? Fact(std::string("false")) : Fact();
  }
  if (column.key == "name") return version.subject.id;
  if (column.key == "run_id") return version.parent;
  if (column.key == "source_path") return body_of(version).value("source", "");
  if (column.key == "version_number") return static_cast<double>(version.subject.number);
  return static_cast<double>(column.key == "last_updated_timestamp" ? updated_ms(version) : version.begun_ms);
}

Json answer_with(Context& context, const std::string& name, int64_t number) {
  const store::Record model = require_model(context, name);
  return {{"model_version", version_json(require_version(context, name, number), model.aliases)}};
}

std::string stage_of(const store::Record& version) {
  const auto stage = version.tags.find(kStageTag);
  return stage == version.tags.end() ? "None" : stage->second;
}

}  // namespace

store::Record require_version(Context& context, const std::string& name, int64_t number) {
  store::Record version = context.require(Kind::kVersion, name, number);
  if (version.hidden || number <= 0) {
    refuse_missing("Model Version (name=" + name + ", version=" + std::to_string(number) + ") not found");
  }
  return version;
}

Json version_json(const store::Record& version, const std::vector<store::Alias>& aliases) {
  const Json body = body_of(version);
  const std::string source = text_or_empty(body, "source");
  Json tags = Json::array(), names = Json::array();
  for (const auto& [key, value] : version.tags) {
    if (key != kStageTag) tags.push_back({{"key", key}, {"value", value}});
  }
  for (const store::Alias& alias : aliases) {
    if (alias.version == version.subject.number) names.push_back(alias.name);
  }
  const bool is_run = version.parent.size() <= 500 && !version.parent.empty();
  return {{"name", version.subject.id},
          {"version", std::to_string(version.subject.number)},
          {"creation_timestamp", version.begun_ms},
          {"last_updated_timestamp", updated_ms(version)},
          {"current_stage", stage_of(version)},
          {"description", text_or_empty(body, "description")},
          {"source", source.empty() ? version_location(version.subject) : source},
          {"run_id", is_run ? version.parent : ""},
          {"run_link", text_or_empty(body, "run_link")},
          {"model_id", text_or_empty(body, "model_id")},
          {"status", body.value(kPending, false) ? "PENDING_REGISTRATION" : "READY"},
          {"tags", tags},
          {"aliases", names}};
}

std::string download_location(Context& context, const store::Record& version, int max_depth) {
  const Json body = body_of(version);
  const std::string source = text_or_empty(body, "source");
  return source.empty() || body.value("frozen", false) ? version_location(version.subject)
                                                       : download_location(context, source, max_depth);
}

std::string download_location(Context& context, const std::string& source, int max_depth) {
  constexpr std::string_view kScheme = "models:/";
  if (!source.starts_with(kScheme) || max_depth == 0) return source;
  std::string rest = source.substr(kScheme.size());
  if (rest.starts_with("m-")) {
    const size_t slash = rest.find('/');
    const std::string below = slash == std::string::npos ? "" : rest.substr(slash);
    const auto logged = context.store.find({Kind::kModel, rest.substr(0, slash), 0});
    if (logged && logged->tags.contains(kLoggedModelTag)) return logged_model_location(context, *logged) + below;
  }
  const size_t slash = rest.rfind('/');
  int64_t number = 0;
  if (slash == std::string::npos) return source;
  const auto [end, error] = std::from_chars(rest.data() + slash + 1, rest.data() + rest.size(), number);
  if (error != std::errc() || end != rest.data() + rest.size() || number <= 0) return source;
  const auto version = context.store.find({Kind::kVersion, rest.substr(0, slash), number});
  return version ? download_location(context, *version, max_depth - 1) : source;
}

namespace {

// When MLflow's client copies a version, it copies all tags. Sinew's own tags describe only the original, so they are
// left out.
store::Labels tags_of_new(const Args& args) {
  store::Labels tags = labels_of(args, "tags");
  refuse_prompt(tags);
  std::erase_if(tags, [](const auto& tag) { return tag.first.starts_with("sinew."); });
  for (const auto& [key, value] : tags) {
    check_key(key, "tags.key");
    check_length(value, kMaxRegistryTag, "value");
  }
  return tags;
}

// Returns the logged model with this id, if there is one.
std::optional<store::Record> find_logged(Context& context, const std::string& id) {
  if (id.empty() || id.size() > 500) return std::nullopt;
  auto model = context.store.find({Kind::kModel, id, 0});
  return model && model->tags.contains(kLoggedModelTag) ? model : std::nullopt;
}

// Returns the id of the run that produced the version. If the client names no run, takes the run of a logged model:
// first of the one that is the source of the version, then of the one that the client names.
std::string run_of_new(Context& context, const Args& args) {
  const std::string given = args.text("run_id", "");
  if (!given.empty()) return given;  // perhaps a run of another server
  constexpr std::string_view kScheme = "models:/";
  const std::string source = args.text("source");
  const std::string of_source = source.starts_with(kScheme)
                                    ? source.substr(kScheme.size(), source.find('/', kScheme.size()) - kScheme.size())
                                    : "";
  for (const std::string& id : {of_source, args.text("model_id", "")}) {
    const auto model = find_logged(context, id);
    if (!model) continue;
    const std::string run = text_or_empty(body_of(*model), "source_run_id");
    if (!run.empty()) return run;
  }
  return "";
}

// Creates the version and attaches its files in one batch. The attachments need the version's number. So everything is
// done again if another writer creates a version meanwhile.
store::Subject create_version(Context& context, const store::Create& create, const FrozenFiles& frozen) {
  const std::string model = create.subject.id;
  store::Subject version{Kind::kVersion, model, 0};
  write_beside_others(context, {Kind::kModel, model}, [&] {
    const int64_t seen = context.store.newest_event({Kind::kVersion, model});
    const auto newest = context.store.list({.kind = Kind::kVersion, .name = model, .hidden = true, .limit = 1});
    version.number = newest.empty() ? 1 : newest[0].subject.number + 1;
    store::Batch batch{{create}};
    for (const store::Attachment& file : frozen.files) {
      batch.changes.push_back(store::Attach{version, file.path, file.digest, file.bytes});
    }
    store_upload_count(context, batch);
    batch.unchanged = {{{Kind::kVersion, model}, seen}};
    context.write(std::move(batch));
  });
  return version;
}

}  // namespace

Response versions_create(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_model(context, args.text("name"));
  const std::string source = args.text("source");
  const std::string location = download_location(context, source);
  check_source(context, source);
  check_source(context, location);
  const FrozenFiles frozen = freeze_files(context, location);
  Json body = Json::object();
  body["source"] = source;
  body["description"] = args.text("description", "");
  if (!frozen.files.empty()) body["frozen"] = true;
  if (frozen.files.empty() && is_on_this_server(location)) body[kPending] = true;
  for (const char* key : {"run_link", "model_id", "user_id"}) {
    if (args.has(key)) body[key] = args.text(key);
  }
  const std::string body_text = dump_json(body);
  const std::string run = run_of_new(context, args);
  store::Create create{{Kind::kVersion, model.subject.id}, run, "", body_text};
  create.tags = tags_of_new(args);
  const store::Subject version = create_version(context, create, frozen);
  return json_response(answer_with(context, version.id, version.number));
}

Response versions_get(Context& context, const Call& call) {
  const Args args(call);
  return json_response(answer_with(context, args.text("name"), args.integer("version")));
}

Response versions_update(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("name"), args.integer("version"));
  change_body(context, version.subject, [&](Json& body) { body["description"] = args.text("description", ""); });
  return json_response(answer_with(context, version.subject.id, version.subject.number));
}

Response versions_delete(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("name"), args.integer("version"));
  store::Batch batch{registry::deletion_of(context.store, version.subject)};
  for (const store::Alias& alias : require_model(context, version.subject.id).aliases) {
    if (alias.version == version.subject.number) {
      batch.changes.push_back(store::SetAlias{version.subject.id, alias.name, 0, alias.version});
    }
  }
  context.write(std::move(batch));
  return json_response(Json::object());
}

Response versions_search(Context& context, const Call& call) {
  const Args args(call);
  const auto clauses = parse_filter(args.text("filter", ""), kVersionGrammar);
  std::vector<Order> orders = parse_orders(args.texts("order_by"), kVersionGrammar);
  orders.push_back({{Column::Field::kAttribute, "last_updated_timestamp"}, false});
  orders.push_back({{Column::Field::kAttribute, "name"}, true});
  orders.push_back({{Column::Field::kAttribute, "version_number"}, false});
  std::vector<store::Record> found = all_records(context, Kind::kVersion);
  std::erase_if(found, [&](const store::Record& version) {
    return version.hidden ||
           !matches(clauses, [&](const Column& column) { return std::vector<Fact>{version_fact(version, column)}; });
  });
  const auto sorted = sorted_order(
      found.size(), orders, [&](size_t index, const Column& column) { return version_fact(found[index], column); });
  const Page page = page_of(args, found.size(), 10'000, 200'000);
  Json answer{{"model_versions", Json::array()}};
  std::map<std::string, std::vector<store::Alias>> aliases;
  for (size_t i = page.first; i < page.last; ++i) {
    const store::Record& version = found[sorted[i]];
    const auto [at, fresh] = aliases.try_emplace(version.subject.id);
    if (fresh) at->second = context.require(Kind::kModel, version.subject.id).aliases;
    answer["model_versions"].push_back(version_json(version, at->second));
  }
  if (!page.next.empty()) answer["next_page_token"] = page.next;
  return json_response(answer);
}

Response versions_transition(Context& context, const Call& call) {
  const Args args(call);
  std::string stage = lower_case(args.text("stage"));
  if (!stage.empty()) stage[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(stage[0])));
  if (stage != "None" && stage != "Staging" && stage != "Production" && stage != "Archived") {
    refuse_invalid("Invalid Model Version stage: " + stage, "use one of None, Staging, Production, Archived");
  }
  const store::Record version = require_version(context, args.text("name"), args.integer("version"));
  store::Batch batch{{store::SetTags{version.subject, {{kStageTag, stage}}}}};
  if (args.flag("archive_existing_versions", false)) {
    for (const store::Record& other : versions_of(context, version.subject.id)) {
      if (other.subject == version.subject || stage_of(other) != stage) continue;
      check_change(context, other);
      batch.changes.push_back(store::SetTags{other.subject, {{kStageTag, "Archived"}}});
    }
  }
  context.write(std::move(batch));
  return json_response(answer_with(context, version.subject.id, version.subject.number));
}

Response versions_set_tag(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("name"), args.integer("version"));
  refuse_prompt({{args.text("key"), args.text("value", "")}});
  context.write(tag_set(version.subject, args, kMaxRegistryTag));
  return json_response(Json::object());
}

Response versions_delete_tag(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("name"), args.integer("version"));
  context.write(tag_removed(version.subject, args));
  return json_response(Json::object());
}

Response versions_download_uri(Context& context, const Call& call) {
  const Args args(call);
  const store::Record version = require_version(context, args.text("name"), args.integer("version"));
  return json_response({{"artifact_uri", download_location(context, version)}});
}

}  // namespace sinew::web
