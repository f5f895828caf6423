// Recognises names and ambiguous words, and makes the patterns of texts and names for the JSON Schema.
#include <algorithm>
#include <cctype>

#include "spec/values.h"

namespace sinew::spec {

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns whether the node is an unquoted word that other YAML readers take for a boolean or a number.
bool is_ambiguous(const Node& node) {
  if (node.quoted) return false;
  const std::string word = lower(node.text);
  if (is_one_of(word, {"yes", "no", "on", "off", "true", "false", ".inf", "-.inf", "+.inf", ".nan"})) return true;
  const size_t sign = word.starts_with('-') || word.starts_with('+') ? 1 : 0;
  if (word.compare(sign, 2, "0x") == 0 || word.compare(sign, 2, "0o") == 0) return true;
  return word.size() > sign && std::isdigit(static_cast<unsigned char>(word[sign])) != 0 &&
         word.find_first_not_of("0123456789_.", sign) == std::string::npos &&
         std::count(word.begin(), word.end(), '.') < 2;
}

bool is_name(const std::string& text) {
  const auto is_plain = [](unsigned char letter) {
    return letter < 0x80 && (std::isalnum(letter) != 0 || letter == '_');
  };
  return text.size() <= 64 && is_plain(static_cast<unsigned char>(text[0])) && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), [&](unsigned char letter) {
           return is_plain(letter) || letter == '.' || letter == '-' || letter == ' ';
         });
}

std::string text_pattern() {
  return "^([^$\\u0000-\\u001f\\u007f]|\\$\\$|\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}\\u0000-\\u001f\\u007f]*)?\\}|\\$(?![${"
         "]))+$";
}

std::string word_pattern() {
  std::string pattern = text_pattern();
  constexpr std::string_view kControl = "\\u0000-\\u001f";
  for (size_t at = 0; (at = pattern.find(kControl, at)) != std::string::npos;)
    pattern.replace(at, kControl.size(), "\\u0000-\\u0008\\u000b-\\u001f");
  return pattern;
}

std::string name_pattern() {
  return "^(?=.{1,64}$)[A-Za-z0-9_]([A-Za-z0-9_. -]*[A-Za-z0-9_.-])?$|(^|[^$])(\\$\\$)*\\$\\{";
}

}  // namespace sinew::spec
