// Implements `sinew models register`, `promote`, `rollback`, `delete` and `gc`.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/size_text.h"
#include "cli/models.h"

namespace sinew::cli::models {
namespace {

using nlohmann::json;
using registry::VersionFacts;
using store::Kind;

int print_move(const registry::Promotion& promotion, const std::string& model, const std::string& alias,
               const Given& given) {
  if (given.json()) {
    print_json({{"model", model},
                {"alias", alias},
                {"from", promotion.from},
                {"to", promotion.to},
                {"done", promotion.done},
                {"why", promotion.decision.why},
                {"facts", promotion.decision.facts}});
  } else {
    print_line(alias + " of " + model + (promotion.done ? " is " : " stays ") +
               std::to_string(promotion.done ? promotion.to : promotion.from) + ": " + promotion.decision.why);
    for (const std::string& fact : promotion.decision.facts) print_line("  " + fact);
  }
  return promotion.done ? kDone : kCheckFailed;
}

}  // namespace

int register_one(store::Store& store, const Given& given) {
  if (given.alias == registry::kChampion)
    throw UsageError("MODEL_ALIAS_RESERVED", "register makes a candidate; promote judges it and makes it the champion",
                     "sinew models register RUN, then sinew models promote MODEL@candidate");
  const store::Record run = run_in_store(store, given.place.root, given.words[0]);
  registry::Artifacts artifacts(given.place.artifacts_place());
  registry::RegisterOptions options;
  options.model = given.model;
  options.restore = given.restore;
  if (!given.alias.empty()) options.alias = given.alias;
  const VersionFacts facts = register_run(store, artifacts, run, given.place.root, options);
  if (given.json()) {
    json out = json::parse(facts_json(facts));
    out["model"] = facts.model;
    out["version"] = facts.version;
    print_json(out);
    return kDone;
  }
  print_line(facts.model + "/" + std::to_string(facts.version) + "  " + metric_text(facts));
  const auto model = store.find({Kind::kModel, facts.model});
  const bool moved = std::ranges::any_of(model->aliases, [&](const store::Alias& alias) {
    return alias.name == options.alias && alias.version == facts.version;
  });
  if (!moved) print_line("(!) this version was registered before: the alias " + options.alias + " stays where it was");
  if (!facts.checks.contains("intact"))
    print_line("(!) the model has no model.digests.json, so its files were not checked for damage");
  for (const auto& [name, result] : facts.checks) {
    if (result != "passed") print_line("(!) check " + name + ": " + result);
  }
  return kDone;
}

int promote_one(store::Store& store, const Given& given) {
  const store::Record version = registry::find_version(store, given.words[0]);
  const std::string alias = given.alias.empty() ? registry::kChampion : given.alias;
  return print_move(
      registry::promote(store, version.subject.id, version.subject.number, given.gates, alias, given.force),
      version.subject.id, alias, given);
}

int roll_back(store::Store& store, const Given& given) {
  const std::string alias = given.alias.empty() ? registry::kChampion : given.alias;
  return print_move(registry::rollback(store, given.words[0], alias), given.words[0], alias, given);
}

int delete_one(store::Store& store, const Given& given) {
  const store::Subject version = registry::find_version(store, given.words[0]).subject;
  if (!given.words[0].ends_with("/" + std::to_string(version.number)))
    throw UsageError("OPTION_INVALID", "delete needs a version's number",
                     "sinew models delete " + given.words[0] + "/1");
  registry::delete_version(store, version.id, version.number);
  return kDone;
}

int collect(store::Store& store, const Given& given) {
  registry::Artifacts artifacts(given.place.artifacts_place());
  const auto collected = registry::collect_garbage(store, artifacts, given.dry_run);
  if (!given.dry_run) registry::remove_old_checkouts(store, given.place.root);
  for (const std::string& problem : collected.problems) std::fprintf(stderr, "(!) %s\n", printable(problem).c_str());
  if (given.json()) {
    print_json({{"removed", collected.blobs},
                {"removed_bytes", collected.bytes},
                {"kept", collected.kept},
                {"kept_bytes", collected.kept_bytes},
                {"problems", collected.problems}});
  } else {
    std::printf("%s %lld files, %s; kept %lld, %s\n", given.dry_run ? "would remove" : "removed",
                static_cast<long long>(collected.blobs), size_text(collected.bytes).c_str(),
                static_cast<long long>(collected.kept), size_text(collected.kept_bytes).c_str());
  }
  return collected.problems.empty() ? kDone : kCheckFailed;
}

}  // namespace sinew::cli::models
