// Private to program/: reads JSON from untrusted files. Error messages give the place of the value.
//
// parse_json limits depth, bytes and number of values while it reads. It refuses a name that occurs twice in one
// object. A JsonView is one value of the document. Reading a value as the wrong type, or asking for a missing member,
// throws Error with the file and the path to the value:
// "net.pt2: models/model.json: graph_module.graph.nodes[17]".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace sinew::program {

inline constexpr size_t kMaxJsonDepth = 200;
inline constexpr size_t kMaxJsonBytes = 256ULL << 20;
inline constexpr size_t kMaxJsonValues = 16'777'216;

struct Json;
struct JsonMember;
using JsonArray = std::vector<Json>;
using JsonObject = std::vector<JsonMember>;  // in the order of the file

struct Json {
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, JsonArray, JsonObject> value;
};
struct JsonMember {
  std::string name;
  Json value;
};

struct Document {
  std::string place;  // for messages: the file, and the member of the archive
  Json json;
  // True: the file has a newer minor version of the schema than this program knows. That version may have added members
  // to objects, so unknown names are ignored.
  bool newer_schema = false;
};

// Throws Error, which names `place`, if the text is not JSON or exceeds a limit.
Document parse_json(std::string_view text, std::string place, size_t max_values = kMaxJsonValues);

class JsonView {
 public:
  JsonView(const Document& document, const Json& json) : document_(&document), json_(&json) {}
  explicit JsonView(const Document& document) : JsonView(document, document.json) {}

  // These functions read members of an object. find() treats a null member as missing, as torch's own reader does.
  JsonView get(std::string_view name) const;
  std::optional<JsonView> find(std::string_view name) const;
  std::pair<std::string_view, JsonView> single_member() const;  // reads a union: an object with exactly one member
  const JsonObject& object() const;
  // Refuses members with other names, except in a document of a newer schema.
  void allow(std::initializer_list<std::string_view> names) const;

  const JsonArray& array() const;
  JsonView of(const Json& inside) const { return {*document_, inside}; }

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(json_->value); }
  bool is_array() const { return std::holds_alternative<JsonArray>(json_->value); }
  bool is_object() const { return std::holds_alternative<JsonObject>(json_->value); }
  bool is_text() const { return std::holds_alternative<std::string>(json_->value); }
  int64_t integer() const;
  int64_t integer(int64_t min, int64_t max) const;
  double number() const;  // accepts "Infinity", "-Infinity" and "NaN" too, as torch writes them
  bool boolean() const;
  const std::string& text() const;

  // Throws Error: "file: path to this value: what". Without a hint, the error says that the file is damaged.
  [[noreturn]] void refuse(ErrorCode code, const std::string& what, const std::string& hint = "") const;

 private:
  [[noreturn]] void expected(std::string_view what) const;
  const Document* document_;
  const Json* json_;
};

}  // namespace sinew::program
