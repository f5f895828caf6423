// Reads everything that decides the bits of a run's result, and finds where two runs differ.
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "registry/registry.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

using nlohmann::json;
using rundir::file_in;

std::string text_or_empty(const std::string& path) {
  return system_disk().exists(path) ? read_text(system_disk(), path) : "";
}

std::map<std::string, std::string> flat(const json& object) {
  std::map<std::string, std::string> out;
  if (!object.is_object()) return out;
  for (const auto& [key, value] : object.items())
    out[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return out;
}

std::vector<std::pair<int64_t, std::string>> read_ledger(const std::string& path) {
  std::vector<std::pair<int64_t, std::string>> ledger;
  rundir::FilePosition mark;
  while (true) {
    const rundir::FilePiece piece = rundir::read_piece(path, mark, 1 << 20);
    if (piece.cut_back) ledger.clear();
    for (size_t at = 0; at < piece.text.size();) {
      const size_t end = piece.text.find('\n', at);
      const json line = json::parse(piece.text.substr(at, end - at), nullptr, false);
      at = end + 1;
      if (line.is_object() && line.contains("step") && line["step"].is_number_integer() && line.contains("digest") &&
          line["digest"].is_string())
        ledger.emplace_back(line["step"].get<int64_t>(), line["digest"].get<std::string>());
    }
    mark = piece.after;
    if (!piece.more) return ledger;
  }
}

// Fills in entries of the control log of the newest readable checkpoint: changes of the learning rate and of the batch
// size, evaluations that a user or the clock asked for, and the end of the run. A stop with another exit code than 0
// only ends an attempt, so it is left out.
void read_steering(const std::string& run_directory, RunIdentity& identity) {
  constexpr uint64_t kMaxStateBytes = 64 << 20;
  const std::string checkpoints = file_in(run_directory, rundir::kCheckpoints);
  std::set<std::string, std::greater<>> newest_first;
  if (!system_disk().exists(checkpoints)) return;
  for (const Disk::Entry& entry : system_disk().list(checkpoints)) {
    if (entry.name.starts_with("step-")) newest_first.insert(entry.name);
  }
  for (const std::string& name : newest_first) {
    const std::string path = checkpoints + "/" + name + "/state.json";
    if (!system_disk().exists(path) || system_disk().size(path) > kMaxStateBytes) continue;
    const json state = json::parse(read_text(system_disk(), path), nullptr, false);
    if (!state.is_object() || !state.contains("control") || !state["control"].is_array()) continue;
    for (const json& entry : state["control"]) {
      const std::string kind = entry.is_object() ? entry.value("kind", json()).dump() : "";
      const std::string step = entry.is_object() ? entry.value("step", json()).dump() : "";
      if (kind == "\"evaluate\"" && entry.value("done", json()) == json(true))
        identity.timed_changes.push_back("an evaluation at step " + step);
      if (kind == "\"stop\"" && entry.value("value", json()) == json(0))
        identity.timed_changes.push_back("the end at step " + step);
      if (kind == "\"max_duration\"")
        identity.manual_changes.push_back("the end was changed at step " + step + ": " + entry.value("reason", ""));
      if (kind != "\"learning_rate\"" && kind != "\"batch_size\"") continue;
      identity.manual_changes.push_back(
          (kind == "\"batch_size\"" ? "the batch size was set to " : "the learning rate was multiplied by ") +
          entry.value("value", json()).dump() + " from step " + step + " on");
    }
    return;
  }
}

using Texts = std::map<std::string, std::string>;

// Appends a line to `facts` for each key that has different values in the two maps.
template <typename Skip>
void compare_texts(const Texts& was, const Texts& is, const std::string& what, Skip skip,
                   std::vector<std::string>& facts) {
  Texts all = was;
  all.insert(is.begin(), is.end());
  for (const auto& [key, ignored] : all) {
    if (skip(key)) continue;
    const auto mine = was.find(key), other = is.find(key);
    const std::string before = mine == was.end() ? "absent" : mine->second;
    const std::string now = other == is.end() ? "absent" : other->second;
    if (before != now) facts.push_back(what + " differs: " + key + " was " + before + ", is " + now);
  }
}

void compare_data(const DataManifest& was, const DataManifest& is, std::vector<std::string>& facts) {
  if (was.digest == is.digest) return;
  if (was.digest.empty() || is.digest.empty()) return;
  constexpr size_t kMaxNamed = 3;
  const auto changes = compare(was, is);
  std::string text;
  for (size_t i = 0; i < std::min(changes.size(), kMaxNamed); ++i) text += (i == 0 ? "" : "; ") + to_string(changes[i]);
  if (changes.size() > kMaxNamed) text += "; and " + std::to_string(changes.size() - kMaxNamed) + " more";
  facts.push_back("the data differs: " + text);
}

std::string text_of_timed(const std::vector<std::string>& changes) {
  constexpr size_t kMaxNamed = 3;
  std::string text;
  for (size_t i = 0; i < std::min(changes.size(), kMaxNamed); ++i) text += (i == 0 ? "" : ", ") + changes[i];
  if (changes.size() > kMaxNamed) text += " and " + std::to_string(changes.size() - kMaxNamed) + " more";
  return text.empty() ? "nothing" : text;
}

// Returns the first step for which the two ledgers have different digests, or 0 if there is none.
int64_t first_difference(const RunIdentity& recorded, const RunIdentity& again) {
  std::map<int64_t, std::string> was(recorded.ledger.begin(), recorded.ledger.end());
  for (const auto& [step, digest] : again.ledger) {
    const auto it = was.find(step);
    if (it != was.end() && it->second != digest) return step;
  }
  return 0;
}

}  // namespace

RunIdentity read_identity(const std::string& run_directory) {
  RunIdentity identity;
  const std::string yaml = text_or_empty(file_in(run_directory, rundir::kResolvedFile));
  if (yaml.empty())
    throw Error("RUN_NOT_FOUND", run_directory + " is not a run: it has no resolved.yaml", "name a run directory");
  identity.options = rundir::flat_options(yaml);
  identity.environment =
      flat(json::parse(text_or_empty(file_in(run_directory, rundir::kEnvironmentFile)), nullptr, false));
  if (auto manifest = parse_manifest(text_or_empty(file_in(run_directory, rundir::kDataManifest))))
    identity.data = std::move(*manifest);
  if (const auto outcome = rundir::parse_outcome(text_or_empty(file_in(run_directory, rundir::kOutcomeFile))))
    identity.digest = outcome->digest;
  identity.ledger = read_ledger(file_in(run_directory, rundir::kLedgerFile));
  read_steering(run_directory, identity);
  return identity;
}

Comparison compare(const RunIdentity& recorded, const RunIdentity& again) {
  Comparison comparison;
  std::vector<std::string>& facts = comparison.facts;
  if (recorded.manual_changes != again.manual_changes) {
    for (const std::string& what : recorded.manual_changes) facts.push_back("a user changed the recorded run: " + what);
    for (const std::string& what : again.manual_changes) facts.push_back("a user changed the new run: " + what);
  }
  // The seed comes before the data, because the splits may follow from it.
  constexpr const char* kSeed = "trainer.seed";
  compare_texts(
      recorded.options, again.options, "the job", [](const std::string& key) { return key != kSeed; }, facts);
  compare_data(recorded.data, again.data, facts);
  // The choice of checkpoints (what is monitored and kept) changes no bit of the result.
  const auto skip = [](const std::string& key) {
    return key == kSeed || rundir::is_of_the_machine(key) || key.starts_with("checkpoint.");
  };
  compare_texts(recorded.options, again.options, "the job", skip, facts);
  if (recorded.timed_changes != again.timed_changes) {
    facts.push_back(
        "the clock or a user chose other steps (trainer.eval_interval or trainer.max_duration in seconds): "
        "in the recorded run " +
        text_of_timed(recorded.timed_changes) + "; in the new run " + text_of_timed(again.timed_changes));
  }
  compare_texts(
      recorded.environment, again.environment, "the environment", [](const std::string& key) { return key == "cores"; },
      facts);
  comparison.same = !recorded.digest.empty() && recorded.digest == again.digest;
  if (comparison.same) {
    comparison.why = "same digest, " + recorded.digest;
    return comparison;
  }
  if (recorded.digest.empty() || again.digest.empty()) {
    comparison.why = (recorded.digest.empty() ? "the recorded run" : "the new run") +
                     std::string(" has no digest of its final state, because it did not end by itself");
    return comparison;
  }
  const int64_t step = first_difference(recorded, again);
  comparison.why = "the digest was " + recorded.digest + " and is " + again.digest;
  if (step > 0) comparison.why += "; the runs differ from step " + std::to_string(step) + " on";
  if (!facts.empty()) comparison.why += "; likely cause: " + facts[0];
  if (facts.empty())
    comparison.why += recorded.data.digest.empty()
                          ? "; job and environment are the same, but the digest of the data was not recorded"
                          : "; data, job and environment are the same, so an operator is not deterministic, or the "
                            "hardware made an error";
  return comparison;
}

}  // namespace sinew::registry
