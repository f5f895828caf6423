// Registers a run's model as a version: copies its files into the artifacts, then creates the version in one batch.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_fields.h"
#include "registry/registry.h"
#include "registry/run_files.h"
#include "registry/weights.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

using nlohmann::json;
using rundir::file_in;
using store::Kind;

constexpr int kMaxRegisterAttempts = 50;  // an attempt fails only if another process makes a version meanwhile
constexpr const char* kRecords[] = {rundir::kJobFile, rundir::kResolvedFile, rundir::kEnvironmentFile,
                                    rundir::kOutcomeFile, rundir::kDataManifest};

struct Frozen {
  std::vector<store::Attachment> files;
  int64_t bytes = 0;
  std::string digest_of(const std::string& path) const {
    for (const store::Attachment& file : files) {
      if (file.path == path) return file.digest;
    }
    return "";
  }
};

Frozen freeze(Artifacts::Pin& pin, const BeneathFile& run, const RunFiles& files) {
  Frozen frozen;
  const auto put = [&](const std::string& name) {
    const auto file = open_in_run(run, files.path, name);
    if (!file) return;
    const BlobInfo stored = pin.put_file(file->path());
    frozen.files.push_back({name, stored.digest, stored.bytes});
    frozen.bytes += stored.bytes;
  };
  for (const auto& [name, bytes] : files.model) put(file_in(rundir::kModel, name));
  for (const char* name : kRecords) put(name);
  std::sort(frozen.files.begin(), frozen.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return frozen;
}

std::string environment_text(const json& environment) {
  std::string text;
  const std::pair<const char*, const char*> fields[] = {{"libtorch", "libtorch "}, {"cpu_capability", ""}, {"cpu", ""}};
  for (const auto& [name, label] : fields) {
    if (const std::string value = text_or_empty(environment, name); !value.empty())
      text += (text.empty() ? "" : ", ") + std::string(label) + value;
  }
  return text;
}

// Returns the digests of the splits as data.json has them. If there is no data.json, returns only the digest of the
// training data in the newest checkpoint.
std::map<std::string, std::string> data_digests(const BeneathFile& run, const RunFiles& files) {
  std::map<std::string, std::string> digests;
  if (files.data.is_object()) {
    const json splits = files.data.value("parts", json::object());
    for (const auto& [split, facts] : splits.items())
      if (const std::string digest = text_or_empty(facts, "digest"); !digest.empty()) digests[split] = digest;
    return digests;
  }
  constexpr uint64_t kMaxStateBytes = 64 << 20;
  for (auto name = files.checkpoints.rbegin(); name != files.checkpoints.rend(); ++name) {
    const auto file = open_in_run(run, files.path, file_in(rundir::kCheckpoints, *name) + "/state.json");
    if (!file || system_disk().size(file->path()) > kMaxStateBytes) continue;
    const json state = json::parse(read_text(system_disk(), file->path()), nullptr, false);
    const std::string digest = text_or_empty(state, "data_digest");
    if (!digest.empty()) digests["train"] = "xxh3:" + digest;
    break;
  }
  return digests;
}

VersionFacts facts_of_run(const RunFiles& files, const BeneathFile& run, const Frozen& frozen,
                          const RegisterOptions& options) {
  VersionFacts facts;
  facts.model = options.model.empty() ? files.job : options.model;
  facts.run = files.id;
  facts.bytes = frozen.bytes;
  if (files.outcome) {
    facts.status = files.outcome->status;
    facts.metrics = files.outcome->last;
    facts.digest = files.outcome->digest;
    if (files.outcome->best) facts.monitor = files.outcome->best->metric;
  } else {
    facts.status = files.locked ? "running" : "interrupted";
  }
  facts.data = data_digests(run, files);
  if (const std::string version = text_or_empty(files.environment, "sinew"); !version.empty())
    facts.code = "sinew " + version;
  facts.environment = environment_text(files.environment);
  facts.checks = options.checks;
  facts.checks["done"] = facts.status == "done" ? "passed" : "the run is " + facts.status;
  const auto weights = open_in_run(run, files.path, file_in(rundir::kModel, "model.safetensors"));
  if (weights) {
    const WeightsCheck check = check_weights(system_disk(), weights->path());
    facts.checks["whole"] = check.whole;
    facts.checks["finite"] = check.finite;
  }
  return facts;
}

// Returns the run or version whose weights the training started from.
std::optional<store::Subject> parent_of(store::Store& store, const RunFiles& files, const std::string& root) {
  for (const char* key : {"model.init_from.path", "model.init_from"}) {
    const auto it = files.params.find(key);
    if (it == files.params.end() || it->second.empty() || it->second == "none") continue;
    if (auto version = version_of_checkout(root, it->second)) return version;
    std::error_code code;
    const auto path = std::filesystem::relative(it->second, root, code);
    std::string below = code ? "" : path.lexically_normal().string();
    for (; !below.empty() && below != "."; below = std::filesystem::path(below).parent_path().string()) {
      try {
        const store::Record run = find_run(store, below, "");
        if (directory_of(run, "") != "/" + below) continue;  // another run whose name ends in the same way
        const auto versions =
            store.list({.kind = Kind::kVersion, .parent = run.subject.id, .metrics = false, .limit = 1});
        return versions.empty() ? run.subject : versions[0].subject;
      } catch (const Error&) {  // this is not a run directory; try its parent
      }
    }
  }
  return std::nullopt;
}

std::vector<store::Link> links_of(store::Store& store, const store::Subject& version, const RunFiles& files,
                                  const Frozen& frozen, const VersionFacts& facts, const std::string& root) {
  std::vector<store::Link> links;
  const auto add = [&](const char* role, Kind kind, const std::string& id) {
    if (!id.empty()) links.push_back({version, role, {kind, id}});
  };
  add("run", Kind::kRun, files.id);
  const std::string all = text_or_empty(files.data, "digest");
  const auto train = facts.data.find("train");
  add("data", Kind::kData, !all.empty() ? all : train == facts.data.end() ? "" : train->second);
  add("job", Kind::kContent, frozen.digest_of(rundir::kResolvedFile));
  add("environment", Kind::kContent, frozen.digest_of(rundir::kEnvironmentFile));
  add("code", Kind::kContent, facts.code);
  if (const auto parent = parent_of(store, files, root)) links.push_back({version, "parent", *parent});
  return links;
}

bool same_files(std::vector<store::Attachment> there, const Frozen& frozen) {
  return std::equal(there.begin(), there.end(), frozen.files.begin(), frozen.files.end(),
                    [](const auto& a, const auto& b) { return a.path == b.path && a.digest == b.digest; });
}

// Returns the batch that creates the version with the next number. If another process takes this number first, the
// store refuses the batch.
store::Batch version_batch(store::Store& store, const VersionFacts& facts, const RunFiles& files, const Frozen& frozen,
                           const RegisterOptions& options, const std::string& root) {
  const store::Subject version{Kind::kVersion, facts.model, facts.version};
  store::Batch batch;
  const auto model = store.find({Kind::kModel, facts.model});
  if (!model) batch.changes.push_back(store::Create{{Kind::kModel, facts.model}});
  if (model && model->hidden) {
    if (!options.restore)
      throw Error("MODEL_DELETED", "the model '" + facts.model + "' was deleted",
                  "register under another name with --model, or restore the model with --restore");
    batch.changes.push_back(store::Update{model->subject, {}, {}, false});
  }
  store::Create create;
  create.subject = {Kind::kVersion, facts.model};
  create.parent = files.id;
  create.body = facts_json(facts);
  create.params = files.params;
  batch.changes.push_back(std::move(create));
  for (const store::Attachment& file : frozen.files)
    batch.changes.push_back(store::Attach{version, file.path, file.digest, file.bytes});
  for (store::Link& link : links_of(store, version, files, frozen, facts, root))
    batch.changes.push_back(std::move(link));
  if (!options.alias.empty()) batch.changes.push_back(store::SetAlias{facts.model, options.alias, facts.version, {}});
  return batch;
}

}  // namespace

VersionFacts register_run(store::Store& store, Artifacts& artifacts, const store::Record& run, const std::string& root,
                          const RegisterOptions& options) {
  const std::string directory = directory_of(run, root);
  if (directory.empty())
    throw Error("RUN_NO_DIRECTORY", "run " + run.subject.id + " has no directory, because a client logged it",
                "register its model through that client");
  const auto opened = open_run(root, run.tags.at(kTagDirectory));
  const auto files = read_run_files(root, run.tags.at(kTagDirectory));
  if (!opened || !files || files->id != run.subject.id)
    throw Error("RUN_CHANGED", directory + " now holds another run than when it was indexed",
                "run the command again, which indexes it anew, or restore the directory");
  if (files->model.empty() && system_disk().exists(rundir::file_in(directory, rundir::kTrials)))
    throw Error("RUN_NO_MODEL", directory + " is a cross-validation or a search, so it has no model of its own",
                "register the run of a trial, or train the final model: sinew train job.yaml data.split.folds=0");
  if (files->model.empty())
    throw Error("RUN_NO_MODEL", directory + " has no model/, which a run writes when it ends",
                "'sinew runs show' shows how the run ended; 'sinew resume' continues it");
  claim(store, artifacts);
  auto pin = artifacts.pin();  // keeps the files until the version refers to them
  const Frozen frozen = freeze(pin, *opened, *files);
  const bool listed = check_model_files(artifacts, frozen.files, directory);
  VersionFacts facts = facts_of_run(*files, *opened, frozen, options);
  if (listed) facts.checks["intact"] = "passed";
  const store::Query of_model{.kind = Kind::kVersion, .name = facts.model, .hidden = true, .metrics = false};
  for (int attempt = 0; attempt < kMaxRegisterAttempts; ++attempt) {
    const int64_t seen = store.newest_event({Kind::kVersion, facts.model});
    facts.version = 1;
    for (const store::Record& version : store.all(of_model)) {
      if (!version.hidden && version.parent == files->id && same_files(store.attachments(version.subject), frozen))
        return facts_of(store, version);
      facts.version = std::max(facts.version, version.subject.number + 1);
    }
    store::Batch batch = version_batch(store, facts, *files, frozen, options, root);
    batch.unchanged = {{{Kind::kVersion, facts.model}, seen}};
    const auto outcome = store.write(batch);
    if (outcome) return facts;
    using Reason = store::Refusal::Reason;
    if (outcome.error().reason != Reason::kConflict && outcome.error().reason != Reason::kExists)
      throw Error("MODEL_CHANGE_REFUSED", "the store refused the version: " + outcome.error().why,
                  "check the run with 'sinew runs show'");
  }
  throw Error("MODEL_BUSY", "other processes made versions of " + facts.model + " during each attempt", "try again");
}

}  // namespace sinew::registry
