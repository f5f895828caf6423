// Declares the verbs of `sinew models`, and what they share. Private to cli/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/registry_place.h"
#include "registry/registry.h"

namespace sinew::cli::models {

struct Given {
  RegistryPlace place;
  registry::PromotionRules gates;
  std::string model, alias, format = "table";
  bool force = false, dry_run = false, restore = false;
  std::vector<std::string> words;  // the arguments after the verb
  bool json() const { return format == "json"; }
};

// Each function carries out one verb of `sinew models` and returns the exit code.
int list(store::Store& store, const Given& given);
int show(store::Store& store, const Given& given);
int register_one(store::Store& store, const Given& given);
int promote_one(store::Store& store, const Given& given);
int roll_back(store::Store& store, const Given& given);
int diff(store::Store& store, const Given& given);
int verify(store::Store& store, const Given& given);
int delete_one(store::Store& store, const Given& given);
int collect(store::Store& store, const Given& given);

// Returns the records of one kind, oldest first.
std::vector<store::Record> all_of(store::Store& store, store::Kind kind, const std::optional<std::string>& name = {});
// Returns for example "val/accuracy 0.92": the metric that promotion would compare.
std::string metric_text(const registry::VersionFacts& facts);
// Prints a line. Replaces control characters, because names, tags and reasons may come from clients and files.
void print_line(const std::string& text);
void print_json(const nlohmann::json& value);

}  // namespace sinew::cli::models
