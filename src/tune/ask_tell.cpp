// The server side of the ask-tell protocol (docs/formats/ask-tell.md).
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/json_text.h"
#include "tune/rounding.h"
#include "tune/tune.h"

namespace sinew::tune {
namespace {

using nlohmann::json;

// Python writes NaN and infinities as these bare words, which JSON does not have. If a line is not valid JSON, parsed()
// puts quotes around the words and parses the line again.
constexpr std::string_view kBareNumbers[] = {"NaN", "-Infinity", "Infinity"};

std::string with_quoted_numbers(std::string_view line) {
  std::string out;
  bool inside = false;  // whether position i is inside a string
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') inside = !inside;
    if (inside && line[i] == '\\' && i + 1 < line.size()) out += line[i++];
    std::string_view bare;
    for (const std::string_view word : kBareNumbers) {
      if (!inside && bare.empty() && line.substr(i).starts_with(word)) bare = word;
    }
    if (bare.empty()) {
      out += line[i];
    } else {
      out += '"' + std::string(bare) + '"';
      i += bare.size() - 1;
    }
  }
  return out;
}

// The deepest nesting that parsed() accepts. Copying and writing JSON recurse once for each level.
constexpr int kDeepest = 64;

json parsed(std::string_view line) {
  const auto not_too_deep = [](int depth, json::parse_event_t, const json&) {
    if (depth > kDeepest)
      throw Error("ASK_TELL_BAD_LINE", "the line is nested too deeply", "no request needs more than a few levels");
    return true;
  };
  json request = json::parse(line, not_too_deep, false);
  if (request.is_discarded()) request = json::parse(with_quoted_numbers(line), not_too_deep, false);
  if (request.is_discarded()) throw Error("ASK_TELL_BAD_LINE", "the line is not JSON", R"(for example {"cmd":"ask"})");
  if (!request.is_object())
    throw Error("ASK_TELL_BAD_LINE", "the line is not a JSON object", R"(for example {"cmd":"ask"})");
  return request;
}

std::string error_line(const Error& error) {
  json line = {{"error", error.what()}, {"code", error.code.text()}};
  if (!error.hint.empty()) line["hint"] = error.hint;
  return dump_json(line);
}

}  // namespace

// Reads the values of a request. Every getter throws an Error that names the key if the value has the wrong type. An
// invalid request must change nothing, so a command gets all its values before it changes the study.
struct AskTell::Request {
  json all;

  bool has(const char* key) const {
    const auto found = all.find(key);
    return found != all.end() && !found->is_null();
  }
  [[noreturn]] static void refuse(const char* key, const std::string& what) {
    throw Error("ASK_TELL_BAD_VALUE", std::string("'") + key + "' " + what, "docs/formats/ask-tell.md lists the keys");
  }
  static double number_of(const json& value, const char* key) {
    if (const auto number = number_in_json(value)) return *number;
    refuse(key, "must be a number");
  }
  double number(const char* key) const {
    if (!has(key)) refuse(key, "is missing");
    return number_of(all[key], key);
  }
  double number(const char* key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  std::vector<double> numbers(const char* key) const {
    if (!has(key)) return {};
    if (!all[key].is_array()) refuse(key, "must be a list of numbers");
    std::vector<double> values;
    for (const json& value : all[key]) values.push_back(number_of(value, key));
    return values;
  }
  int64_t whole(const char* key) const {
    if (!has(key)) refuse(key, "is missing");
    if (!all[key].is_number_integer()) refuse(key, "must be a whole number");
    return all[key].get<int64_t>();
  }
  std::string text(const char* key, const std::string& otherwise) const {
    if (!has(key)) return otherwise;
    if (!all[key].is_string()) refuse(key, "must be a string");
    return all[key].get<std::string>();
  }
  std::vector<Comparison> comparisons(const char* key) const {
    if (!has(key)) return {};
    if (!all[key].is_array()) refuse(key, "must be a list of strings");
    std::vector<Comparison> made;
    for (const json& text : all[key]) {
      if (!text.is_string()) refuse(key, "must be a list of strings");
      made.emplace_back(text.get<std::string>());
    }
    return made;
  }
  bool flag(const char* key) const {
    if (!has(key)) return false;
    if (!all[key].is_boolean()) refuse(key, "must be true or false");
    return all[key].get<bool>();
  }
  // An object inside this request, such as the pruner.
  Request inner(const json& value, const char* key) const {
    if (!value.is_object()) refuse(key, "must be an object");
    return {value};
  }
  std::vector<double> reported_values() const {
    if (has("values")) return numbers("values");
    if (has("value")) return {number("value")};
    return {};
  }
};

namespace {

TrialState state_of(const std::string& word) {
  if (word == "complete") return TrialState::complete;
  if (word == "pruned") return TrialState::pruned;
  if (word == "failed") return TrialState::failed;
  throw Error("ASK_TELL_BAD_VALUE", "there is no state '" + word + "'", "use complete, pruned or failed");
}

std::vector<Direction> directions_of(const json& words) {
  if (!words.is_array())
    throw Error("ASK_TELL_BAD_VALUE", "'directions' must be a list", R"(for example "directions":["minimize"])");
  std::vector<Direction> directions;
  for (const json& word : words) {
    if (word != "minimize" && word != "maximize")
      throw Error("ASK_TELL_BAD_VALUE", "a direction must be minimize or maximize",
                  R"(for example "directions":["minimize"])");
    directions.push_back(word == "minimize" ? Direction::minimize : Direction::maximize);
  }
  return directions;
}

}  // namespace

std::optional<std::string> AskTell::answer(std::string_view line) {
  try {
    Request request{parsed(line)};
    if (request.text("cmd", "") == "quit") return std::nullopt;
    return dispatch(request);
  } catch (const Error& error) {
    return error_line(error);
  }
}

std::string AskTell::dispatch(const Request& request) {
  const std::string command = request.text("cmd", "");
  if (command == "init") return init(request);
  if (command == "ask") return ask(request);
  if (command == "tell") return tell(request);
  if (command == "report") return report(request);
  throw Error("ASK_TELL_UNKNOWN_COMMAND", "there is no command '" + command + "'",
              "use init, ask, tell, report or quit");
}

Study& AskTell::study() {
  if (!study_) throw Error("ASK_TELL_NO_STUDY", "there is no study yet", R"(begin with {"cmd":"init","space":[...]})");
  return *study_;
}

std::string AskTell::init(const Request& request) {
  StudyOptions options = study_options(request);
  auto sampler = make_sampler(request.text("sampler", "auto"), options.directions.size());
  auto pruner = make_pruner(pruner_options(request));
  Study study(std::move(options));
  prefill(study, request);
  // An init that throws keeps the previous study, because nothing before this line changes the object.
  study_.emplace(std::move(study));
  sampler_ = std::move(sampler);
  pruner_ = std::move(pruner);
  return pruner_->pauses() ? R"({"ok":true,"resume":true})" : R"({"ok":true})";
}

StudyOptions AskTell::study_options(const Request& request) {
  if (!request.has("space"))
    throw Error("ASK_TELL_BAD_VALUE", "init has no 'space'", R"(for example {"cmd":"init","space":[...]})");
  StudyOptions options{read_space(request.all["space"].dump(), request.comparisons("parameter_constraints"))};
  if (request.has("directions")) options.directions = directions_of(request.all["directions"]);
  if (request.has("seed")) options.seed = static_cast<uint64_t>(request.whole("seed"));
  if (request.has("budget")) options.budget = request.whole("budget");
  if (request.has("population")) options.population = request.whole("population");
  if (options.population < 2)
    throw Error("ASK_TELL_BAD_VALUE", "'population' must be at least 2", R"(for example "population":8)");
  if (!request.has("first")) return options;
  if (!request.all["first"].is_array())
    throw Error("ASK_TELL_BAD_VALUE", "'first' must be a list of params", R"(for example "first":[{"lr":0.01}])");
  for (const json& params : request.all["first"])
    options.initial_points.push_back(read_point(options.space, params.dump()));
  return options;
}

PrunerOptions AskTell::pruner_options(const Request& request) {
  PrunerOptions options;
  if (!request.has("pruner")) return options;
  const Request pruner = request.inner(request.all["pruner"], "pruner");
  options.name = pruner.text("name", "none");
  options.min_resource = pruner.number("min_resource", options.min_resource);
  options.max_resource = pruner.number("max_resource", options.max_resource);
  options.reduction = pruner.number("reduction_factor", options.reduction);
  return options;
}

void AskTell::prefill(Study& study, const Request& request) {
  if (!request.has("prefill")) return;
  constexpr const char* kHint = R"(for example "prefill":[{"params":{"lr":0.01},"value":0.3}])";
  if (!request.all["prefill"].is_array())
    throw Error("ASK_TELL_BAD_VALUE", "'prefill' must be a list of trials", kHint);
  for (const json& entry : request.all["prefill"]) {
    const Request trial = request.inner(entry, "prefill");
    if (!trial.has("params")) throw Error("ASK_TELL_BAD_VALUE", "a trial of 'prefill' has no 'params'", kHint);
    study.prefill(read_point(study.space(), trial.all["params"].dump()), state_of(trial.text("state", "complete")),
                  trial.reported_values(), trial.numbers("constraints"));
  }
}

std::string AskTell::ask(const Request& request) {
  const bool no_new = request.flag("no_new"), with_reason = request.flag("why");
  const auto line = [&](int64_t id, const std::string& why, const std::string& more) {
    std::string out = R"({"id":)" + std::to_string(id) + R"(,"params":)" +
                      write_point(study().space(), study().trial(id).point) + more;
    if (with_reason) out += R"(,"why":)" + json(why).dump();
    return out + "}";
  };
  study();  // throws if there is no study
  if (const auto promotion = pruner_->promote(study(), no_new)) {
    study().resume(promotion->id);
    const auto& reports = study().trial(promotion->id).reports;
    const double step = reports.empty() ? 0 : reports.back().step;
    return line(promotion->id, promotion->why, R"(,"resume_from":)" + step_text(step));
  }
  if (no_new || !sampler_->ready(study())) return R"({"id":null})";
  const int64_t id = study().start(suggest_next(study(), *sampler_));
  const Trial& trial = study().trial(id);
  return line(id, trial.by + ": " + trial.why, trial.from ? R"(,"from":)" + std::to_string(*trial.from) : "");
}

std::string AskTell::tell(const Request& request) {
  study().tell(request.whole("id"), state_of(request.text("state", "complete")), request.reported_values(),
               request.numbers("constraints"));
  return R"({"ok":true})";
}

std::string AskTell::report(const Request& request) {
  const int64_t id = request.whole("id");
  const bool with_reason = request.flag("why");
  study().report(id, request.number("step"), request.number("value"));
  const Verdict verdict = pruner_->judge(study(), study().trial(id));
  if (verdict.decision == PruneDecision::pause) study().pause(id, verdict.estimate);
  std::string out = verdict.decision == PruneDecision::keep_running ? R"({"stop":false)"
                    : verdict.decision == PruneDecision::prune      ? R"({"stop":true)"
                                                                    : R"({"stop":true,"pause":true)";
  if (with_reason) out += R"(,"why":)" + json(verdict.why).dump();
  return out + "}";
}

bool converse(std::istream& in, std::ostream& out) {
  AskTell conversation;
  for (std::string line; std::getline(in, line);) {
    const auto answer = conversation.answer(line);
    if (!answer) return true;
    out << *answer << '\n' << std::flush;
    if (!out) return false;
  }
  return true;
}

}  // namespace sinew::tune
