// Chooses the verb of a command, and checks the words that follow it.
#include <algorithm>
#include <sstream>

#include "base/joined.h"
#include "cli/options.h"
#include "spec/spec.h"

namespace sinew::cli {

Options& Options::verb(const char* name, const char* words, const char* help, RunVerb run) {
  Verb made{name, words, help, 0, 0, std::move(run)};
  std::istringstream pattern(made.words);
  for (std::string word; pattern >> word;) {
    if (word == "...") {
      made.most = SIZE_MAX;
    } else {
      made.least += word.starts_with('[') ? 0 : 1;
      ++made.most;
    }
  }
  verbs_.push_back(std::move(made));
  return *this;
}

Options& Options::default_verb(const char* name) {
  default_verb_ = name;
  return *this;
}

std::string Options::Verb::usage() const {
  return name + (words.empty() ? "" : " " + words);
}

std::string Options::help_of(const Verb& verb) const {
  return verb.help + (verb.name == default_verb_ ? " (the default)" : "");
}

void Options::take_verb(const std::vector<std::string>& words) {
  const std::string name = words.empty() ? default_verb_ : words[0];
  std::vector<std::string> known;
  for (const Verb& verb : verbs_) known.push_back(verb.name);
  if (name.empty())
    throw UsageError("ARGUMENT_MISSING", command_ + " needs a command: " + joined(known, ", "),
                     examples_.empty() ? "sinew " + command_ + " --help" : examples_[0]);
  const auto found = std::ranges::find(verbs_, name, &Verb::name);
  if (found == verbs_.end()) {
    const std::string near = spec::did_you_mean(name, known);
    refuse(command_ + " has no command '" + name + "'; it has " + joined(known, ", "),
           near.empty() ? "" : "sinew " + command_ + " " + near);
  }
  if (!words.empty()) verb_words_.assign(words.begin() + 1, words.end());
  const std::string usage = "sinew " + command_ + " " + found->usage();
  if (verb_words_.size() < found->least)
    throw UsageError("ARGUMENT_MISSING", command_ + " " + name + " needs " + found->words, usage);
  if (verb_words_.size() > found->most)
    throw UsageError("ARGUMENT_UNEXPECTED",
                     command_ + " " + name + " does not expect '" + verb_words_[found->most] + "'", usage);
  for (const std::string& option : given_) {
    const std::string help = find(option).help, owner = help.substr(0, help.find(": "));
    if (owner != name && std::ranges::find(known, owner) != known.end())
      refuse(option + " is an option of '" + command_ + " " + owner + "', not of '" + command_ + " " + name + "'",
             usage);
  }
  chosen_ = found - verbs_.begin();
}

int Options::run_verb() const {
  return verbs_.at(static_cast<size_t>(chosen_)).run(verb_words_);
}

}  // namespace sinew::cli
