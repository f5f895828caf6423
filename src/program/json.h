// Inside the room: JSON that may be hostile, read with its place at hand.
//
// A document is bounded in depth, bytes and values before anything is built of it; a name that stands twice in one
// object is refused. `Spot` is a value of it that can be asked what it should be; whoever asks for what is not there
// gets an Error with the file and the way to the value: "net.pt2: models/model.json: graph_module.graph.nodes[17]".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sinew::program {

inline constexpr size_t kDeepestJson = 200;
inline constexpr size_t kMostJsonBytes = 256ULL << 20;
inline constexpr size_t kMostJsonValues = 16'777'216;

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
  // Of a schema younger than this program: what it added to an object can not be known, so unknown names are passed
  // over.
  bool younger = false;
};

// Throws Error naming `place`.
Document parse_json(std::string_view text, std::string place, size_t most_values = kMostJsonValues);

class Spot {
 public:
  Spot(const Document& document, const Json& json) : document_(&document), json_(&json) {}
  explicit Spot(const Document& document) : Spot(document, document.json) {}

  // Of an object. An optional member that is null counts as missing, as the schema's own reader has it.
  Spot get(std::string_view name) const;
  std::optional<Spot> find(std::string_view name) const;
  std::pair<std::string_view, Spot> only() const;  // a union: the one member it must have
  const JsonObject& object() const;
  // Refuses names beyond these, except in a younger document.
  void allow(std::initializer_list<std::string_view> names) const;

  const JsonArray& array() const;
  Spot of(const Json& inside) const { return {*document_, inside}; }

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(json_->value); }
  bool is_array() const { return std::holds_alternative<JsonArray>(json_->value); }
  bool is_object() const { return std::holds_alternative<JsonObject>(json_->value); }
  bool is_text() const { return std::holds_alternative<std::string>(json_->value); }
  int64_t integer() const;
  int64_t integer(int64_t least, int64_t most) const;
  double number() const;  // also "Infinity", "-Infinity" and "NaN", as torch writes them
  bool boolean() const;
  const std::string& text() const;

  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const;

 private:
  [[noreturn]] void expected(std::string_view what) const;
  const Document* document_;
  const Json* json_;
};

}  // namespace sinew::program
