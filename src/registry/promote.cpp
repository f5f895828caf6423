// Moves aliases. Writes a decision only if the model has not changed since it was made.
#include "registry/registry.h"

namespace sinew::registry {
namespace {

using store::Kind;

constexpr int kMaxPromoteAttempts = 50;  // an attempt fails only if another process changes the model meanwhile

store::Record model_record(store::Store& store, const std::string& model) {
  if (auto record = store.find({Kind::kModel, model})) return std::move(*record);
  throw Error("MODEL_NOT_FOUND", "there is no model '" + model + "'", "'sinew models list' lists all models");
}

store::Alias alias_of(const store::Record& model, const std::string& name) {
  for (const store::Alias& alias : model.aliases) {
    if (alias.name == name) return alias;
  }
  return {name, 0, 0};
}

store::Record version_record(store::Store& store, const std::string& model, int64_t version) {
  auto record = store.find({Kind::kVersion, model, version});
  if (record && !record->hidden) return std::move(*record);
  throw Error("MODEL_VERSION_NOT_FOUND", "model '" + model + "' has no version " + std::to_string(version),
              "'sinew models show " + model + "' lists its versions");
}

bool is_withdrawn(const store::Record& version, const std::string& alias) {
  return version.tags.contains(withdrawn_tag(alias));
}

// Returns the change that withdraws the version from the alias, with the reason.
store::SetTags withdrawal(const store::Subject& version, const std::string& alias, const std::string& why) {
  return {version, {{withdrawn_tag(alias), why}}};
}

using Seen = std::vector<store::Batch::Unchanged>;

// Returns the newest events of the model and of its versions. Both are needed, because the deletion of a version is no
// event of the model.
Seen newest_of(store::Store& store, const std::string& model) {
  Seen seen;
  for (const Kind kind : {Kind::kModel, Kind::kVersion})
    seen.push_back({{kind, model}, store.newest_event({kind, model})});
  return seen;
}

// A move that was decided. `withdrawn` says why the version that the alias leaves is withdrawn; it is empty if that
// version is not withdrawn.
struct Move {
  Promotion promotion;
  std::string withdrawn = {};
};

// Returns false, and changes nothing, if the model or its versions have changed since `seen`.
bool move_alias(store::Store& store, const std::string& model, const std::string& alias, const Move& move,
                const Seen& seen, const Mover& mover) {
  const Promotion& to = move.promotion;
  store::Batch batch;
  batch.held = mover.held;
  batch.actor = mover.actor;
  batch.changes.push_back(store::SetAlias{model, alias, to.to, to.from});
  batch.changes.push_back(
      store::SetTags{{Kind::kVersion, model, to.to},
                     {{"sinew.decision." + alias, to.decision.why}, {withdrawn_tag(alias), std::nullopt}}});
  if (!move.withdrawn.empty())
    batch.changes.push_back(withdrawal({Kind::kVersion, model, to.from}, alias, move.withdrawn));
  batch.unchanged = seen;
  const auto outcome = store.write(batch);
  if (outcome) return true;
  if (outcome.error().reason == store::Refusal::Reason::kConflict) return false;
  throw Error("MODEL_CHANGE_REFUSED", "the store refused to move alias " + alias + ": " + outcome.error().why,
              "check the model with 'sinew models show " + model + "'");
}

// Calls `decide` with the current alias and moves the alias accordingly. Decides again if the model changes meanwhile.
template <typename Decide>
Promotion move_as_decided(store::Store& store, const std::string& model, const std::string& alias, const Mover& mover,
                          Decide decide) {
  Move move;
  Promotion& promotion = move.promotion;
  for (int attempt = 0; attempt < kMaxPromoteAttempts; ++attempt) {
    const Seen seen = newest_of(store, model);
    const store::Alias stands = alias_of(model_record(store, model), alias);
    move = decide(stands);
    promotion.from = stands.version;
    if (!promotion.decision.allowed) return promotion;
    promotion.done = promotion.to == promotion.from || move_alias(store, model, alias, move, seen, mover);
    if (promotion.done) return promotion;
  }
  promotion.decision.allowed = false;
  promotion.decision.why = "other processes changed the model during each attempt";
  return promotion;
}

}  // namespace

Promotion promote(store::Store& store, const std::string& model, int64_t version, const PromotionRules& rules,
                  const std::string& alias, bool force, const Mover& mover) {
  return move_as_decided(store, model, alias, mover, [&](const store::Alias& stands) {
    Move move;
    Promotion& promotion = move.promotion;
    promotion.to = version;
    std::optional<VersionFacts> champion;
    const auto stood = store.find({Kind::kVersion, model, stands.version});
    if (stood && !stood->hidden) champion = facts_of(store, *stood);  // a deleted version is no champion
    const store::Record candidate = version_record(store, model, version);
    promotion.decision = may_promote(facts_of(store, candidate), champion, rules);
    if (promotion.decision.allowed && is_withdrawn(candidate, alias)) {
      promotion.decision.allowed = false;
      promotion.decision.why = "version " + std::to_string(version) + " was withdrawn from the alias " + alias + ": " +
                               candidate.tags.at(withdrawn_tag(alias));
    }
    if (!promotion.decision.allowed && force) {
      promotion.decision.allowed = true;
      promotion.decision.why = "forced, although " + promotion.decision.why;
    }
    return move;
  });
}

Promotion rollback(store::Store& store, const std::string& model, const std::string& alias, const Mover& mover) {
  return move_as_decided(store, model, alias, mover, [&](const store::Alias& stands) {
    Move move;
    Promotion& promotion = move.promotion;
    promotion.to = stands.previous;
    const auto before = store.find({Kind::kVersion, model, stands.previous});
    if (stands.version == 0 || stands.previous == 0) {
      promotion.decision.why = stands.version == 0 ? model + " has no alias " + alias
                                                   : "alias " + alias + " of " + model + " has no earlier version";
    } else if (!before || before->hidden) {
      promotion.decision.why = "the earlier version, " + std::to_string(stands.previous) + ", is deleted";
    } else if (is_withdrawn(*before, alias)) {
      promotion.decision.why = "the earlier version, " + std::to_string(stands.previous) +
                               ", was withdrawn: " + before->tags.at(withdrawn_tag(alias));
    } else {
      promotion.decision.allowed = true;
      promotion.decision.why = "rolled back from version " + std::to_string(stands.version);
      move.withdrawn = "rolled back to version " + std::to_string(stands.previous);
    }
    return move;
  });
}

std::string withdrawn_tag(const std::string& alias) {
  return "sinew.withdrawn." + alias;
}

store::Outcome set_alias(store::Store& store, const std::string& model, const std::string& alias, int64_t version,
                         std::optional<int64_t> expected, const Mover& mover) {
  for (int attempt = 0; attempt < kMaxPromoteAttempts; ++attempt) {
    const Seen seen = newest_of(store, model);
    const int64_t from = alias_of(model_record(store, model), alias).version;
    store::Batch batch;
    batch.held = mover.held;
    batch.actor = mover.actor;
    batch.changes.push_back(store::SetAlias{model, alias, version, expected});
    if (version > 0)
      batch.changes.push_back(store::SetTags{{Kind::kVersion, model, version}, {{withdrawn_tag(alias), std::nullopt}}});
    if (from > version) {
      const std::string why =
          version == 0 ? "the alias was removed" : "the alias was moved to version " + std::to_string(version);
      batch.changes.push_back(withdrawal({Kind::kVersion, model, from}, alias, why));
    }
    batch.unchanged = seen;
    auto outcome = store.write(batch);
    const bool conflict = !outcome && outcome.error().reason == store::Refusal::Reason::kConflict;
    if (!conflict || (expected && alias_of(model_record(store, model), alias).version != *expected)) return outcome;
  }
  throw Error("MODEL_BUSY", "other processes changed model '" + model + "' during each attempt", "try again");
}

}  // namespace sinew::registry
