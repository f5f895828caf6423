#include "study/record_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace sinew::study {
namespace {

using Json = nlohmann::ordered_json;
using Kind = StudyEvent::Kind;

// Version 2 called sampler_state "memo" and the pruner "stopper", and wrote "nan", "inf" and "-inf" for numbers that
// JSON does not have. A file may hold lines of both versions, because leaders of this version continue a study of
// version 2.
constexpr int kVersion = 3, kOldestVersion = 2;

constexpr std::array<const char*, 9> kKinds = {"start",  "report", "pause", "resume", "end",
                                               "extend", "take",   "leave", "retry"};
constexpr std::array<const char*, 5> kStates = {"running", "paused", "complete", "pruned", "failed"};

Error bad_line(const std::string& what) {
  return {"STUDY_BAD_RECORD", what, "restore the file from a copy, or cut it off before this line"};
}

template <typename Enum, size_t N>
Enum one_of(const std::array<const char*, N>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw bad_line("'" + name + "' is unknown here");
  return static_cast<Enum>(found - names.begin());
}

double number_of(const Json& value) {
  if (const auto number = number_in_json(value)) return *number;
  const Json& word = value;
  if (word == "nan") return *number_in_json("NaN");
  if (word == "inf") return *number_in_json("Infinity");
  if (word == "-inf") return *number_in_json("-Infinity");
  throw bad_line(dump_json(value) + " is not a number");
}

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(json_number(value));
  return list;
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list) values.push_back(number_of(value));
  return values;
}

const Json& at_either(const Json& line, const char* key, const char* old_key) {
  return line.contains(key) ? line.at(key) : line.at(old_key);
}

StudyAim aim_in(const Json& line) {
  StudyAim aim;
  for (const Json& one : line.at("objectives")) {
    auto& objective = aim.objectives.emplace_back();
    objective.name = one.at("metric").get<std::string>();
    objective.minimize = one.at("minimize").get<bool>();
  }
  if (aim.objectives.empty()) throw bad_line("the study has no objective");
  for (const Json& one : line.at("constraints")) {
    const auto constraint = spec::parse_objective(one.get<std::string>());
    if (!constraint) throw bad_line("'" + one.get<std::string>() + "' is not a constraint");
    aim.constraints.push_back(*constraint);
  }
  return aim;
}

StudyHead head_in(const Json& line) {
  if (line.value("format", "") != "sinew-study") throw bad_line("this is not a study's record");
  if (const int version = line.value("version", 0); version < kOldestVersion || version > kVersion)
    throw Error("STUDY_WRONG_VERSION", "the study's record has version " + std::to_string(version),
                version < kOldestVersion
                    ? "continue it with the version of sinew that wrote it, or begin the study again"
                    : "use the version of sinew that wrote it, or a newer one");
  StudyHead head;
  head.job = line.at("job");
  head.overrides = line.at("overrides").get<std::vector<std::string>>();
  head.sampler = line.at("sampler");
  head.pruner = at_either(line, "pruner", "stopper");
  head.aim = aim_in(line);
  head.trials = line.at("trials");
  head.max_resource = line.at("max_resource");
  return head;
}

tune::Suggestion suggestion_in(const Json& line, const tune::Space& space) {
  tune::Suggestion suggestion;
  suggestion.point = tune::read_point(space, line.at("params").dump());
  suggestion.by = line.at("by").get<std::string>();
  suggestion.why = line.at("why").get<std::string>();
  suggestion.sampler_state = numbers_of(at_either(line, "sampler_state", "memo"));
  if (line.contains("gain")) suggestion.gain = number_of(line.at("gain"));
  if (line.contains("from")) suggestion.from = line.at("from").get<int64_t>();
  return suggestion;
}

StudyEvent event_in(const Json& line, const tune::Space& space) {
  StudyEvent event;
  event.kind = one_of<Kind>(kKinds, line.at("event"));
  if (event.kind == Kind::extend) {
    event.trials = line.at("trials");
    if (line.contains("cost")) event.cost = number_of(line.at("cost"));
    return event;
  }
  event.id = line.at("id");
  event.leader = line.value("process", "");
  if (line.contains("seconds")) event.seconds = number_of(line.at("seconds"));
  switch (event.kind) {
    case Kind::start: event.suggestion = suggestion_in(line, space); break;
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

Json to_json(const StudyAim& aim) {
  Json line = {{"objectives", Json::array()}, {"constraints", Json::array()}};
  for (const auto& [name, minimize] : aim.objectives)
    line["objectives"].push_back({{"metric", name}, {"minimize", minimize}});
  for (const spec::Objective& constraint : aim.constraints) line["constraints"].push_back(to_string(constraint));
  return line;
}

void add_suggestion(Json& line, const tune::Space& space, const tune::Suggestion& suggestion) {
  line["params"] = Json::parse(tune::write_point(space, suggestion.point));
  line["by"] = suggestion.by;
  line["why"] = suggestion.why;
  line["sampler_state"] = numbers(suggestion.sampler_state);
  if (suggestion.gain) line["gain"] = json_number(*suggestion.gain);
  if (suggestion.from) line["from"] = *suggestion.from;
}

// Returns the lines of a text without a torn last line.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

std::vector<std::string> lines_in(Disk& disk, const std::string& path) {
  if (!disk.exists(path))
    throw Error("STUDY_NOT_FOUND", "there is no " + path, "name a study's directory; sinew tune makes one");
  return lines_of(read_text(disk, path));
}

// Reads one line. Adds the file and the number of the line to every error.
template <typename Read>
auto read_line(const std::string& path, size_t number, const std::string& line, const Read& read) {
  const std::string where = path + ":" + std::to_string(number) + ": ";
  try {
    return read(Json::parse(line));
  } catch (const nlohmann::json::exception&) {
    const Error error = bad_line("this line is damaged");
    throw Error(error.code, where + error.what(), error.hint);
  } catch (const Error& error) {
    throw Error(error.code, where + error.what(), error.hint.empty() ? bad_line("").hint : error.hint);
  }
}

StudyHead head_among(const std::string& path, const std::vector<std::string>& lines) {
  if (lines.empty()) throw Error("STUDY_BAD_RECORD", path + " is empty", "begin the study again");
  return read_line(path, 1, lines[0], head_in);
}

}  // namespace

std::string to_json(const StudyHead& head) {
  Json line = {
      {"format", "sinew-study"}, {"version", kVersion},   {"job", head.job},       {"overrides", head.overrides},
      {"sampler", head.sampler}, {"pruner", head.pruner}, {"trials", head.trials}, {"max_resource", head.max_resource}};
  line.update(to_json(head.aim));
  return dump_json(line);
}

std::string to_json(const tune::Space& space, const StudyEvent& event) {
  Json line = {{"event", kKinds[static_cast<size_t>(event.kind)]}};
  if (event.kind == Kind::extend) {
    line["trials"] = event.trials;
    if (event.cost) line["cost"] = json_number(*event.cost);
    return dump_json(line);
  }
  line["id"] = event.id;
  if (!event.leader.empty()) line["process"] = event.leader;
  if (event.seconds) line["seconds"] = json_number(*event.seconds);
  switch (event.kind) {
    case Kind::start: add_suggestion(line, space, event.suggestion); break;
    case Kind::report:
      line["step"] = event.step;
      line["value"] = json_number(event.value);
      break;
    case Kind::pause:
      if (event.estimate) line["estimate"] = json_number(*event.estimate);
      break;
    case Kind::end:
      line["state"] = kStates[static_cast<size_t>(event.state)];
      line["values"] = numbers(event.outcome.values);
      if (!event.outcome.constraints.empty()) line["constraints"] = numbers(event.outcome.constraints);
      break;
    default: break;
  }
  return dump_json(line);
}

RecordFile::RecordFile(Disk& disk, const std::string& path, const StudyHead& head) : disk_(disk), path_(path) {
  if (disk.exists(path))
    throw Error("STUDY_EXISTS", path + " exists already",
                "continue it with sinew tune resume, or name another --study");
  const std::string line = to_json(head) + "\n";
  write_durably(disk, path, line);
  known_bytes_ = line.size();
  known_lines_ = 1;
}

std::vector<StudyEvent> RecordFile::news(const tune::Space& space) {
  file_.reset();  // append() opens it again: a leader that cut off a torn line has replaced it
  const uint64_t size = disk_.size(path_);
  if (size < known_bytes_)
    throw Error("STUDY_RECORD_CUT", path_ + " is shorter than it was: another program cut it off",
                "continue the study with sinew tune resume");
  std::string text(size - known_bytes_, '\0');
  text.resize(disk_.read_at(path_, known_bytes_, std::as_writable_bytes(std::span(text))));
  std::vector<StudyEvent> events;
  for (const std::string& line : lines_of(text)) {
    if (++known_lines_ > 1)
      events.push_back(read_line(path_, static_cast<size_t>(known_lines_), line,
                                 [&](const Json& json) { return event_in(json, space); }));
    known_bytes_ += line.size() + 1;
  }
  if (known_bytes_ < size) write_durably(disk_, path_, read_text(disk_, path_).substr(0, known_bytes_));
  return events;
}

void RecordFile::append(const tune::Space& space, const StudyEvent& event) {
  if (!file_) file_ = disk_.append(path_);
  const std::string line = to_json(space, event) + "\n";
  file_->write(std::as_bytes(std::span(line)));
  known_bytes_ += line.size();
  ++known_lines_;
  if (event.kind != Kind::report) file_->sync();
}

StudyHead read_study_head(Disk& disk, const std::string& path) {
  return head_among(path, lines_in(disk, path));
}

ReadStudy read_study(Disk& disk, const std::string& path, const tune::Space& space) {
  const auto lines = lines_in(disk, path);
  ReadStudy study{head_among(path, lines), {}};
  for (size_t i = 1; i < lines.size(); ++i)
    study.events.push_back(read_line(path, i + 1, lines[i], [&](const Json& line) { return event_in(line, space); }));
  return study;
}

}  // namespace sinew::study
