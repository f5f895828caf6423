// Inside web/: reads the parameters of a request by name, from its query or its JSON body. If a parameter has the wrong
// type, reading it throws Refused (kInvalidValue) with the parameter's name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "web/context.h"

namespace sinew::web {

class Args {
 public:
  // Reads the query of a GET request and the body of any other request; an empty body is an empty object. Also reads
  // the parameters in the path.
  explicit Args(const Call& call);
  explicit Args(Json object) : json_(std::make_shared<const Json>(std::move(object))) {}

  bool has(const char* name) const;  // whether the parameter is present and not null
  std::string text(const char* name) const;
  std::string text(const char* name, const std::string& otherwise) const;
  int64_t integer(const char* name) const;
  int64_t integer(const char* name, int64_t otherwise) const;
  int64_t integer(const char* name, int64_t otherwise, int64_t min, int64_t max) const;
  double number(const char* name) const;  // also accepts "NaN", "Infinity" and "-Infinity", as protobuf's JSON does
  bool flag(const char* name, bool otherwise) const;
  std::vector<std::string> texts(const char* name) const;  // accepts a list or a single text; empty if absent
  std::vector<Args> objects(const char* name) const;
  const Json& json() const { return *json_; }  // the JSON object, without the parameters in the path

 private:
  explicit Args(std::shared_ptr<const Json> object) : json_(std::move(object)) {}
  const Json* find(const char* name) const;
  std::shared_ptr<const Json> json_;
  Json path_ = Json::object();  // takes precedence over json_
};

// Parses a request's body, which must be one object. An empty text stands for an empty object.
Json parse_object(const std::string& text);

// Parses any JSON value. Refuses a value that is nested too deeply, or whose objects have so many names that building
// them would take too long. `what` names the value in the refusal. Returns a discarded value if the text is not JSON.
Json parse_bounded(const std::string& text, const std::string& what);

// Returns the value as a 64-bit integer. Also accepts a text, or a float without a fraction. Returns nullopt if the
// value represents no such integer.
std::optional<int64_t> integer_of(const Json& value);

}  // namespace sinew::web
