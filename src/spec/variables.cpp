// Replaces ${NAME} and ${NAME:-default} in texts and paths; $$ is a dollar sign.
#include <cctype>

#include "spec/values.h"

namespace sinew::spec {
namespace {

bool is_word_of_letters(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x80 || (std::isalnum(byte) == 0 && letter != '_')) return false;
  }
  return true;
}

}  // namespace

bool is_variable_name(std::string_view name) {
  return is_word_of_letters(name) && name.size() <= 64;
}

std::string variable_name_pattern() {
  return "^[A-Za-z_][A-Za-z0-9_]{0,63}$";
}

Expanded expand_variables(std::string_view text, const Environment& environment) {
  Expanded result;
  const auto fail = [&](ErrorCode code, std::string problem, std::string hint) {
    return Expanded{"", std::move(problem), std::move(hint), code};
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("$$")) {
      result.text += '$';
      at += 2;
    } else if (!rest.starts_with("${")) {
      result.text += text[at++];
    } else {
      const size_t end = rest.find('}');
      if (end == std::string_view::npos)
        return fail("SPEC_BAD_VARIABLE", "a '${' is not closed", "write ${NAME}, or $$ for a dollar sign");
      const std::string_view inside = rest.substr(2, end - 2);
      const size_t dash = inside.find(":-");
      const std::string name(inside.substr(0, dash));
      if (!is_word_of_letters(name)) {
        return fail("SPEC_BAD_VARIABLE", shown(rest.substr(0, end + 1)) + " is not the name of a variable",
                    "write ${NAME} or ${NAME:-default}, or $$ for a dollar sign");
      }
      const auto found = environment.find(name);
      const bool has_default = dash != std::string_view::npos;
      // As in a shell, the default of :- also replaces an empty value.
      if (found != environment.end() && !(has_default && found->second.empty())) {
        result.text += found->second;
      } else if (has_default) {
        result.text += inside.substr(dash + 2);
      } else {
        return fail("SPEC_UNSET_VARIABLE", "the environment variable " + name + " is not set",
                    "set it before the command: export " + name + "=..., or give a default: ${" + name + ":-...}");
      }
      at += end + 1;
    }
  }
  return result;
}

std::string escape_dollars(std::string_view text) {
  std::string escaped;
  for (const char letter : text) escaped += letter == '$' ? "$$" : std::string(1, letter);
  return escaped;
}

}  // namespace sinew::spec
