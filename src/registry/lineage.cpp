// Finds the lineage of a version, and a version by its name.
#include <charconv>

#include "registry/registry.h"

namespace sinew::registry {
namespace {

using store::Kind;

std::string describe(store::Store& store, const store::Subject& subject) {
  switch (subject.kind) {
    case Kind::kVersion: {
      const auto record = store.find(subject);
      const std::string name = subject.id + " version " + std::to_string(subject.number);
      if (!record) return name + " (gone)";
      const VersionFacts facts = facts_of(store, *record);
      return name + (facts.digest.empty() ? "" : ", digest " + facts.digest);
    }
    case Kind::kRun: {
      const auto run = store.find(subject);
      if (!run) return "run " + subject.id + " (gone)";
      const auto directory = run->tags.find(kTagDirectory);
      return "run " + (directory == run->tags.end() ? subject.id : directory->second) + ", " + to_string(run->state) +
             (run->hidden ? ", directory removed" : "");
    }
    case Kind::kData: return "data " + subject.id;
    default: return subject.id;
  }
}

void put(const Lineage& tree, const std::string& indent, std::string& out) {
  out += indent + (tree.role.empty() ? "" : tree.role + ": ") + tree.text + "\n";
  for (const Lineage& from : tree.from) put(from, indent + "  ", out);
}

}  // namespace

Lineage lineage(store::Store& store, const store::Subject& subject, int deepest) {
  Lineage tree{"", subject, "", {}};
  tree.text = describe(store, subject);
  if (deepest <= 0) return tree;
  for (const store::Link& link : store.links(subject)) {
    if (link.from != subject || link.to == subject) continue;
    tree.from.push_back(lineage(store, link.to, deepest - 1));
    tree.from.back().role = link.role;
  }
  return tree;
}

std::string to_string(const Lineage& tree) {
  std::string text;
  put(tree, "", text);
  return text;
}

store::Record find_version(store::Store& store, const std::string& name) {
  const size_t at = name.rfind('@'), slash = name.rfind('/');
  const auto model_named = [&](const std::string& model) {
    auto record = store.find({Kind::kModel, model});
    if (!record)
      throw Error("MODEL_NOT_FOUND", "there is no model '" + model + "'", "'sinew models list' lists all models");
    return std::move(*record);
  };
  const auto version_of = [&](const std::string& model, int64_t number) {
    auto record = store.find({Kind::kVersion, model, number});
    if (!record || record->hidden)
      throw Error("MODEL_VERSION_NOT_FOUND", "model '" + model + "' has no version " + std::to_string(number),
                  "'sinew models show " + model + "' lists its versions");
    return std::move(*record);
  };
  if (at != std::string::npos) {
    const std::string model = name.substr(0, at), alias = name.substr(at + 1);
    for (const store::Alias& one : model_named(model).aliases) {
      if (one.name == alias) return version_of(model, one.version);
    }
    throw Error("MODEL_ALIAS_NOT_FOUND", "model '" + model + "' has no alias '" + alias + "'",
                "'sinew models show " + model + "' lists its aliases");
  }
  int64_t number = 0;
  if (slash != std::string::npos) {
    const auto [end, code] = std::from_chars(name.data() + slash + 1, name.data() + name.size(), number);
    if (code == std::errc() && end == name.data() + name.size() && number > 0)
      return version_of(name.substr(0, slash), number);
  }
  for (const store::Alias& one : model_named(name).aliases) {
    if (one.name == kChampion) return version_of(name, one.version);
  }
  auto newest = store.list({.kind = Kind::kVersion, .name = name, .metrics = false, .limit = 1});
  if (newest.empty())
    throw Error("MODEL_VERSION_NOT_FOUND", "model '" + name + "' has no version",
                "register one: sinew models register RUN");
  return std::move(newest[0]);
}

}  // namespace sinew::registry
