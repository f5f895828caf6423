#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "rundir/rundir.h"

namespace sinew::rundir {

std::string environment_changes(const std::string& before, const std::string& now) {
  const auto was = nlohmann::json::parse(before, nullptr, false), is = nlohmann::json::parse(now, nullptr, false);
  if (!was.is_object() || !is.is_object()) return "";
  std::set<std::string> names;
  for (const auto& facts : {was, is}) {
    for (const auto& [name, value] : facts.items()) names.insert(name);
  }
  names.erase("cores");
  const auto text = [](const nlohmann::json& facts, const std::string& name) {
    const auto found = facts.find(name);
    if (found == facts.end()) return std::string();
    return found->is_string() ? found->get<std::string>() : dump_json(*found);
  };
  std::string changes;
  for (const std::string& name : names) {
    const std::string one = text(was, name), other = text(is, name);
    if (one == other) continue;
    changes += (changes.empty() ? "" : "; ") + name + " was " + (one.empty() ? "absent" : one) + " and is " +
               (other.empty() ? "absent" : other);
  }
  return changes;
}

}  // namespace sinew::rundir
