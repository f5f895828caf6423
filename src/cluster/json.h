// Reads JSON from other processes without trusting it, with the readers of base/json_fields.h. No function throws
// because of the content of a text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json_fields.h"

namespace sinew::cluster {

using Json = nlohmann::ordered_json;

std::optional<Json> parse_json(const std::string& text);  // nullopt: not JSON, or nested too deep
std::string dump(const Json& value);                      // bytes that are not UTF-8 become U+FFFD

// Reads the fields of an object and keeps the first problem as a sentence: `"pid" must be a whole number ...`. A field
// with an `otherwise` may be absent.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {
    if (!object.is_object()) problem_ = "a JSON object is expected";
  }
  int64_t whole(const char* key, int64_t least, std::optional<int64_t> otherwise = std::nullopt,
                int64_t most = kMostWhole);
  double number(const char* key, double least, double most, std::optional<double> otherwise = std::nullopt);
  bool truth(const char* key, bool otherwise);
  std::string text(const char* key, size_t most_bytes, const char* otherwise = nullptr);
  const Json* list(const char* key, size_t most);  // null: absent
  const Json* object(const char* key);             // null: absent
  bool has(const char* key) const { return member_of(object_, key) != nullptr; }
  void blame(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  const std::string& problem() const { return problem_; }

 private:
  const Json& object_;
  std::string problem_;
};

}  // namespace sinew::cluster
