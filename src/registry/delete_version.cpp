// Deletes a version of a model.
#include "registry/registry.h"

namespace sinew::registry {
namespace {

using store::Kind;

constexpr int kMaxDeleteAttempts = 50;  // an attempt fails only if another process changes the model meanwhile

void judge(store::Store& store, const std::string& model, int64_t version) {
  const auto record = store.find({Kind::kVersion, model, version});
  const auto of = store.find({Kind::kModel, model});
  if (!of || !record || record->hidden)
    throw Error("MODEL_VERSION_NOT_FOUND", "model '" + model + "' has no version " + std::to_string(version),
                "'sinew models show " + model + "' lists its versions");
  for (const store::Alias& alias : of->aliases) {
    if (alias.version == version)
      throw Error("MODEL_VERSION_IN_USE",
                  model + "/" + std::to_string(version) + " cannot be deleted: it is the " + alias.name,
                  "move that alias to another version first");
  }
}

}  // namespace

std::vector<store::Change> deletion_of(store::Store& store, const store::Subject& version) {
  std::vector<store::Change> changes = {store::Update{version, {}, {}, true}};
  for (const store::Attachment& file : store.attachments(version)) changes.push_back(store::Detach{version, file.path});
  return changes;
}

void delete_version(store::Store& store, const std::string& model, int64_t version) {
  const store::Subject of_model{Kind::kModel, model}, subject{Kind::kVersion, model, version};
  for (int attempt = 0; attempt < kMaxDeleteAttempts; ++attempt) {
    store::Batch batch;
    for (const store::Subject& looked_at : {of_model, subject})
      batch.unchanged.push_back({looked_at, store.newest_event(looked_at)});
    judge(store, model, version);
    batch.changes = deletion_of(store, subject);
    const auto outcome = store.write(batch);
    if (outcome) return;
    if (outcome.error().reason != store::Refusal::Reason::kConflict)
      throw Error("MODEL_CHANGE_REFUSED", "the store refused to delete the version: " + outcome.error().why,
                  "check the model with 'sinew models show " + model + "'");
  }
  throw Error("MODEL_BUSY", "other processes changed model '" + model + "' during each attempt", "try again");
}

}  // namespace sinew::registry
