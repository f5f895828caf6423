#include "study/record_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sinew::study {
namespace {

using nlohmann::json;
using Kind = StudyEvent::Kind;

constexpr int kVersion = 2;
constexpr std::array<const char*, 8> kKinds = {"start", "report", "pause", "resume", "end", "extend", "take", "leave"};
constexpr std::array<const char*, 5> kStates = {"running", "paused", "complete", "pruned", "failed"};

template <typename Enum, size_t N>
Enum one_of(const std::array<const char*, N>& words, const std::string& word) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) throw Error("'" + word + "' is not known here", "");
  return static_cast<Enum>(found - words.begin());
}

std::string number_text(double value) {
  std::array<char, 64> buffer;
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

// JSON has no such numbers, and a loss may be one.
json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  const auto word = value.get<std::string>();
  if (word == "nan") return std::nan("");
  if (word == "inf" || word == "-inf") return word == "inf" ? INFINITY : -INFINITY;
  throw Error("'" + word + "' is no number", "");
}

json numbers(const std::vector<double>& values) {
  json list = json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

std::vector<double> numbers_of(const json& list) {
  std::vector<double> values;
  for (const json& value : list) values.push_back(number_of(value));
  return values;
}

StudyAim aim_of(const json& line) {
  StudyAim aim;
  for (const json& one : line.at("objectives")) aim.objectives.push_back({one.at("metric"), one.at("minimize")});
  if (aim.objectives.empty()) throw Error("it has no objective", "");
  for (const json& one : line.at("constraints")) {
    const auto constraint = spec::parse_objective(one.get<std::string>());
    if (!constraint) throw Error("'" + one.get<std::string>() + "' is no constraint", "");
    aim.constraints.push_back(*constraint);
  }
  return aim;
}

json to_json(const StudyAim& aim) {
  json line = {{"objectives", json::array()}, {"constraints", json::array()}};
  for (const auto& [name, minimize] : aim.objectives)
    line["objectives"].push_back({{"metric", name}, {"minimize", minimize}});
  for (const spec::Objective& constraint : aim.constraints) line["constraints"].push_back(to_string(constraint));
  return line;
}

StudyHead head_of(const json& line) {
  if (line.value("format", "") != "sinew-study") throw Error("it does not begin as a study does", "");
  if (const int version = line.value("version", 0); version != kVersion)
    throw Error("it is of version " + std::to_string(version),
                version < kVersion ? "go on with it in the version of sinew that wrote it, or begin the study anew"
                                   : "use the version of sinew that wrote it, or a newer one");
  StudyHead head;
  head.job = line.at("job");
  head.overrides = line.at("overrides").get<std::vector<std::string>>();
  head.sampler = line.at("sampler");
  head.pruner = line.at("stopper");
  head.aim = aim_of(line);
  head.trials = line.at("trials");
  head.max_resource = line.at("max_resource");
  return head;
}

StudyEvent event_of(const json& line, const tune::Space& space) {
  StudyEvent event;
  event.kind = one_of<Kind>(kKinds, line.at("event"));
  if (event.kind == Kind::extend) {
    event.trials = line.at("trials");
    if (line.contains("cost")) event.cost = number_of(line.at("cost"));
    return event;
  }
  event.id = line.at("id");
  event.process = line.value("process", "");
  if (line.contains("seconds")) event.seconds = number_of(line.at("seconds"));
  switch (event.kind) {
    case Kind::start:
      event.suggestion = {tune::read_point(space, line.at("params").dump()), line.at("by"), line.at("why"),
                          numbers_of(line.at("memo"))};
      if (line.contains("gain")) event.suggestion.gain = number_of(line.at("gain"));
      if (line.contains("from")) event.suggestion.from = line.at("from").get<int64_t>();
      break;
    case Kind::report:
      event.step = line.at("step");
      event.value = number_of(line.at("value"));
      break;
    case Kind::pause:
      if (line.contains("estimate")) event.estimate = number_of(line.at("estimate"));
      break;
    case Kind::end:
      event.state = one_of<tune::TrialState>(kStates, line.at("state"));
      event.outcome.values = numbers_of(line.at("values"));
      if (line.contains("constraints")) event.outcome.constraints = numbers_of(line.at("constraints"));
      break;
    default: break;
  }
  return event;
}

// A torn last line is left out.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

std::vector<std::string> lines_in(Disk& disk, const std::string& path) {
  if (!disk.exists(path)) throw Error(path + " is not there", "name a study's directory; sinew tune makes one");
  return lines_of(read_text(disk, path));
}

template <typename Read>
auto read_line(const std::string& path, size_t number, const std::string& line, const Read& read) {
  const std::string where = path + ":" + std::to_string(number) + ": ";
  try {
    return read(json::parse(line));
  } catch (const json::exception&) {
    throw Error(where + "this line is damaged", "put it right from a copy, or cut the file off before it");
  } catch (const Error& error) {
    throw Error(where + error.what(), error.hint.empty() ? "put it right, or cut the file off before it" : error.hint);
  }
}

StudyHead head_among(const std::string& path, const std::vector<std::string>& lines) {
  if (lines.empty()) throw Error(path + " is empty", "begin the study anew");
  return read_line(path, 1, lines[0], head_of);
}

}  // namespace

tune::StudyOptions study_options(const StudyHead& head, const tune::Space& space, uint64_t seed) {
  std::vector<tune::Direction> directions;
  for (const auto& objective : head.aim.objectives)
    directions.push_back(objective.minimize ? tune::Direction::minimize : tune::Direction::maximize);
  return {space, std::move(directions), seed, head.trials, {}};
}

std::vector<std::string> metrics_of(const StudyAim& aim) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto& objective : aim.objectives) add(objective.name);
  for (const spec::Objective& constraint : aim.constraints) add(constraint.metric);
  return names;
}

Outcome outcome_of(const StudyAim& aim, const std::vector<double>& measured) {
  const auto names = metrics_of(aim);
  const auto of = [&](const std::string& name) {
    return measured[static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
  };
  Outcome outcome;
  for (const auto& objective : aim.objectives) outcome.values.push_back(of(objective.name));
  for (const spec::Objective& constraint : aim.constraints) {
    const double over = of(constraint.metric) - constraint.value;
    outcome.constraints.push_back(constraint.at_least ? -over : over);
  }
  return outcome;
}

int64_t planned_trials(const StudyHead& head, const std::vector<StudyEvent>& events) {
  int64_t trials = head.trials;
  for (const StudyEvent& event : events) trials = event.kind == Kind::extend ? event.trials : trials;
  return trials;
}

tune::Space space_of(const spec::TuneOptions& tune) {
  const std::vector<spec::SearchParameter>& search = tune.search;
  std::vector<tune::Parameter> parameters;
  for (const spec::SearchParameter& wish : search) {
    tune::Parameter parameter;
    parameter.name = wish.key;
    parameter.low = wish.low;
    parameter.high = wish.high;
    parameter.log = wish.log;
    parameter.step = wish.step;
    using From = spec::SearchParameter::Kind;
    using To = tune::Parameter::Kind;
    parameter.kind = wish.kind == From::real    ? To::real
                     : wish.kind == From::whole ? To::integer
                     : wish.ordered             ? To::ordinal
                                                : To::categorical;
    for (const std::string& choice : wish.choices) parameter.choices.push_back(json(choice).dump());
    for (const auto& [key, values] : wish.only_if) {
      const auto parent = std::ranges::find(search, key, &spec::SearchParameter::key);
      tune::Condition condition{static_cast<size_t>(parent - search.begin()), {}};
      for (const std::string& value : values)
        condition.allowed.push_back(
            static_cast<double>(std::ranges::find(parent->choices, value) - parent->choices.begin()));
      parameter.conditions.push_back(std::move(condition));
    }
    parameters.push_back(std::move(parameter));
  }
  std::vector<Comparison> constraints;
  for (const std::string& text : tune.parameter_constraints) constraints.emplace_back(text);
  return tune::Space(std::move(parameters), std::move(constraints));
}

std::vector<std::string> overrides_of(const tune::Space& space, const tune::Point& point) {
  std::vector<std::string> overrides;
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    const tune::Parameter& parameter = space[i];
    const std::string value = parameter.numeric()
                                  ? number_text(point[i])
                                  : json::parse(parameter.choices[static_cast<size_t>(point[i])]).get<std::string>();
    overrides.push_back(parameter.name + "=" + value);
  }
  return overrides;
}

std::string to_json(const StudyHead& head) {
  json line = {{"format", "sinew-study"}, {"version", kVersion},
               {"job", head.job},         {"overrides", head.overrides},
               {"sampler", head.sampler}, {"stopper", head.pruner},
               {"trials", head.trials},   {"max_resource", head.max_resource}};
  line.update(to_json(head.aim));
  return line.dump();
}

std::string to_json(const tune::Space& space, const StudyEvent& event) {
  json line = {{"event", kKinds[static_cast<size_t>(event.kind)]}};
  if (event.kind == Kind::extend) {
    line["trials"] = event.trials;
    if (event.cost) line["cost"] = number(*event.cost);
    return line.dump();
  }
  line["id"] = event.id;
  if (!event.process.empty()) line["process"] = event.process;
  if (event.seconds) line["seconds"] = number(*event.seconds);
  switch (event.kind) {
    case Kind::start:
      line["params"] = json::parse(tune::write_point(space, event.suggestion.point));
      line["by"] = event.suggestion.by;
      line["why"] = event.suggestion.why;
      line["memo"] = numbers(event.suggestion.sampler_state);
      if (event.suggestion.gain) line["gain"] = number(*event.suggestion.gain);
      if (event.suggestion.from) line["from"] = *event.suggestion.from;
      break;
    case Kind::report:
      line["step"] = event.step;
      line["value"] = number(event.value);
      break;
    case Kind::pause:
      if (event.estimate) line["estimate"] = number(*event.estimate);
      break;
    case Kind::end:
      line["state"] = kStates[static_cast<size_t>(event.state)];
      line["values"] = numbers(event.outcome.values);
      if (!event.outcome.constraints.empty()) line["constraints"] = numbers(event.outcome.constraints);
      break;
    default: break;
  }
  return line.dump();
}

void apply(tune::Study& study, const StudyEvent& event) {
  switch (event.kind) {
    case Kind::start:
      if (study.next_id() != event.id) throw Error("trial " + std::to_string(event.id) + " is out of its order", "");
      if (const auto from = event.suggestion.from; from && (*from < 0 || *from >= event.id))
        throw Error("trial " + std::to_string(event.id) + " goes on from one that is not before it", "");
      study.start(event.suggestion);
      return;
    case Kind::report: return study.report(event.id, event.step, event.value);
    case Kind::pause: return study.pause(event.id, event.estimate);
    case Kind::resume: return study.resume(event.id);
    case Kind::end: return study.tell(event.id, event.state, event.outcome.values, event.outcome.constraints);
    case Kind::extend: return study.extend(event.trials);
    case Kind::take:
    case Kind::leave: return;
  }
}

bool begins_life(const StudyEvent& event) {
  return event.kind == Kind::start || event.kind == Kind::resume || event.kind == Kind::take;
}

StudyFile::StudyFile(Disk& disk, const std::string& path, const StudyHead& head) : disk_(disk), path_(path) {
  if (disk.exists(path))
    throw Error(path + " is there already", "go on with it: sinew tune resume; or name another --study");
  const std::string line = to_json(head) + "\n";
  write_durably(disk, path, line);
  known_ = line.size();
  lines_ = 1;
}

std::vector<StudyEvent> StudyFile::news(const tune::Space& space) {
  file_.reset();  // who cut a torn line off wrote the file anew
  const uint64_t size = disk_.size(path_);
  if (size < known_)
    throw Error(path_ + " is shorter than it was", "somebody cut it off: go on with it by sinew tune resume");
  std::string text(size - known_, '\0');
  text.resize(disk_.read_at(path_, known_, std::as_writable_bytes(std::span(text))));
  std::vector<StudyEvent> events;
  for (const std::string& line : lines_of(text)) {
    if (++lines_ > 1)
      events.push_back(
          read_line(path_, static_cast<size_t>(lines_), line, [&](const json& j) { return event_of(j, space); }));
    known_ += line.size() + 1;
  }
  if (known_ < size) write_durably(disk_, path_, read_text(disk_, path_).substr(0, known_));
  return events;
}

void StudyFile::append(const tune::Space& space, const StudyEvent& event) {
  if (!file_) file_ = disk_.append(path_);
  const std::string line = to_json(space, event) + "\n";
  file_->write(std::as_bytes(std::span(line)));
  known_ += line.size();
  ++lines_;
  // A report stands in the trial's own metrics too, and is found there again.
  if (event.kind != Kind::report) file_->sync();
}

StudyHead read_study_head(Disk& disk, const std::string& path) {
  return head_among(path, lines_in(disk, path));
}

ReadStudy read_study(Disk& disk, const std::string& path, const tune::Space& space) {
  const auto lines = lines_in(disk, path);
  ReadStudy study{head_among(path, lines), {}};
  for (size_t i = 1; i < lines.size(); ++i)
    study.events.push_back(read_line(path, i + 1, lines[i], [&](const json& line) { return event_of(line, space); }));
  return study;
}

}  // namespace sinew::study
