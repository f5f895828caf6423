#include "registry/read_progress.h"

#include <nlohmann/json.hpp>

#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

using nlohmann::json;

constexpr size_t kMaxKeysBytes = 3 << 20;

json mark_json(const rundir::FilePosition& mark) {
  return {{"offset", mark.offset}, {"inside", mark.inside}, {"window", mark.window}};
}
rundir::FilePosition mark_of(const json& object) {
  rundir::FilePosition mark;
  mark.offset = object.value("offset", uint64_t{0});
  mark.inside = object.value("inside", false);
  mark.window = object.value("window", "");
  return mark;
}

}  // namespace

std::string progress_note_of(const std::string& run) {
  return "registry.run." + run;
}

std::string to_note(const ReadProgress& reading) {
  return json{{"metrics", mark_json(reading.metrics)},
              {"log", mark_json(reading.log)},
              {"attempts", mark_json(reading.attempts)},
              {"resumes", reading.resumes},
              {"begins", reading.begins},
              {"seen", reading.seen},
              {"gone", reading.gone}}
      .dump();
}

ReadProgress from_note(const std::string& note) {
  const json object = json::parse(note, nullptr, false);
  if (!object.is_object()) return {};
  const auto mark = [&](const char* name) { return mark_of(object.value(name, json::object())); };
  try {
    ReadProgress reading;
    reading.metrics = mark("metrics");
    reading.log = mark("log");
    reading.attempts = mark("attempts");
    reading.resumes = object.value("resumes", int64_t{0});
    reading.begins = object.value("begins", int64_t{0});
    reading.seen = object.value("seen", "");
    reading.gone = object.value("gone", false);
    return reading;
  } catch (const json::exception&) {
    return {};
  }
}

std::string keys_note_of(const std::string& run) {
  return "registry.keys." + run;
}

std::string keys_to_note(const std::set<std::string>& keys) {
  json list = json::array();
  size_t bytes = 0;
  for (const std::string& key : keys) {
    bytes += json(key).dump().size() + 1;
    if (bytes > kMaxKeysBytes) break;
    list.push_back(key);
  }
  return list.dump();
}

std::set<std::string> keys_from_note(const std::string& note) {
  const json list = json::parse(note, nullptr, false);
  std::set<std::string> keys;
  if (!list.is_array()) return keys;
  for (const json& key : list) {
    if (key.is_string()) keys.insert(key.get<std::string>());
  }
  return keys;
}

}  // namespace sinew::registry
