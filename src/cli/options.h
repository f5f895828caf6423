// The options of a command. A single table parses the arguments, and makes the --help and the section of
// docs/reference/commands.md.
//
//   struct { std::string run, split = "test"; bool json = false; } given;
//   Options options("eval", "metrics of a trained model on one split of the data");
//   options.argument("RUN", given.run, "a run directory, the end of a run's id, or last")
//       .choice("--split", given.split, {"test", "val", "train"}, "the split to evaluate")
//       .flag("--json", given.json, "print one JSON object");
//   if (!options.parse(arguments)) return kDone;  // it printed the help
//
// Every command accepts `--name value` and `--name=value`, the short names that it declares, `--` before arguments that
// begin with a dash, and a single `-` as an argument. A value that is set before parse() is the default that the help
// shows. parse() throws UsageError; for an unknown name, the error suggests the most similar one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace sinew::cli {

class Options {
 public:
  Options(std::string command, std::string summary) : command_(std::move(command)), summary_(std::move(summary)) {}

  // Arguments without a name, in the order of these calls.
  Options& argument(const char* name, std::string& value, const char* help);  // required
  Options& optional_argument(const char* name, std::string& value, const char* help);
  Options& rest(const char* name, std::vector<std::string>& values, const char* help);  // takes all that follow

  // Verbs, instead of arguments: in `sinew models promote VERSION`, promote is a verb of the command models. `words`
  // are the arguments that follow the verb, as the help shows them and parse() demands them: "RUN"; "[VERSION]", which
  // may be left out; "RUN RUN ...", two or more. If the user gives no word at all, the command runs its default_verb,
  // which must be declared after that verb's verb().
  using RunVerb = std::function<int(const std::vector<std::string>& words)>;
  Options& verb(const char* name, const char* words, const char* help, RunVerb run);
  Options& default_verb(const char* name);

  // Options. `names` may contain a short name, too: "-o, --output". An option whose help begins with the name of a verb
  // and a colon, as in "gc: only say what would go", is an error with every other verb.
  Options& flag(const char* names, bool& value, const char* help);
  Options& text(const char* names, const char* placeholder, std::string& value, const char* help);
  Options& list(const char* names, const char* placeholder, std::vector<std::string>& values, const char* help);
  Options& choice(const char* names, std::string& value, std::vector<std::string> choices, const char* help);
  Options& integer(const char* names, const char* placeholder, int64_t& value, int64_t least, int64_t most,
                   const char* help);
  Options& integer(const char* names, const char* placeholder, std::optional<int64_t>& value, int64_t least,
                   int64_t most, const char* help);
  Options& number(const char* names, const char* placeholder, double& value, const char* help,
                  bool zero = false);                                                          // above 0
  Options& duration(const char* names, double& seconds, const char* help, bool zero = false);  // "30s", "10m", "2h"

  // Paragraphs of the help: `about` comes before the options, `notes` after them.
  Options& about(const char* text);
  Options& notes(const char* text);
  Options& example(const char* command_line);

  // Returns false if it printed the help; the command must then end. Throws UsageError if the arguments are wrong.
  bool parse(const Arguments& arguments);
  int run_verb() const;  // after parse(): runs the verb that the user gave, and returns its exit code
  // Returns whether the user gave this option (by its long name) or this argument.
  bool given(const std::string& name) const;
  // Throws UsageError for a mistake in the arguments that only the command can detect.
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const;

  std::string help() const;
  std::string markdown() const;  // the section of docs/reference/commands.md

 private:
  struct Option {
    std::vector<std::string> names;  // "-o", "--output"
    std::string placeholder;         // empty for a flag
    std::string help, preset;        // preset: the default as text, or "" if the help shows none
    std::function<void(const std::string& name, const std::string& value)> take;
    const std::string& long_name() const { return names.back(); }
  };
  struct Positional {
    std::string name, help;
    enum class Kind { required, optional, rest } kind = Kind::required;
    std::function<void(const std::string&)> take;
  };

  struct Verb {
    std::string name, words, help;
    size_t least = 0, most = 0;  // number of words
    RunVerb run;
    std::string usage() const;  // "compare RUN RUN ..."
  };

  Options& add(const char* names, std::string placeholder, std::string help, std::string preset,
               std::function<void(const std::string&, const std::string&)> take);
  const Option& find(const std::string& name) const;
  void take_positionals(const std::vector<std::string>& words);
  void take_verb(const std::vector<std::string>& words);
  std::string help_of(const Verb& verb) const;
  std::string usage() const;

  std::string command_, summary_, about_, notes_;
  std::vector<std::string> examples_, given_;
  std::vector<Option> options_;
  std::vector<Positional> positionals_;
  std::vector<Verb> verbs_;
  std::string default_verb_;
  std::ptrdiff_t chosen_ = -1;
  std::vector<std::string> verb_words_;
};

// Returns a line of a help text: a name, and its description beside it.
std::string help_row(const std::string& name, const std::string& help);

}  // namespace sinew::cli
