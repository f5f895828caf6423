#include "web/args.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/json_text.h"

namespace sinew::web {
namespace {

constexpr size_t kMaxDepth = 64;  // the deepest nesting of lists and objects

// Checks a JSON text before the parser builds a value. An ordered_json object compares each new name with all its
// earlier names. So this class limits the number of comparisons: one object may have 20,000 names, and each of many
// objects fewer.
class Bounds final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    constexpr size_t kMaxComparisons = 200'000'000, kBytesPerComparison = 64;
    comparisons_ += names_.back()++ * (1 + name.size() / kBytesPerComparison);
    too_many_names = comparisons_ > kMaxComparisons;
    return !too_many_names;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  bool too_deep = false, too_many_names = false;

 private:
  bool open() {
    names_.push_back(0);
    too_deep = names_.size() > kMaxDepth;
    return !too_deep;
  }
  bool close() {
    names_.pop_back();
    return true;
  }

  std::vector<size_t> names_;  // number of names so far, for each open list or object
  size_t comparisons_ = 0;
};

}  // namespace

Json parse_bounded(const std::string& text, const std::string& what) {
  Bounds bounds;
  const bool valid = Json::sax_parse(text, &bounds);
  if (bounds.too_deep) refuse_invalid(what + " is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  if (bounds.too_many_names) {
    refuse_invalid("an object in " + what + " has too many names", "split it into several requests");
  }
  return valid ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
}

Json parse_object(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  Json json = parse_bounded(text, "the body");
  if (json.is_discarded()) refuse_invalid("the body is not JSON", "send one JSON object in UTF-8");
  if (!json.is_object()) refuse_invalid("the body is not a JSON object", "send {\"name\": value, ...}");
  return json;
}

namespace {

[[noreturn]] void refuse_missing_value(const char* name) {
  refuse_invalid(std::string("Missing value for required parameter '") + name + "'",
                 std::string("send a value for ") + name);
}

Json query_of(const http::Request& request) {
  Json query = Json::object();
  for (const auto& [name, value] : request.query) {
    const auto more = request.repeated.find(name);
    if (more == request.repeated.end()) {
      query[name] = value;
      continue;
    }
    Json list = Json::array({value});
    for (const std::string& next : more->second) list.push_back(next);
    query[name] = std::move(list);
  }
  return query;
}

}  // namespace

std::optional<int64_t> integer_of(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number <= INT64_MAX ? std::optional<int64_t>(static_cast<int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) < 9e15) return static_cast<int64_t>(number);
    return std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Args::Args(const Call& call) {
  const http::Request& request = call.request;
  if (request.method == "GET" || request.method == "HEAD" || request.sink) {
    json_ = std::make_shared<const Json>(query_of(request));
  } else {
    json_ = call.body ? call.body : std::make_shared<const Json>(parse_object(request.body));
  }
  for (const auto& [name, value] : call.path) path_[name] = value;
}

const Json* Args::find(const char* name) const {
  if (const auto found = path_.find(name); found != path_.end()) return &*found;
  const auto at = json_->find(name);
  return at == json_->end() || at->is_null() ? nullptr : &*at;
}

bool Args::has(const char* name) const {
  return find(name) != nullptr;
}

std::string Args::text(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) refuse_missing_value(name);
  if (value->is_number() || value->is_boolean()) return value->dump();
  if (!value->is_string()) refuse_invalid(std::string("'") + name + "' is not a text");
  return value->get<std::string>();
}

std::string Args::text(const char* name, const std::string& otherwise) const {
  return has(name) ? text(name) : otherwise;
}

int64_t Args::integer(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) refuse_missing_value(name);
  const auto number = integer_of(*value);
  if (!number) refuse_invalid(std::string("'") + name + "' is not a 64-bit integer");
  return *number;
}

int64_t Args::integer(const char* name, int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

int64_t Args::integer(const char* name, int64_t otherwise, int64_t min, int64_t max) const {
  const int64_t value = integer(name, otherwise);
  if (value < min || value > max) {
    refuse_invalid("Invalid value " + std::to_string(value) + " for parameter '" + name + "' supplied",
                   "use a value from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

double Args::number(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) refuse_missing_value(name);
  if (value->is_number()) return value->get<double>();
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return number;
  }
  refuse_invalid(std::string("'") + name + "' is not a number",
                 "send a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
}

bool Args::flag(const char* name, bool otherwise) const {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  const std::string word = text(name);
  if (word == "true" || word == "True" || word == "1") return true;
  if (word == "false" || word == "False" || word == "0") return false;
  refuse_invalid(std::string("'") + name + "' is neither true nor false");
}

std::vector<std::string> Args::texts(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_array()) return {text(name)};
  std::vector<std::string> list;
  for (const Json& entry : *value) {
    if (entry.is_number()) {
      list.push_back(entry.dump());
    } else if (entry.is_string()) {
      list.push_back(entry.get<std::string>());
    } else {
      refuse_invalid(std::string("'") + name + "' is not a list of texts");
    }
  }
  return list;
}

std::vector<Args> Args::objects(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  std::vector<Args> list;
  if (value->is_array()) {
    for (const Json& entry : *value) {
      if (!entry.is_object()) refuse_invalid(std::string("'") + name + "' is not a list of objects");
      list.push_back(Args(std::shared_ptr<const Json>(json_, &entry)));  // shares json_, without a copy
    }
    return list;
  }
  refuse_invalid(std::string("'") + name + "' is not a list");
}

}  // namespace sinew::web
