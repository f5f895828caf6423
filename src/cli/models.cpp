// `sinew models`: versions of models: what there are, from where, and which one is the champion.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/size_text.h"
#include "cli/commands.h"
#include "cli/registry_place.h"
#include "spec/spec.h"

namespace sinew::cli {
namespace {

using nlohmann::json;
using registry::VersionFacts;
using store::Kind;

constexpr const char* kHelp =
    "usage: sinew models [list | show VERSION | register RUN | promote VERSION | rollback MODEL |\n"
    "                     diff VERSION VERSION | verify [VERSION] | delete VERSION | gc] [options]\n\n"
    "Trained models under a name, each with everything it came from. VERSION: MODEL/3, MODEL@champion, or MODEL: its\n"
    "champion, else its newest. RUN: a run directory, the end of its name, or 'last'.\n\n"
    "  list                 all models (the default)\n"
    "  show VERSION         one model's versions, and what this one was made from\n"
    "  register RUN         the run's model/ becomes the next version, and the candidate; again: the same version\n"
    "  promote VERSION      it becomes the champion, if it passes: checks, and at least as good on the same data\n"
    "  rollback MODEL       the champion is again what it was before\n"
    "  diff VERSION VERSION what differs: options, metrics, data, environment, files\n"
    "  verify [VERSION]     reads its files (of all versions) and checks them\n"
    "  delete VERSION       MODEL/3 is no version any more, and its files go with the next gc; not while an alias "
    "names it\n"
    "  gc                   removes files that nothing refers to\n\n"
    "options:\n"
    "  --model NAME         with register: the model's name (default: the job's)\n"
    "  --alias NAME         which alias is moved (default: champion; with register: candidate)\n"
    "  --metric NAME        with promote: what is compared (default: what the run was judged by, on test if it can "
    "be)\n"
    "  --margin X           with promote: better by at least X (below 0: may be worse by so much)\n"
    "  --allow other-data | unchecked   with promote: this is no reason to refuse\n"
    "  --force              with promote: move it though it does not pass; the reason is kept with it\n"
    "  --dry-run            with gc: only say what would go\n"
    "  --format FORMAT      table (default) or json\n";
constexpr const char* kHelpEnd = "\nexit codes: 0 done; 1 error; 2 usage; 4 refused by the gates, or a file is damaged";

struct Wishes {
  RegistryPlace place;
  registry::PromotionRules gates;
  std::string model, alias, format = "table";
  bool force = false, dry_run = false;
  std::vector<std::string> words;
  bool json() const { return format == "json"; }
};

double margin_of(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !(value > -1e300 && value < 1e300))
    throw UsageError("--margin is a number, not '" + text + "'", "--margin 0.01");
  return value;
}

void allow(registry::PromotionRules& gates, const std::string& what) {
  if (what == "other-data") {
    gates.need_same_data = false;
  } else if (what == "unchecked") {
    gates.need_checks = false;
  } else {
    throw UsageError("--allow is other-data or unchecked, not '" + what + "'", "sinew models --help");
  }
}

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--force" || word == "--dry-run") {
      (word == "--force" ? wishes.force : wishes.dry_run) = true;
      continue;
    }
    if (!word.starts_with("-")) {
      wishes.words.push_back(word);
      continue;
    }
    const std::map<std::string, std::string*> texts = {{"--model", &wishes.model},
                                                       {"--alias", &wishes.alias},
                                                       {"--metric", &wishes.gates.metric},
                                                       {"--format", &wishes.format}};
    const bool takes_value =
        texts.contains(word) || word == "--margin" || word == "--allow" || RegistryPlace().take(word, "");
    if (!takes_value) throw UsageError("no option '" + word + "'", "sinew models --help");
    if (++i == arguments.size()) throw UsageError(word + " needs a value", "sinew models --help");
    if (const auto text = texts.find(word); text != texts.end()) *text->second = arguments[i];
    if (word == "--margin") wishes.gates.margin = margin_of(arguments[i]);
    if (word == "--allow") allow(wishes.gates, arguments[i]);
    wishes.place.take(word, arguments[i]);
  }
  if (wishes.format != "table" && wishes.format != "json")
    throw UsageError("--format is table or json, not '" + wishes.format + "'", "sinew models --help");
  return wishes;
}

// Oldest first.
std::vector<store::Record> all_of(store::Store& store, Kind kind, const std::optional<std::string>& name = {}) {
  auto all = store.all({.kind = kind, .name = name, .metrics = false});
  std::reverse(all.begin(), all.end());
  return all;
}

std::string aliases_of(const store::Record& model, int64_t version) {
  std::string text;
  for (const store::Alias& alias : model.aliases) {
    if (alias.version == version) text += (text.empty() ? "" : ", ") + alias.name;
  }
  return text;
}

// The one by which it would be promoted.
std::string metric_text(const VersionFacts& facts) {
  const std::string name = registry::pick_metric(facts, registry::PromotionRules().metric);
  const auto it = facts.metrics.find(name);
  if (it == facts.metrics.end()) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%.4g", it->second);
  return printable(name) + " " + text;
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

// Names, tags and reasons may come from clients and files: a terminal must not be driven by them.
void say_line(const std::string& text) {
  std::puts(printable(text).c_str());
}

void print_json(const json& value) {
  std::puts(value.dump(1, ' ', false, json::error_handler_t::replace).c_str());
}

int list(store::Store& store, const Wishes& wishes) {
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
    if (!wishes.json())
      std::printf("%-24s %3lld version%s%s\n", printable(model.subject.id).c_str(), static_cast<long long>(count),
                  count == 1 ? " " : "s", printable(text).c_str());
  }
  if (wishes.json()) {
    print_json(all);
  } else if (all.empty()) {
    std::puts("no models yet; 'sinew models register RUN' makes one of a run");
  }
  return kDone;
}

int show(store::Store& store, const Wishes& wishes) {
  const store::Record version = registry::find_version(store, wishes.words[1]);
  const auto model = store.find({Kind::kModel, version.subject.id});
  if (wishes.json()) {
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
  for (const auto& [name, result] : facts.checks) say_line("check " + name + ": " + result);
  for (const auto& [part, digest] : facts.data) say_line("data " + part + ": " + digest);
  if (!facts.environment.empty()) say_line("environment: " + facts.environment);
  for (const auto& [tag, text] : version.tags) say_line(tag + ": " + text);
  for (const store::Attachment& file : store.attachments(version.subject))
    std::printf("  %-28s %10s  %s\n", printable(file.path).c_str(), size_text(file.bytes).c_str(), file.digest.c_str());
  return kDone;
}

int register_one(store::Store& store, const Wishes& wishes) {
  if (wishes.alias == registry::kChampion)
    throw UsageError("register makes a candidate; a champion is made by promote, which judges it",
                     "sinew models register RUN, then sinew models promote MODEL@candidate");
  const store::Record run = run_in_store(store, wishes.place.root, wishes.words[1]);
  registry::Artifacts artifacts(wishes.place.artifacts_place());
  registry::RegisterOptions options;
  options.model = wishes.model;
  if (!wishes.alias.empty()) options.alias = wishes.alias;
  const VersionFacts facts = register_run(store, artifacts, run, wishes.place.root, options);
  if (wishes.json()) {
    json out = json::parse(facts_json(facts));
    out["model"] = facts.model;
    out["version"] = facts.version;
    print_json(out);
    return kDone;
  }
  say_line(facts.model + "/" + std::to_string(facts.version) + "  " + metric_text(facts));
  const auto model = store.find({Kind::kModel, facts.model});
  const bool moved = std::ranges::any_of(model->aliases, [&](const store::Alias& alias) {
    return alias.name == options.alias && alias.version == facts.version;
  });
  if (!moved) say_line("(!) it was registered before: the alias " + options.alias + " stays where it was");
  for (const auto& [name, result] : facts.checks) {
    if (result != "passed") say_line("(!) check " + name + ": " + result);
  }
  return kDone;
}

int say_moved(const registry::Promotion& promotion, const std::string& model, const std::string& alias,
              const Wishes& wishes) {
  if (wishes.json()) {
    print_json({{"model", model},
                {"alias", alias},
                {"from", promotion.from},
                {"to", promotion.to},
                {"done", promotion.done},
                {"why", promotion.decision.why},
                {"facts", promotion.decision.facts}});
  } else {
    say_line(alias + " of " + model + (promotion.done ? " is " : " stays ") +
             std::to_string(promotion.done ? promotion.to : promotion.from) + ": " + promotion.decision.why);
    for (const std::string& fact : promotion.decision.facts) say_line("  " + fact);
  }
  return promotion.done ? kDone : kCheckFailed;
}

int promote_one(store::Store& store, const Wishes& wishes) {
  const store::Record version = registry::find_version(store, wishes.words[1]);
  const std::string alias = wishes.alias.empty() ? registry::kChampion : wishes.alias;
  return say_moved(
      registry::promote(store, version.subject.id, version.subject.number, wishes.gates, alias, wishes.force),
      version.subject.id, alias, wishes);
}

int roll_back(store::Store& store, const Wishes& wishes) {
  const std::string alias = wishes.alias.empty() ? registry::kChampion : wishes.alias;
  return say_moved(registry::rollback(store, wishes.words[1], alias), wishes.words[1], alias, wishes);
}

// What a version is, as texts that can be laid side by side.
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

int diff(store::Store& store, const Wishes& wishes) {
  const auto left = texts_of(store, registry::find_version(store, wishes.words[1]));
  const auto right = texts_of(store, registry::find_version(store, wishes.words[2]));
  auto all = left;
  all.insert(right.begin(), right.end());
  json out = json::object();
  for (const auto& [name, ignored] : all) {
    const auto a = left.find(name), b = right.find(name);
    const std::string was = a == left.end() ? "-" : a->second, is = b == right.end() ? "-" : b->second;
    if (was == is) continue;
    out[name] = {was, is};
    if (!wishes.json())
      std::printf("%-36s %s -> %s\n", printable(name).c_str(), printable(was).c_str(), printable(is).c_str());
  }
  if (wishes.json()) print_json(out);
  if (!wishes.json() && out.empty()) std::puts("nothing differs");
  return kDone;
}

int verify(store::Store& store, const Wishes& wishes) {
  registry::Artifacts artifacts(wishes.place.artifacts_place());
  std::vector<store::Record> versions;
  if (wishes.words.size() == 2) versions.push_back(registry::find_version(store, wishes.words[1]));
  if (wishes.words.size() == 1) versions = all_of(store, Kind::kVersion);
  int64_t damaged = 0, files = 0;
  for (const store::Record& version : versions) {
    for (const store::Attachment& file : store.attachments(version.subject)) {
      ++files;
      const auto well = artifacts.verify(file.digest);
      if (well) continue;
      ++damaged;
      say_line(version.subject.id + "/" + std::to_string(version.subject.number) + " " + file.path + ": " +
               well.error());
    }
  }
  std::printf("%lld of %lld files intact\n", static_cast<long long>(files - damaged), static_cast<long long>(files));
  return damaged == 0 ? kDone : kCheckFailed;
}

int delete_one(store::Store& store, const Wishes& wishes) {
  const store::Subject version = registry::find_version(store, wishes.words[1]).subject;
  if (!wishes.words[1].ends_with("/" + std::to_string(version.number)))
    throw UsageError("delete needs a version's number", "sinew models delete " + wishes.words[1] + "/1");
  registry::delete_version(store, version.id, version.number);
  return kDone;
}

int collect(store::Store& store, const Wishes& wishes) {
  registry::Artifacts artifacts(wishes.place.artifacts_place());
  const auto collected = registry::collect_garbage(store, artifacts, wishes.dry_run);
  for (const std::string& problem : collected.problems) std::fprintf(stderr, "(!) %s\n", printable(problem).c_str());
  if (wishes.json()) {
    print_json({{"removed", collected.blobs},
                {"removed_bytes", collected.bytes},
                {"kept", collected.kept},
                {"kept_bytes", collected.kept_bytes},
                {"problems", collected.problems}});
  } else {
    std::printf("%s %lld files, %s; kept %lld, %s\n", wishes.dry_run ? "would remove" : "removed",
                static_cast<long long>(collected.blobs), size_text(collected.bytes).c_str(),
                static_cast<long long>(collected.kept), size_text(collected.kept_bytes).c_str());
  }
  return collected.problems.empty() ? kDone : kCheckFailed;
}

struct Verb {
  const char* name;
  size_t least, most;  // words after it
  int (*run)(store::Store&, const Wishes&);
};
constexpr Verb kVerbs[] = {
    {"list", 0, 0, list},           {"show", 1, 1, show},          {"register", 1, 1, register_one},
    {"promote", 1, 1, promote_one}, {"rollback", 1, 1, roll_back}, {"diff", 2, 2, diff},
    {"verify", 0, 1, verify},       {"delete", 1, 1, delete_one},  {"gc", 0, 0, collect}};

}  // namespace

int run_models(const Arguments& arguments) {
  if (print_help_if_asked(arguments, (std::string(kHelp) + kRegistryPlaceHelp + kHelpEnd).c_str())) return kDone;
  Wishes wishes = parse(arguments);
  if (wishes.words.empty()) wishes.words = {"list"};
  const size_t words = wishes.words.size() - 1;
  for (const Verb& verb : kVerbs) {
    if (wishes.words[0] != verb.name || words < verb.least || words > verb.most) continue;
    if (verb.run == collect) wishes.place.need_store();
    const auto store = wishes.place.open_store();
    return verb.run(*store, wishes);
  }
  std::vector<std::string> known;
  for (const Verb& verb : kVerbs) known.emplace_back(verb.name);
  if (std::ranges::find(known, wishes.words[0]) != known.end())
    throw UsageError("'" + wishes.words[0] + "' takes other words than these " + std::to_string(words),
                     "sinew models --help");
  const std::string meant = spec::did_you_mean(wishes.words[0], known);
  throw UsageError("'" + wishes.words[0] + "' is no command of models",
                   meant.empty() ? "sinew models --help" : "sinew models " + meant);
}

}  // namespace sinew::cli
