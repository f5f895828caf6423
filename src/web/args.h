// What a caller sent, by name: of a query or of a JSON object, whichever the route has. Every text and number in it is
// judged when it is taken; what is wrong is a Refused that names it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "web/context.h"

namespace sinew::web {

class Args {
 public:
  // A GET's query, any other's body (an empty one is an empty object); the path's places are in it, too.
  explicit Args(const Call& call);
  explicit Args(Json object) : json_(std::make_shared<const Json>(std::move(object))) {}

  bool has(const char* name) const;  // and is not null
  std::string text(const char* name) const;
  std::string text(const char* name, const std::string& otherwise) const;
  int64_t integer(const char* name) const;
  int64_t integer(const char* name, int64_t otherwise) const;
  int64_t integer(const char* name, int64_t otherwise, int64_t least, int64_t most) const;  // else refused
  double number(const char* name) const;  // also "NaN", "Infinity", "-Infinity", as protobuf's JSON has them
  bool flag(const char* name, bool otherwise) const;
  std::vector<std::string> texts(const char* name) const;  // a list, or one; none: empty
  std::vector<Args> objects(const char* name) const;
  const Json& json() const { return *json_; }  // all but the path's places

 private:
  explicit Args(std::shared_ptr<const Json> object) : json_(std::move(object)) {}
  const Json* find(const char* name) const;
  std::shared_ptr<const Json> json_;
  Json places_ = Json::object();  // before what is sent
};

// A request's body: one object. An empty text is an empty one.
Json parse_object(const std::string& text);

// Any JSON value, of a bounded depth, whose objects take no longer to build than their bytes warrant; else refused,
// with `what` for its name. A text that is no JSON is a discarded value.
Json parse_bounded(const std::string& text, const std::string& what);

// A whole number, also as a text or as a float that is one; nullopt: it is none, or none of 64 bits.
std::optional<int64_t> integer_of(const Json& value);

// Numbers that JSON has no words for stand as texts, as protobuf's JSON has them.
Json json_number(double value);

}  // namespace sinew::web
