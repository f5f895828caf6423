// Defines the job file and reads it: the code in spec/ checks a job completely before the program loads anything heavy.
//
// Both programs use spec/, and so does every folder that a job configures. read_job turns YAML and dotted overrides
// into a `Job`, or into the list of all problems in them, each with its position. It never touches data, models or the
// network. This file has only plain values and pure functions, which any thread may use.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "spec/fastest.h"
#include "spec/job.h"

namespace sinew::spec {

// ---- reading -------------------------------------------------------------------------------------------------------

struct Problem {
  std::string file;          // the file's name, or "override" for an override of the command line
  int line = 0, column = 0;  // 1-based; 0: unknown
  ErrorCode code;
  std::string what, hint;
};
// "job.yaml:3:5: unknown key 'modle' [SPEC_UNKNOWN_KEY] / did you mean 'model'?"
std::string to_string(const Problem& problem);

struct Reading {
  Job job;                        // valid only if problems is empty
  std::vector<Problem> problems;  // every problem, in file order
};

using Environment = std::map<std::string, std::string>;  // the variables of ${NAME}

// Reads a job. An override is "optimizer.lr=3e-4": a dotted key and a value in YAML. Relative paths stay relative to
// the working directory. Does not throw, whatever bytes it gets.
Reading read_job(std::string_view yaml, std::string_view file_name, const std::vector<std::string>& overrides = {},
                 const Environment& environment = {});

// Returns the first key that has both a place in tune.search and an override; such a job is a single training. Returns
// "" if there is no such key.
std::string overridden(const std::vector<SearchParameter>& search, const std::vector<std::string>& overrides);
// Returns a problem for each option of `data` that differs from its default and has no effect with the format. The
// caller has already replaced the format `auto` by the one that it found.
std::vector<Problem> without_effect(const DataOptions& data);

// Returns every value of a YAML mapping under its dotted key, as the text writes it. For code that shows or compares
// options without checking them: unknown keys are allowed. A list becomes one line: "[a, b]". Returns a message with
// the position if the text is not YAML, or if, with its aliases expanded, it is larger than a job file can be. Does not
// throw, whatever bytes it gets.
std::expected<std::map<std::string, std::string>, std::string> flat_values(std::string_view yaml);

// Returns the options of a job that names this model and nothing else of it. Some defaults depend on the model.
ModelOptions default_model(const std::string& name);

// ---- writing -------------------------------------------------------------------------------------------------------

using Reasons = std::map<std::string, std::string>;  // dotted key -> why `auto` became this value
// Writes every option with its value, and the reasons as comments. read_job(to_yaml(job)) returns the same job.
std::string to_yaml(const Job& job, const Reasons& reasons = {});

// Returns the text of a job file with these overrides in it. Keeps its order, its comments and its variables, and puts
// the reason of a change above it. If the text has a form in which an option cannot be set, returns to_yaml() of the
// changed job instead. Reading the result gives the job that read_job gives with the overrides. Throws UsageError
// if that job has problems.
std::string with_options(const std::string& yaml, const std::string& file_name,
                         const std::vector<std::string>& overrides, const Reasons& reasons,
                         const Environment& environment = {});

// Returns the options of a training that differ from their defaults, and a few that every table shows. The keys are
// dotted, and the values have the form of a job file.
std::map<std::string, std::string> changed_options(const Job& job);
// The JSON Schema (draft 2020-12) of the job file. It accepts what read_job accepts, except for rules between options.
std::string json_schema();
std::string reference_markdown();  // docs/reference/job-file.md, made from the option table

// One option of the table, for --help and for code that lists options.
struct OptionInfo {
  std::string key, type, default_value, help;
  std::vector<std::string> choices;
};
std::vector<OptionInfo> options();

// ---- a command's placeholders --------------------------------------------------------------------------------------

// Replaces each `{params.NAME}` in the text by the value of that parameter. Other braces and unknown names stay as they
// are; read_job refuses unknown names.
std::string fill_in(std::string_view text, const std::vector<NamedValue>& params);
std::vector<std::string> names_to_fill_in(std::string_view text);  // the NAME of each placeholder, in order

// ---- parsers of users' texts ----------------------------------------------------------------------------------

std::optional<Duration> parse_duration(std::string_view text);  // nullopt: no duration
std::optional<int64_t> parse_bytes(std::string_view text);      // "4GiB" "512MB" "100"
std::optional<Objective> parse_objective(std::string_view text);
std::string to_string(const Objective& objective);  // parse_objective reads it back
struct Scale {
  std::string pattern;
  double factor = 1;
};
std::optional<Scale> parse_scale(std::string_view text);  // "encoder.*=0.1"; the factor is in [0, 1e6]
// Returns whether the name matches the pattern: `*` matches any number of characters; every other character matches
// itself.
bool fits_pattern(std::string_view pattern, std::string_view name);
// The word of `known` that is closest to `word`; "" if no word is close enough for a slip of the keyboard.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace sinew::spec
