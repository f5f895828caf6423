// Replaces {params.NAME} in a command. No other form is replaced, because commands often contain braces.
#include <algorithm>

#include "spec/spec.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

constexpr std::string_view kOpen = "{params.";

// Calls visit(text, name) for each piece of the text. The name is empty unless the piece is a placeholder.
template <typename Visit>
void for_each_piece(std::string_view text, Visit visit) {
  size_t kept = 0;
  for (size_t at = 0; (at = text.find(kOpen, at)) != std::string_view::npos;) {
    const size_t begin = at + kOpen.size(), end = text.find('}', begin);
    const std::string_view name = end == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin);
    if (!is_variable_name(name)) {
      at = begin;
      continue;
    }
    visit(text.substr(kept, at - kept), std::string_view());
    visit(text.substr(at, end + 1 - at), name);
    at = kept = end + 1;
  }
  visit(text.substr(kept), std::string_view());
}

}  // namespace

std::string fill_in(std::string_view text, const std::vector<NamedValue>& params) {
  std::string filled;
  for_each_piece(text, [&](std::string_view piece, std::string_view name) {
    const auto found = std::ranges::find(params, name, &NamedValue::name);
    filled += name.empty() || found == params.end() ? piece : std::string_view(found->value);
  });
  return filled;
}

std::vector<std::string> names_to_fill_in(std::string_view text) {
  std::vector<std::string> names;
  for_each_piece(text, [&](std::string_view, std::string_view name) {
    if (!name.empty()) names.emplace_back(name);
  });
  return names;
}

}  // namespace sinew::spec
