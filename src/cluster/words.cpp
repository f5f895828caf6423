#include "cluster/words.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cluster/view_json.h"

namespace sinew::cluster {
namespace {

using Phase = Member::Phase;

constexpr std::array kPhases = {"waiting", "joining", "caught_up", "computing", "leaving", "finished"};
constexpr double kMostSpeed = 1e12;

Json json_of(const Introduction& introduction) {
  return {{"address", introduction.address},
          {"host", introduction.host},
          {"pid", introduction.pid},
          {"identity",
           {{"job", introduction.identity.job},
            {"machine", introduction.identity.machine},
            {"probe", introduction.identity.probe}}}};
}

Json json_of(const std::vector<ControlRequest>& requests) {
  Json list = Json::array();
  for (const ControlRequest& request : requests) list.push_back(cluster::json_of(request));
  return list;
}

template <typename T>
std::expected<T, std::string> result_of(const Fields& fields, T value) {
  if (!fields.problem().empty()) return std::unexpected(fields.problem());
  return value;
}

Introduction introduction_of(Fields& fields) {
  Introduction introduction;
  introduction.address = fields.text("address", kLongestAddress);
  introduction.host = one_line(fields.text("host", kLongestAddress));
  introduction.pid = fields.whole("pid", 0);
  const Json* identity = fields.object("identity");
  if (identity == nullptr) {
    fields.blame("\"identity\" is missing: an object of \"job\", \"machine\" and \"probe\"");
    return introduction;
  }
  Fields inner(*identity);
  introduction.identity.job = one_line(inner.text("job", kLongestText));
  introduction.identity.machine = one_line(inner.text("machine", kLongestText));
  introduction.identity.probe = one_line(inner.text("probe", kLongestText));
  if (!inner.problem().empty()) fields.blame("identity: " + inner.problem());
  return introduction;
}

std::vector<ControlRequest> requests_of(Fields& fields) {
  std::vector<ControlRequest> requests;
  const Json* list = fields.list("requests", kMostRequests);
  if (list == nullptr) return requests;
  for (const Json& one : *list) {
    Fields inner(one);
    ControlRequest request;
    request.number = inner.whole("number", 1);
    request.kind = inner.text("kind", 64);
    request.value = inner.number("value", -1e18, 1e18);
    request.reason = one_line(inner.text("reason", kLongestText));
    if (inner.problem().empty()) inner.blame(problem_of(request));
    if (!inner.problem().empty()) fields.blame("requests: " + inner.problem());
    requests.push_back(std::move(request));
  }
  return requests;
}

Phase phase_of(Fields& fields) {
  const std::string name = fields.text("phase", 32);
  const auto found = std::find(kPhases.begin(), kPhases.end(), name);
  if (found != kPhases.end()) return static_cast<Phase>(found - kPhases.begin());
  fields.blame("\"phase\" is none of waiting, joining, caught_up, computing, leaving, finished");
  return Phase::waiting;
}

std::optional<View> view_in(Fields& fields) {
  const Json* json = fields.object("view");
  if (json == nullptr) return std::nullopt;
  auto view = view_of(*json);
  if (!view) fields.blame("\"view\" is not a view");
  return view;
}

Told told_of(Fields& fields) {
  Told told;
  told.phase = phase_of(fields);
  told.step = fields.whole("step", 0);
  told.durable_step = fields.whole("durable_step", -1);
  told.speed = fields.number("speed", 0, kMostSpeed);
  told.facts = fields.text("facts", kLongestFacts, "");
  told.taken_requests = fields.whole("taken_requests", 0, 0);
  if (fields.has("finished")) told.finished = fields.whole("finished", 0, std::nullopt, 255);
  const Json* lost = fields.list("lost", kMostMembers);
  if (lost == nullptr) return told;
  for (const Json& one : *lost) {
    Fields inner(one);
    told.lost.emplace_back(MemberId(inner.whole("id", 1)), one_line(inner.text("why", kLongestText)));
    if (!inner.problem().empty()) fields.blame("lost: " + inner.problem());
  }
  return told;
}

}  // namespace

Json json_of(const ControlRequest& request) {
  return {{"number", request.number}, {"kind", request.kind}, {"value", request.value}, {"reason", request.reason}};
}

std::string to_json(const JoinCall& call) {
  Json json = json_of(call.introduction);
  json["life"] = call.life;
  return dump(json);
}

std::string to_json(const Word& word) {
  const Told& told = word.told;
  Json json = {{"id", word.id.value},
               {"life", word.life},
               {"have", word.have.value},
               {"key", word.key},
               {"acts", word.acts.value},
               {"phase", name_of(told.phase)},
               {"step", told.step},
               {"durable_step", told.durable_step},
               {"speed", std::isfinite(told.speed) ? std::clamp(told.speed, 0.0, kMostSpeed) : 0.0}};
  if (!told.facts.empty() && told.facts.size() <= kLongestFacts) json["facts"] = told.facts;
  if (told.taken_requests > 0) json["taken_requests"] = told.taken_requests;
  if (told.finished) json["finished"] = *told.finished;
  if (word.knows_end) json["knows_end"] = true;
  if (!told.lost.empty()) {
    json["lost"] = Json::array();
    for (const auto& [id, why] : told.lost) json["lost"].push_back({{"id", id.value}, {"why", one_line(why)}});
  }
  if (word.introduction) {
    json["introduction"] = json_of(*word.introduction);
    if (told.view) json["view"] = json_of(*told.view);
    if (!word.requests.empty()) json["requests"] = json_of(word.requests);
  }
  return dump(json);
}

std::string to_json(const News& news) {
  if (news.who) return R"({"who":true})";
  Json json = {{"newest", news.newest.value}, {"seated", news.seated}, {"key", news.key}};
  if (news.out) json["out"] = *news.out;
  if (news.view) json["view"] = json_of(*news.view);
  if (news.requests) json["requests"] = json_of(*news.requests);
  if (news.finished) json["finished"] = *news.finished;
  return dump(json);
}

std::expected<JoinCall, std::string> join_call_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return std::unexpected("the body is not JSON");
  Fields fields(*json);
  JoinCall call;
  call.introduction = introduction_of(fields);
  call.life = fields.text("life", kLongestText);
  return result_of(fields, std::move(call));
}

std::expected<Word, std::string> word_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return std::unexpected("the body is not JSON");
  Fields fields(*json);
  Word word;
  word.id = MemberId(fields.whole("id", 1));
  word.life = fields.text("life", kLongestText);
  word.have = Generation(fields.whole("have", 0));
  word.key = fields.text("key", kLongestText);
  word.acts = Generation(fields.whole("acts", 0));
  word.knows_end = fields.truth("knows_end", false);
  word.told = told_of(fields);
  word.told.view = view_in(fields);
  word.requests = requests_of(fields);
  if (const Json* introduction = fields.object("introduction")) {
    Fields inner(*introduction);
    word.introduction = introduction_of(inner);
    if (!inner.problem().empty()) fields.blame("introduction: " + inner.problem());
  }
  return result_of(fields, std::move(word));
}

std::expected<News, std::string> news_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return std::unexpected("the answer is not JSON");
  Fields fields(*json);
  News news;
  news.who = fields.truth("who", false);
  if (news.who) return result_of(fields, std::move(news));
  news.newest = Generation(fields.whole("newest", 0));
  news.seated = fields.truth("seated", false);
  news.key = fields.text("key", kLongestText);
  if (fields.has("out")) news.out = one_line(fields.text("out", kLongestWhy), kLongestWhy);
  news.view = view_in(fields);
  if (fields.has("requests")) news.requests = requests_of(fields);
  if (fields.has("finished")) news.finished = fields.whole("finished", 0, std::nullopt, 255);
  return result_of(fields, std::move(news));
}

std::string problem_of(const ControlRequest& request) {
  const std::string& kind = request.kind;
  if (kind == "stop" || kind == "checkpoint" || kind == "evaluate") return "";
  if (kind == "learning_rate") {
    return std::isfinite(request.value) && request.value > 0 ? "" : "learning_rate: \"value\" must be a factor above 0";
  }
  if (kind == "batch_size") {
    const bool whole = request.value >= 1 && request.value <= 1e9 && request.value == std::floor(request.value);
    return whole ? "" : "batch_size: \"value\" must be a whole number, 1 or more";
  }
  return "\"kind\" is none of stop, checkpoint, evaluate, learning_rate, batch_size";
}

const char* name_of(Phase phase) {
  return kPhases.at(static_cast<size_t>(phase));
}

std::string one_line(std::string text, size_t most) {
  if (text.size() > most) text.resize(most);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return text;
}

}  // namespace sinew::cluster
