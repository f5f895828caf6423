// Implements `sinew models list`, `show`, `diff` and `verify`.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "base/size_text.h"
#include "cli/models.h"

namespace sinew::cli::models {
namespace {

using nlohmann::json;
using registry::VersionFacts;
using store::Kind;

std::string aliases_of(const store::Record& model, int64_t version) {
  std::string text;
  for (const store::Alias& alias : model.aliases) {
    if (alias.version == version) text += (text.empty() ? "" : ", ") + alias.name;
  }
  return text;
}

json version_json(store::Store& store, const store::Record& version, const store::Record& model) {
  const VersionFacts facts = registry::facts_of(store, version);
  json out = json::parse(facts_json(facts));
  out["model"] = facts.model;
  out["version"] = facts.version;
  out["aliases"] = json::array();
  for (const store::Alias& alias : model.aliases) {
    if (alias.version == facts.version) out["aliases"].push_back(alias.name);
  }
  out["files"] = json::object();
  for (const store::Attachment& file : store.attachments(version.subject)) out["files"][file.path] = file.digest;
  return out;
}

// Returns what the store knows about a version as a map of texts, so that two versions can be compared side by side.
std::map<std::string, std::string> texts_of(store::Store& store, const store::Record& version) {
  const VersionFacts facts = registry::facts_of(store, version);
  std::map<std::string, std::string> texts = {{"run", facts.run},
                                              {"status", facts.status},
                                              {"code", facts.code},
                                              {"environment", facts.environment},
                                              {"digest", facts.digest}};
  for (const auto& [name, value] : version.params) texts["option " + name] = value;
  for (const auto& [name, value] : facts.metrics) texts["metric " + name] = json(value).dump();
  for (const auto& [part, digest] : facts.data) texts["data " + part] = digest;
  for (const auto& [name, result] : facts.checks) texts["check " + name] = result;
  for (const auto& file : store.attachments(version.subject)) texts["file " + file.path] = file.digest;
  return texts;
}

}  // namespace

std::vector<store::Record> all_of(store::Store& store, Kind kind, const std::optional<std::string>& name) {
  auto all = store.all({.kind = kind, .name = name, .metrics = false});
  std::reverse(all.begin(), all.end());
  return all;
}

std::string metric_text(const VersionFacts& facts) {
  const std::string name = registry::pick_metric(facts, registry::PromotionRules().metric);
  const auto it = facts.metrics.find(name);
  if (it == facts.metrics.end()) return "";
  return printable(name) + " " + rounded_text(it->second, 4);
}

void print_line(const std::string& text) {
  std::puts(printable(text).c_str());
}

void print_json(const json& value) {
  std::puts(dump_json(value, 1).c_str());
}

int list(store::Store& store, const Given& given) {
  const auto versions = all_of(store, Kind::kVersion);
  json all = json::array();
  for (const store::Record& model : all_of(store, Kind::kModel)) {
    int64_t count = 0;
    for (const store::Record& version : versions) count += version.subject.id == model.subject.id;
    json aliases = json::object();
    std::string text;
    for (const store::Alias& alias : model.aliases) {
      aliases[alias.name] = alias.version;
      text += "  " + alias.name + " " + std::to_string(alias.version);
    }
    all.push_back({{"model", model.subject.id}, {"versions", count}, {"aliases", aliases}});
    if (!given.json())
      std::printf("%-24s %3lld version%s%s\n", printable(model.subject.id).c_str(), static_cast<long long>(count),
                  count == 1 ? " " : "s", printable(text).c_str());
  }
  if (given.json()) {
    print_json(all);
  } else if (all.empty()) {
    std::puts("no models yet; 'sinew models register RUN' makes one from a run");
  }
  return kDone;
}

int show(store::Store& store, const Given& given) {
  const store::Record version = registry::find_version(store, given.words[0]);
  const auto model = store.find({Kind::kModel, version.subject.id});
  if (given.json()) {
    print_json(version_json(store, version, *model));
    return kDone;
  }
  for (const store::Record& one : all_of(store, Kind::kVersion, version.subject.id)) {
    const VersionFacts facts = registry::facts_of(store, one);
    const std::string aliases = aliases_of(*model, facts.version);
    std::printf("%s/%lld  %s  %s%s%s\n", printable(facts.model).c_str(), static_cast<long long>(facts.version),
                metric_text(facts).c_str(), size_text(facts.bytes).c_str(), aliases.empty() ? "" : "  ",
                printable(aliases).c_str());
  }
  const VersionFacts facts = registry::facts_of(store, version);
  std::printf("\n%s", printable(to_string(registry::lineage(store, version.subject)), true).c_str());
  for (const auto& [name, result] : facts.checks) print_line("check " + name + ": " + result);
  for (const auto& [part, digest] : facts.data) print_line("data " + part + ": " + digest);
  if (!facts.environment.empty()) print_line("environment: " + facts.environment);
  for (const auto& [tag, text] : version.tags) print_line(tag + ": " + text);
  for (const store::Attachment& file : store.attachments(version.subject))
    std::printf("  %-28s %10s  %s\n", printable(file.path).c_str(), size_text(file.bytes).c_str(), file.digest.c_str());
  return kDone;
}

int diff(store::Store& store, const Given& given) {
  const auto left = texts_of(store, registry::find_version(store, given.words[0]));
  const auto right = texts_of(store, registry::find_version(store, given.words[1]));
  auto all = left;
  all.insert(right.begin(), right.end());
  json out = json::object();
  for (const auto& [name, ignored] : all) {
    const auto a = left.find(name), b = right.find(name);
    const std::string was = a == left.end() ? "-" : a->second, is = b == right.end() ? "-" : b->second;
    if (was == is) continue;
    out[name] = {was, is};
    if (!given.json())
      std::printf("%-36s %s -> %s\n", printable(name).c_str(), printable(was).c_str(), printable(is).c_str());
  }
  if (given.json()) print_json(out);
  if (!given.json() && out.empty()) std::puts("nothing differs");
  return kDone;
}

int verify(store::Store& store, const Given& given) {
  registry::Artifacts artifacts(given.place.artifacts_place());
  std::vector<store::Record> versions;
  if (given.words.size() == 1) versions.push_back(registry::find_version(store, given.words[0]));
  if (given.words.empty()) versions = all_of(store, Kind::kVersion);
  int64_t damaged = 0, files = 0;
  for (const store::Record& version : versions) {
    for (const store::Attachment& file : store.attachments(version.subject)) {
      ++files;
      const auto well = artifacts.verify(file.digest);
      if (well) continue;
      ++damaged;
      print_line(version.subject.id + "/" + std::to_string(version.subject.number) + " " + file.path + ": " +
                 well.error());
    }
  }
  std::printf("%lld of %lld files intact\n", static_cast<long long>(files - damaged), static_cast<long long>(files));
  return damaged == 0 ? kDone : kCheckFailed;
}

}  // namespace sinew::cli::models
