#include <openssl/rand.h>

#include <cstring>

#include "web/artifacts.h"
#include "web/mlflow.h"
#include "web/mlflow_limits.h"
#include "web/permissions.h"

namespace sinew::web {
namespace {

using store::Kind;

const Grammar kExperimentGrammar{false, false, false, {"name", "experiment_id"}, {"creation_time", "last_update_time"}};

// Returns an id of 18 digits. MLflow's client accepts only digits, and other servers use 18 of them.
std::string new_experiment_id() {
  uint64_t random = 0;
  unsigned char bytes[sizeof random];
  if (RAND_bytes(bytes, sizeof bytes) != 1) throw Refused(kOverloaded, "OpenSSL has no random numbers", "try again");
  std::memcpy(&random, bytes, sizeof random);
  return std::to_string(100'000'000'000'000'000 + random % 900'000'000'000'000'000);
}

Fact experiment_fact(const store::Record& experiment, const Column& column) {
  if (column.field == Column::Field::kTag) {
    const auto tag = experiment.tags.find(column.key);
    return tag == experiment.tags.end() ? Fact() : Fact(tag->second);
  }
  if (column.key == "name") return experiment.name.empty() ? experiment.subject.id : experiment.name;
  if (column.key == "experiment_id") return experiment.subject.id;
  return static_cast<double>(column.key == "last_update_time" ? updated_ms(experiment) : experiment.begun_ms);
}

// Deletes or restores the experiment together with its runs, as MLflow does. The first batch changes the experiment, so
// that no run can be created in a deleted one. Runs that were created just before are deleted in a later batch.
void set_hidden(Context& context, const Call& call, bool hidden) {
  const std::string id = Args(call).text("experiment_id");
  const store::Subject experiment = context.require(Kind::kExperiment, id).subject;
  store::Batch batch{{store::Update{experiment, {}, {}, hidden}}};
  for (;;) {
    context.store.each({.kind = Kind::kRun, .parent = id, .hidden = true, .metrics = false},
                       [&](const store::Record& run) {
                         if (run.hidden == hidden) return;
                         batch.changes.push_back(store::Update{run.subject, {}, {}, hidden});
                       });
    if (batch.changes.empty()) return;
    context.write(std::move(batch));
    batch = {};
    if (!hidden) return;
  }
}

// Writes to the experiment. The store refuses the write if the experiment is deleted.
void write_to_experiment(Context& context, const std::string& id, store::Change change) {
  store::Batch batch{{std::move(change)}};
  batch.active = {{Kind::kExperiment, id}};
  context.write(std::move(batch));
}

}  // namespace

Response experiments_create(Context& context, const Call& call) {
  const Args args(call);
  const std::string name = args.text("name");
  if (name.empty()) refuse_invalid("Invalid experiment name: it is empty", "send a name");
  check_length(name, kMaxExperimentName, "name");
  check_experiment_scope(context.caller, name);
  Json body = Json::object();
  if (const std::string location = args.text("artifact_location", ""); !location.empty()) {
    check_artifact_location(context, location);
    body["artifact_location"] = location;
  }
  const std::string id = new_experiment_id();
  const std::string body_text = body.empty() ? "" : dump_json(body);
  store::Create create{{Kind::kExperiment, id}, "", name, body_text};
  create.tags = tags_of(args, kMaxExperimentTag);
  context.write(std::move(create));
  return json_response({{"experiment_id", id}});
}

Response experiments_get(Context& context, const Call& call) {
  const std::string id = Args(call).text("experiment_id");
  return json_response({{"experiment", experiment_json(context.require(Kind::kExperiment, id))}});
}

Response experiments_get_by_name(Context& context, const Call& call) {
  const std::string name = Args(call).text("experiment_name");
  store::Query query{Kind::kExperiment, {}, name, true, false, 0, 1};
  const auto found = context.store.list(query);
  if (!found.empty()) return json_response({{"experiment", experiment_json(found.front())}});
  const auto by_id =
      context.store.find({Kind::kExperiment, name, 0});  // an experiment without a name is found by its id
  if (!by_id || !by_id->name.empty()) refuse_missing("Could not find experiment with name '" + name + "'");
  return json_response({{"experiment", experiment_json(*by_id)}});
}

Response experiments_search(Context& context, const Call& call) {
  const Args args(call);
  const View view = view_of(args, "view_type");
  const auto clauses = parse_filter(args.text("filter", ""), kExperimentGrammar);
  std::vector<Order> orders = parse_orders(args.texts("order_by"), kExperimentGrammar);
  std::vector<store::Record> found = all_records(context, Kind::kExperiment);  // newest first, as in MLflow
  std::erase_if(found, [&](const store::Record& record) {
    return !is_in(view, record.hidden) ||
           !matches(clauses, [&](const Column& column) { return std::vector<Fact>{experiment_fact(record, column)}; });
  });
  const auto sorted = sorted_order(
      found.size(), orders, [&](size_t index, const Column& column) { return experiment_fact(found[index], column); });
  const Page page = page_of(args, found.size(), 1000, 50'000);
  Json answer{{"experiments", Json::array()}};
  for (size_t i = page.first; i < page.last; ++i) answer["experiments"].push_back(experiment_json(found[sorted[i]]));
  if (!page.next.empty()) answer["next_page_token"] = page.next;
  return json_response(answer);
}

Response experiments_delete(Context& context, const Call& call) {
  set_hidden(context, call, true);
  return json_response(Json::object());
}

Response experiments_restore(Context& context, const Call& call) {
  set_hidden(context, call, false);
  return json_response(Json::object());
}

Response experiments_update(Context& context, const Call& call) {
  const Args args(call);
  const store::Record record = context.require(Kind::kExperiment, args.text("experiment_id"));
  const std::string name = args.text("new_name");
  if (name.empty()) refuse_invalid("Invalid experiment name: it is empty", "send a name");
  check_experiment_scope(context.caller, name);
  write_to_experiment(context, record.subject.id, store::Update{record.subject, name});
  return json_response(Json::object());
}

Response experiments_set_tag(Context& context, const Call& call) {
  const Args args(call);
  const std::string id = args.text("experiment_id");
  write_to_experiment(context, id, tag_set({Kind::kExperiment, id}, args, kMaxExperimentTag));
  return json_response(Json::object());
}

Response experiments_delete_tag(Context& context, const Call& call) {
  const Args args(call);
  const std::string id = args.text("experiment_id");
  write_to_experiment(context, id, tag_removed({Kind::kExperiment, id}, args));
  return json_response(Json::object());
}

}  // namespace sinew::web
