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
constexpr char kHint[] = "the file is damaged, or torch.export.save did not write it; export the model again";

std::string_view kind_of(const Json& json) {
  constexpr std::string_view kKinds[] = {"null", "a boolean", "an integer", "a number", "text", "a list", "an object"};
  return kKinds[json.value.index()];
}

void add_name(std::string& path, std::string_view name) {
  path += path.empty() ? "" : ".";
  path += in_quotes(name).substr(1);
  path.pop_back();
}

// Builds the document from parse events, from the leaves up. The builder never recurses, so deep input cannot overflow
// the stack.
class Builder final : public Sax {
 public:
  Builder(const std::string& place, size_t max_values) : place_(place), max_values_(max_values) {}
  Json result;

  bool null() override { return put({nullptr}); }
  bool boolean(bool value) override { return put({value}); }
  bool number_integer(int64_t value) override { return put({value}); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      refuse("PROGRAM_BAD_JSON", "is an integer of 2^63 or more");
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
      refuse("PROGRAM_BAD_JSON", "has the name " + in_quotes(*twice) + " twice");
    }
    return end();
  }
  bool end_array() override {
    std::get<JsonArray>(open_.back().value).shrink_to_fit();
    return end();
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    const std::string_view what = error.what();
    const size_t length = what.find("; last read");  // the rest repeats the input
    throw Error("PROGRAM_BAD_JSON",
                place_ + ": not JSON at byte " + std::to_string(position) + ": " +
                    std::string(what.substr(0, std::min(length, size_t{120}))),
                kHint);
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const {
    std::string path;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (const auto* array = std::get_if<JsonArray>(&open_[i].value))
        path += '[' + std::to_string(array->size()) + ']';
      else if (!names_[i].empty())
        add_name(path, names_[i]);
    }
    throw Error(code, place_ + (path.empty() ? "" : ": " + path.substr(0, 1000)) + ": " + what, kHint);
  }
  bool begin(Json container) {
    if (open_.size() == kMaxJsonDepth) {
      refuse("PROGRAM_TOO_LARGE", "is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
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
    if (++values_ > max_values_) {
      refuse("PROGRAM_TOO_LARGE", "is one value more than the " + std::to_string(max_values_) + " that Sinew reads");
    }
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
  std::vector<std::string> names_;  // parallel to open_: for an object, the name of the member being read
  size_t max_values_, values_ = 0;
};

// Finds the path from `from` to `to` by searching. So values need not store their paths.
bool find_path(const Json& from, const Json& to, std::string& path) {
  if (&from == &to) return true;
  const size_t length = path.size();
  if (const auto* array = std::get_if<JsonArray>(&from.value)) {
    for (size_t i = 0; i < array->size(); ++i) {
      path += '[' + std::to_string(i) + ']';
      if (find_path((*array)[i], to, path)) return true;
      path.resize(length);
    }
  } else if (const auto* object = std::get_if<JsonObject>(&from.value)) {
    for (const JsonMember& member : *object) {
      add_name(path, member.name);
      if (find_path(member.value, to, path)) return true;
      path.resize(length);
    }
  }
  return false;
}

}  // namespace

Document parse_json(std::string_view text, std::string place, size_t max_values) {
  if (text.size() > kMaxJsonBytes) {
    throw Error(
        "PROGRAM_TOO_LARGE",
        place + ": has " + std::to_string(text.size()) + " bytes; Sinew reads at most " + std::to_string(kMaxJsonBytes),
        "torch.export.save does not write such a file; export the model again");
  }
  // The JSON parser treats a zero byte as the end of its input.
  if (text.find('\0') != std::string_view::npos) {
    throw Error("PROGRAM_BAD_JSON", place + ": not JSON: it has a zero byte", kHint);
  }
  Document document{std::move(place), {}};
  Builder builder(document.place, max_values);
  nlohmann::json::sax_parse(text.begin(), text.end(), static_cast<Sax*>(&builder));
  document.json = std::move(builder.result);
  return document;
}

void JsonView::refuse(ErrorCode code, const std::string& what, const std::string& hint) const {
  std::string path;
  find_path(document_->json, *json_, path);
  if (path.size() > 1000) path = "..." + path.substr(path.size() - 1000);
  throw Error(code, document_->place + ": " + (path.empty() ? "" : path + ": ") + what, hint.empty() ? kHint : hint);
}

void JsonView::expected(std::string_view what) const {
  refuse("PROGRAM_BAD_SCHEMA", "should be " + std::string(what) + ", but is " + std::string(kind_of(*json_)));
}

const JsonObject& JsonView::object() const {
  if (!is_object()) expected("an object");
  return std::get<JsonObject>(json_->value);
}

const JsonArray& JsonView::array() const {
  if (!is_array()) expected("a list");
  return std::get<JsonArray>(json_->value);
}

JsonView JsonView::get(std::string_view name) const {
  for (const JsonMember& member : object()) {
    if (member.name == name) return of(member.value);
  }
  refuse("PROGRAM_BAD_SCHEMA", "lacks " + in_quotes(name));
}

std::optional<JsonView> JsonView::find(std::string_view name) const {
  for (const JsonMember& member : object()) {
    if (member.name == name && !of(member.value).is_null()) return of(member.value);
  }
  return std::nullopt;
}

std::pair<std::string_view, JsonView> JsonView::single_member() const {
  if (object().size() != 1) {
    refuse("PROGRAM_BAD_SCHEMA", "should have one member, but has " + std::to_string(object().size()));
  }
  return {object().front().name, of(object().front().value)};
}

void JsonView::allow(std::initializer_list<std::string_view> names) const {
  for (const JsonMember& member : object()) {
    if (!document_->newer_schema && std::find(names.begin(), names.end(), member.name) == names.end())
      refuse("PROGRAM_BAD_SCHEMA", "has " + in_quotes(member.name) + ", which the schema does not know");
  }
}

int64_t JsonView::integer() const {
  if (!std::holds_alternative<int64_t>(json_->value)) expected("an integer");
  return std::get<int64_t>(json_->value);
}

int64_t JsonView::integer(int64_t min, int64_t max) const {
  const int64_t value = integer();
  if (value < min || value > max) {
    refuse("PROGRAM_BAD_SCHEMA",
           "is " + std::to_string(value) + ", but must be " +
               (max == std::numeric_limits<int64_t>::max() ? std::to_string(min) + " or more"
                                                           : std::to_string(min) + " to " + std::to_string(max)));
  }
  return value;
}

double JsonView::number() const {
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

bool JsonView::boolean() const {
  if (!std::holds_alternative<bool>(json_->value)) expected("true or false");
  return std::get<bool>(json_->value);
}

const std::string& JsonView::text() const {
  if (!is_text()) expected("text");
  return std::get<std::string>(json_->value);
}

}  // namespace sinew::program
