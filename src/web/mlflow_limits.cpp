#include "web/mlflow_limits.h"

#include <algorithm>
#include <string_view>

#include "web/context.h"

namespace sinew::web {
namespace {

constexpr size_t kMaxKey = 250;

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Returns the code point at `at` and moves `at` behind it. Does not check the UTF-8, because the store does.
char32_t next_character(std::string_view text, size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0xc0) return lead;
  const int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  char32_t code = lead & (0x3fU >> more);
  for (int i = 0; i < more && at < text.size(); ++i)
    code = code << 6U | (static_cast<unsigned char>(text[at++]) & 0x3fU);
  return code;
}

// Returns whether MLflow allows the character in a name. Beyond ASCII it allows the letters and digits of any language
// (Python's \w). The blocks below contain punctuation and symbols; everything else counts as a letter.
bool is_allowed(char32_t c) {
  struct Block {
    char32_t first, last;
  };
  static constexpr Block kSymbols[] = {{0x80, 0xa9},     {0xab, 0xb1},       {0xb4, 0xb4},      {0xb6, 0xb8},
                                       {0xbb, 0xbb},     {0xbf, 0xbf},       {0xd7, 0xd7},      {0xf7, 0xf7},
                                       {0x300, 0x36f},   {0x2000, 0x206f},   {0x2190, 0x245f},  {0x2500, 0x2775},
                                       {0x2794, 0x2bff}, {0x3000, 0x3004},   {0x3008, 0x3020},  {0xd800, 0xf8ff},
                                       {0xfe00, 0xfe6f}, {0x1f000, 0x1f0ff}, {0x1f110, 0x1faff}};
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("/_.- :").find(static_cast<char>(c)) != std::string_view::npos;
  }
  return std::ranges::none_of(kSymbols, [&](const Block& block) { return c >= block.first && c <= block.last; });
}

// Returns whether the name is a relative path that normalisation does not change.
bool is_plain_path(std::string_view name) {
  if (name.empty() || name == "." || name.starts_with("..") || name.starts_with('/')) return false;
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

std::string shown(const std::string& name) {
  constexpr size_t kShown = 100;
  return name.size() <= kShown ? name : name.substr(0, kShown) + "...";
}

void check_count(const char* what, size_t limit, size_t count) {
  if (count <= limit) return;
  refuse_invalid("A batch logging request can contain at most " + std::to_string(limit) + " " + what + ". Got " +
                     std::to_string(count) + " " + what + ".",
                 "split them into several requests");
}

}  // namespace

void check_length(const std::string& value, size_t limit, const std::string& path) {
  if (value.size() <= limit || count_characters(value) <= limit) return;
  refuse_invalid("'" + path + "' exceeds the maximum length of " + std::to_string(limit) + " characters",
                 "use a shorter one");
}

void check_key(const std::string& name, const std::string& path) {
  bool allowed = true;
  for (size_t at = 0; at < name.size() && allowed;) allowed = is_allowed(next_character(name, at));
  if (!allowed) {
    refuse_invalid("Invalid value \"" + shown(name) + "\" for parameter '" + path +
                       "' supplied: Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), "
                       "spaces ( ), colon(:) and slashes (/).",
                   "choose another name");
  }
  if (!is_plain_path(name)) {
    refuse_invalid("Invalid value \"" + shown(name) + "\" for parameter '" + path +
                       "' supplied: Names may be treated as files in certain cases, and must not resolve to other "
                       "names when treated as such.",
                   "choose a name without empty parts, '.' or '..' between slashes");
  }
  check_length(name, kMaxKey, path);
}

void check_alias(const std::string& name) {
  constexpr size_t kMaxAlias = 255;
  if (name.empty()) refuse_invalid("Registered model alias name cannot be empty.");
  for (size_t at = 0; at < name.size();) {
    const char32_t c = next_character(name, at);
    const bool separates = c < 0x80 && std::string_view("/. :").find(static_cast<char>(c)) != std::string_view::npos;
    if (is_allowed(c) && !separates) continue;
    refuse_invalid("Invalid alias name: '" + shown(name) +
                       "'. Names may only contain alphanumerics, underscores (_) and dashes (-).",
                   "choose another name");
  }
  check_length(name, kMaxAlias, "alias");
  std::string lower = name;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const bool is_number = lower.size() > 1 && lower[0] == 'v' && lower.find_first_not_of("0123456789", 1) == lower.npos;
  if (lower == "latest" || is_number)
    refuse_invalid("the alias name '" + name + "' is reserved", "choose another name");
}

void check_batch(const Args& args, size_t body_bytes) {
  constexpr size_t kMaxBytes = 1'000'000, kMaxMetrics = 1000, kMaxLabels = 100, kMaxAll = 1000;
  if (body_bytes > kMaxBytes) {
    refuse_invalid("Batched logging API requests must be at most 1000000 bytes, got a request of size " +
                       std::to_string(body_bytes) + ".",
                   "split it into several requests");
  }
  const auto count = [&](const char* name) {
    const auto found = args.json().find(name);
    return found != args.json().end() && found->is_array() ? found->size() : 0;
  };
  const size_t metrics = count("metrics"), params = count("params"), tags = count("tags");
  check_count("metrics", kMaxMetrics, metrics);
  check_count("params", kMaxLabels, params);
  check_count("tags", kMaxLabels, tags);
  check_count("metrics, params, and tags", kMaxAll, metrics + params + tags);
}

}  // namespace sinew::web
