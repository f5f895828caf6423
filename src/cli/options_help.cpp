// Makes the help of a command and its section of docs/reference/commands.md.
#include <sstream>

#include "base/joined.h"
#include "cli/options.h"

namespace sinew::cli {
namespace {

constexpr size_t kWidestOption = 28;  // the description of a longer name begins on the next line

// Escapes a text for a cell of a Markdown table: "|" would end the cell, and "<" would begin an HTML tag.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) text.insert(at++, 1, '\\');
  return text;
}

}  // namespace

std::string help_row(const std::string& name, const std::string& help) {
  std::string text = "  " + name;
  if (name.size() > kWidestOption - 4) {
    text += "\n" + std::string(kWidestOption, ' ');
  } else {
    text += std::string(kWidestOption - text.size(), ' ');
  }
  return text + help + "\n";
}

std::string Options::usage() const {
  std::string text = "sinew " + command_;
  if (!verbs_.empty()) text += default_verb_.empty() ? " COMMAND ..." : " [COMMAND ...]";
  for (const Positional& positional : positionals_) {
    const bool required = positional.kind == Positional::Kind::required;
    const std::string name = positional.name + (positional.kind == Positional::Kind::rest ? " ..." : "");
    text += required ? " " + name : " [" + name + "]";
  }
  return text + (options_.empty() ? "" : " [options]");
}

std::string Options::help() const {
  std::string text = "usage: " + usage() + "\n\n" + summary_ + ".\n";
  if (!about_.empty()) text += "\n" + about_ + "\n";
  if (!verbs_.empty()) text += "\ncommands:\n";
  for (const Verb& verb : verbs_) text += help_row(verb.usage(), help_of(verb));
  if (!positionals_.empty()) text += "\narguments:\n";
  for (const Positional& positional : positionals_) text += help_row(positional.name, positional.help);
  if (!options_.empty()) text += "\noptions:\n";
  for (const Option& option : options_) {
    const std::string name = joined(option.names, ", ") + (option.placeholder.empty() ? "" : " " + option.placeholder);
    text += help_row(name, option.help + (option.preset.empty() ? "" : " (default: " + option.preset + ")"));
  }
  if (!notes_.empty()) text += "\n" + notes_ + "\n";
  if (!examples_.empty()) text += "\nexamples:\n";
  for (const std::string& example : examples_) text += "  " + example + "\n";
  return text;
}

namespace {

// Puts lines that begin with two blanks into a code block, so that Markdown keeps their layout.
std::string markdown_text(const std::string& text) {
  std::string out;
  bool fenced = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ") != fenced) {
      fenced = !fenced;
      out += "```\n";
    }
    out += line + "\n";
  }
  return out + (fenced ? "```\n" : "");
}

}  // namespace

std::string Options::markdown() const {
  std::string text = "\n## sinew " + command_ + "\n\n```\n" + usage() + "\n```\n\n" + summary_ + ".\n";
  if (!about_.empty()) text += "\n" + markdown_text(about_);
  if (!verbs_.empty() || !positionals_.empty() || !options_.empty()) text += "\n| | | default |\n|---|---|---|\n";
  for (const Verb& verb : verbs_) text += "| `" + cell(verb.usage()) + "` | " + cell(help_of(verb)) + " | |\n";
  for (const Positional& positional : positionals_)
    text += "| `" + positional.name + "` | " + cell(positional.help) + " | |\n";
  for (const Option& option : options_) {
    const std::string name = joined(option.names, ", ") + (option.placeholder.empty() ? "" : " " + option.placeholder);
    text += "| `" + cell(name) + "` | " + cell(option.help) + " | " +
            (option.preset.empty() ? "" : "`" + option.preset + "` ") + "|\n";
  }
  if (!notes_.empty()) text += "\n" + markdown_text(notes_);
  if (!examples_.empty()) text += "\n```sh\n" + joined(examples_, "\n") + "\n```\n";
  return text;
}

}  // namespace sinew::cli
