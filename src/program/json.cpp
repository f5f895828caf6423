#include "program/json.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "program/archive.h"

namespace sinew::program {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;
constexpr char kHint[] = "the file is damaged, or not what torch.export.save writes; export it again";

std::string_view kind_of(const Json& json) {
  constexpr std::string_view kKinds[] = {"null", "a boolean", "an integer", "a number", "text", "a list", "an object"};
  return kKinds[json.value.index()];
}

void add_name(std::string& path, std::string_view name) {
  path += path.empty() ? "" : ".";
  path += shown(name).substr(1);
  path.pop_back();
}

// Builds the tree from the events, from the leaves up, so that no step of it recurses.
class Builder final : public Sax {
 public:
  Builder(const std::string& place, size_t most_values) : place_(place), most_values_(most_values) {}
  Json result;

  bool null() override { return put({nullptr}); }
  bool boolean(bool value) override { return put({value}); }
  bool number_integer(int64_t value) override { return put({value}); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) refuse("is an integer over 2^63");
    return put({static_cast<int64_t>(value)});
  }
  bool number_float(double value, const std::string&) override { return put({value}); }
  bool string(std::string& value) override { return put({std::move(value)}); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool key(std::string& name) override {
    names_.back() = std::move(name);
    return true;
  }
  bool start_object(size_t) override { return begin({JsonObject{}}); }
  bool start_array(size_t) override { return begin({JsonArray{}}); }
  bool end_object() override {
    std::vector<std::string_view> names;
    for (const JsonMember& member : std::get<JsonObject>(open_.back().value)) names.push_back(member.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      names_.back().clear();
      refuse("has the name " + shown(*twice) + " twice");
    }
    return end();
  }
  bool end_array() override {
    std::get<JsonArray>(open_.back().value).shrink_to_fit();
    return end();
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    const std::string_view what = error.what();
    const size_t said = what.find("; last read");  // the rest repeats the input
    throw Error(place_ + ": not JSON at byte " + std::to_string(position) + ": " +
                    std::string(what.substr(0, std::min(said, size_t{120}))),
                kHint);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    std::string path;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (const auto* array = std::get_if<JsonArray>(&open_[i].value))
        path += '[' + std::to_string(array->size()) + ']';
      else if (!names_[i].empty())
        add_name(path, names_[i]);
    }
    throw Error(place_ + (path.empty() ? "" : ": " + path.substr(0, 1000)) + ": " + what, kHint);
  }
  bool begin(Json container) {
    if (open_.size() == kDeepestJson) refuse("is nested deeper than " + std::to_string(kDeepestJson) + " levels");
    open_.push_back(std::move(container));
    names_.emplace_back();
    return true;
  }
  bool end() {
    Json done = std::move(open_.back());
    open_.pop_back();
    names_.pop_back();
    return put(std::move(done));
  }
  bool put(Json json) {
    if (++values_ > most_values_) refuse("is one value more than the " + std::to_string(most_values_) + " read");
    if (open_.empty())
      result = std::move(json);
    else if (auto* array = std::get_if<JsonArray>(&open_.back().value))
      array->push_back(std::move(json));
    else
      std::get<JsonObject>(open_.back().value).push_back({names_.back(), std::move(json)});
    return true;
  }

  const std::string& place_;
  std::vector<Json> open_;
  std::vector<std::string> names_;  // beside open_: of an object, the name whose value is being read
  size_t most_values_, values_ = 0;
};

// The way from `from` to `to`, found again by searching: no value has to remember it.
bool find_way(const Json& from, const Json& to, std::string& path) {
  if (&from == &to) return true;
  const size_t length = path.size();
  if (const auto* array = std::get_if<JsonArray>(&from.value)) {
    for (size_t i = 0; i < array->size(); ++i) {
      path += '[' + std::to_string(i) + ']';
      if (find_way((*array)[i], to, path)) return true;
      path.resize(length);
    }
  } else if (const auto* object = std::get_if<JsonObject>(&from.value)) {
    for (const JsonMember& member : *object) {
      add_name(path, member.name);
      if (find_way(member.value, to, path)) return true;
      path.resize(length);
    }
  }
  return false;
}

}  // namespace

Document parse_json(std::string_view text, std::string place, size_t most_values) {
  if (text.size() > kMostJsonBytes) {
    throw Error(
        place + ": " + std::to_string(text.size()) + " bytes; at most " + std::to_string(kMostJsonBytes) + " are read",
        "this is not what torch.export.save writes of a model");
  }
  // The JSON reader takes a zero byte for the end of its input.
  if (text.find('\0') != std::string_view::npos) throw Error(place + ": not JSON: it has a zero byte", kHint);
  Document document{std::move(place), {}};
  Builder builder(document.place, most_values);
  nlohmann::json::sax_parse(text.begin(), text.end(), static_cast<Sax*>(&builder));
  document.json = std::move(builder.result);
  return document;
}

void Spot::refuse(const std::string& what, const std::string& hint) const {
  std::string path;
  find_way(document_->json, *json_, path);
  if (path.size() > 1000) path = "..." + path.substr(path.size() - 1000);
  throw Error(document_->place + ": " + (path.empty() ? "" : path + ": ") + what, hint.empty() ? kHint : hint);
}

void Spot::expected(std::string_view what) const {
  refuse("should be " + std::string(what) + ", but is " + std::string(kind_of(*json_)));
}

const JsonObject& Spot::object() const {
  if (!is_object()) expected("an object");
  return std::get<JsonObject>(json_->value);
}

const JsonArray& Spot::array() const {
  if (!is_array()) expected("a list");
  return std::get<JsonArray>(json_->value);
}

Spot Spot::get(std::string_view name) const {
  for (const JsonMember& member : object()) {
    if (member.name == name) return of(member.value);
  }
  refuse("lacks " + shown(name));
}

std::optional<Spot> Spot::find(std::string_view name) const {
  for (const JsonMember& member : object()) {
    if (member.name == name && !of(member.value).is_null()) return of(member.value);
  }
  return std::nullopt;
}

std::pair<std::string_view, Spot> Spot::only() const {
  if (object().size() != 1) refuse("should have one member, but has " + std::to_string(object().size()));
  return {object().front().name, of(object().front().value)};
}

void Spot::allow(std::initializer_list<std::string_view> names) const {
  for (const JsonMember& member : object()) {
    if (!document_->younger && std::find(names.begin(), names.end(), member.name) == names.end())
      refuse("has " + shown(member.name) + ", which the schema does not know");
  }
}

int64_t Spot::integer() const {
  if (!std::holds_alternative<int64_t>(json_->value)) expected("an integer");
  return std::get<int64_t>(json_->value);
}

int64_t Spot::integer(int64_t least, int64_t most) const {
  const int64_t value = integer();
  if (value < least || value > most) {
    refuse("is " + std::to_string(value) + ", but must be " +
           (most == std::numeric_limits<int64_t>::max() ? std::to_string(least) + " or more"
                                                        : std::to_string(least) + " to " + std::to_string(most)));
  }
  return value;
}

double Spot::number() const {
  if (const auto* whole = std::get_if<int64_t>(&json_->value)) return static_cast<double>(*whole);
  if (const auto* words = std::get_if<std::string>(&json_->value)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (*words == "Infinity") return kInfinity;
    if (*words == "-Infinity") return -kInfinity;
    if (*words == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  if (!std::holds_alternative<double>(json_->value)) expected("a number");
  return std::get<double>(json_->value);
}

bool Spot::boolean() const {
  if (!std::holds_alternative<bool>(json_->value)) expected("true or false");
  return std::get<bool>(json_->value);
}

const std::string& Spot::text() const {
  if (!is_text()) expected("text");
  return std::get<std::string>(json_->value);
}

}  // namespace sinew::program
