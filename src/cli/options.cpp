#include "cli/options.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/joined.h"
#include "base/number_text.h"
#include "spec/spec.h"

namespace sinew::cli {
namespace {

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> found;
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    if (word.ends_with(',')) word.pop_back();
    found.push_back(word);
  }
  return found;
}

std::string duration_text(double seconds) {
  return seconds > 0 ? rounded_text(seconds) + "s" : "";
}

}  // namespace

Options& Options::add(const char* names, std::string placeholder, std::string help, std::string preset,
                      std::function<void(const std::string&, const std::string&)> take) {
  options_.push_back({split_names(names), std::move(placeholder), std::move(help), std::move(preset), std::move(take)});
  return *this;
}

Options& Options::argument(const char* name, std::string& value, const char* help) {
  positionals_.push_back({name, help, Positional::Kind::required, [&value](const std::string& word) { value = word; }});
  return *this;
}

Options& Options::optional_argument(const char* name, std::string& value, const char* help) {
  positionals_.push_back({name, help, Positional::Kind::optional, [&value](const std::string& word) { value = word; }});
  return *this;
}

Options& Options::rest(const char* name, std::vector<std::string>& values, const char* help) {
  positionals_.push_back(
      {name, help, Positional::Kind::rest, [&values](const std::string& word) { values.push_back(word); }});
  return *this;
}

Options& Options::flag(const char* names, bool& value, const char* help) {
  return add(names, "", help, "", [&value](const std::string&, const std::string&) { value = true; });
}

Options& Options::text(const char* names, const char* placeholder, std::string& value, const char* help) {
  return add(names, placeholder, help, value, [&value](const std::string&, const std::string& word) { value = word; });
}

Options& Options::list(const char* names, const char* placeholder, std::vector<std::string>& values, const char* help) {
  return add(names, placeholder, std::string(help) + "; may be repeated", "",
             [&values](const std::string&, const std::string& word) { values.push_back(word); });
}

Options& Options::choice(const char* names, std::string& value, std::vector<std::string> choices, const char* help) {
  const std::string placeholder = joined(choices, "|");
  return add(names, placeholder, help, value,
             [&value, choices = std::move(choices)](const std::string& name, const std::string& word) {
               if (std::ranges::find(choices, word) == choices.end())
                 throw UsageError("OPTION_INVALID", name + " is " + joined(choices, " or ") + ", not '" + word + "'",
                                  name + " " + choices[0]);
               value = word;
             });
}

Options& Options::integer(const char* names, const char* placeholder, int64_t& value, int64_t least, int64_t most,
                          const char* help) {
  return add(names, placeholder, help, value == 0 && least > 0 ? "" : std::to_string(value),
             [&value, least, most](const std::string& name, const std::string& word) {
               value = whole_number(name, word, least, most);
             });
}

Options& Options::integer(const char* names, const char* placeholder, std::optional<int64_t>& value, int64_t least,
                          int64_t most, const char* help) {
  return add(names, placeholder, help, value ? std::to_string(*value) : "",
             [&value, least, most](const std::string& name, const std::string& word) {
               value = whole_number(name, word, least, most);
             });
}

Options& Options::number(const char* names, const char* placeholder, double& value, const char* help, bool zero) {
  return add(
      names, placeholder, help, value > 0 ? rounded_text(value) : "",
      [&value, zero](const std::string& name, const std::string& word) { value = number_above_0(name, word, zero); });
}

Options& Options::duration(const char* names, double& seconds, const char* help, bool zero) {
  return add(names, "DURATION", help, duration_text(seconds),
             [&seconds, zero](const std::string& name, const std::string& word) {
               seconds = duration_seconds(name, word, zero);
             });
}

Options& Options::about(const char* text) {
  about_ = text;
  return *this;
}

Options& Options::notes(const char* text) {
  notes_ = text;
  return *this;
}

Options& Options::example(const char* command_line) {
  examples_.emplace_back(command_line);
  return *this;
}

void Options::refuse(const std::string& what, const std::string& hint) const {
  throw UsageError("OPTION_INVALID", what, hint.empty() ? "sinew " + command_ + " --help" : hint);
}

bool Options::given(const std::string& name) const {
  return std::ranges::find(given_, name) != given_.end();
}

const Options::Option& Options::find(const std::string& name) const {
  std::vector<std::string> known;
  for (const Option& option : options_) {
    if (std::ranges::find(option.names, name) != option.names.end()) return option;
    known.push_back(option.long_name());
  }
  const std::string near = spec::did_you_mean(name, known);
  throw UsageError("OPTION_UNKNOWN", command_ + " has no option '" + name + "'",
                   near.empty() ? "sinew " + command_ + " --help" : near);
}

void Options::take_positionals(const std::vector<std::string>& words) {
  size_t at = 0;
  for (const Positional& positional : positionals_) {
    if (positional.kind == Positional::Kind::required && at == words.size()) {
      throw UsageError("ARGUMENT_MISSING", command_ + " needs " + positional.name + ": " + positional.help,
                       examples_.empty() ? "sinew " + command_ + " --help" : examples_[0]);
    }
    const bool rest = positional.kind == Positional::Kind::rest;
    for (bool first = true; at < words.size() && (first || rest); first = false) {
      given_.push_back(positional.name);
      positional.take(words[at++]);
    }
  }
  if (at < words.size())
    throw UsageError("ARGUMENT_UNEXPECTED", command_ + " does not expect '" + words[at] + "'",
                     "sinew " + command_ + " --help");
}

bool Options::parse(const Arguments& arguments) {
  std::vector<std::string> words;
  bool only_words = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (only_words || !word.starts_with('-') || word == "-") {
      words.push_back(word);
    } else if (word == "--") {
      only_words = true;
    } else if (word == "--help" || word == "-h") {
      print_help(help());
      return false;
    } else if (word == "--help=markdown") {
      std::fputs(markdown().c_str(), stdout);
      return false;
    } else {
      const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
      const std::string name = word.substr(0, equals);
      const Option& option = find(name);
      const bool has_value = equals != std::string::npos;
      if (option.placeholder.empty() && has_value)
        throw UsageError("OPTION_INVALID", name + " takes no value", "leave out '" + word.substr(equals) + "'");
      if (!option.placeholder.empty() && !has_value && i + 1 == arguments.size())
        throw UsageError("OPTION_INVALID", name + " needs a value", name + " " + option.placeholder);
      given_.push_back(option.long_name());
      option.take(name, option.placeholder.empty() ? "" : has_value ? word.substr(equals + 1) : arguments[++i]);
    }
  }
  verbs_.empty() ? take_positionals(words) : take_verb(words);
  return true;
}

}  // namespace sinew::cli
