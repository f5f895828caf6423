// Declares the table of options. Validation, defaults, the JSON Schema, the reference page, --help and to_yaml all read
// this table; there is no other list of keys. Private to spec/.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "spec/spec.h"

namespace sinew::spec {

enum class Kind {
  text,        // any string of one line; ${NAME} is replaced
  word,        // an argument of a command: like text, but a number or a boolean is accepted and counts as its text
  values,      // a map from names that the user chooses to one value each
  path,        // a path; ${NAME} is replaced as in text
  name,        // like text, but valid as a directory's name
  metric,      // "val/loss"
  choice,      // one word of a list
  flag,        // true | false
  whole,       // integer
  number,      // real
  duration,    // "10ep"
  interval,    // a duration or "never"
  bytes,       // "256MiB"
  time,        // "2h", stored in seconds
  objective,   // "val/accuracy >= 0.92"
  comparison,  // "model.dim % model.heads == 0"
  search,      // a map from options to ranges or choices
};

struct Range {
  double low = 0, high = 0;
  bool open_low = false, open_high = false;  // true: the bound itself is excluded
  bool holds(double value) const {
    return (open_low ? value > low : value >= low) && (open_high ? value < high : value <= high);
  }
};

// The values that an option accepts. The type of its member in Job says whether it is a list and may be `auto`.
struct Type {
  Kind kind = Kind::text;
  Range range = {};                       // for whole and number: the range of the value, or of each item of a list
  std::vector<std::string> choices = {};  // choice: the words; whole: the only values, if not empty
  size_t min_items = 1, max_items = 1;
  std::string units = {};    // duration: the allowed units, separated by spaces
  bool zero = false;         // duration: may be 0; whole: may be 0 besides the range, which means "not given"
  bool auto_metric = false;  // metric: may be `auto`
};

// A function that returns an option's member of a Job.
using Access =
    std::variant<std::string& (*)(Job&), int64_t& (*)(Job&), uint64_t& (*)(Job&), double& (*)(Job&), bool& (*)(Job&),
                 Duration& (*)(Job&), Auto<int64_t>& (*)(Job&), std::vector<int64_t>& (*)(Job&),
                 std::vector<double>& (*)(Job&), std::vector<std::string>& (*)(Job&),
                 std::optional<Objective>& (*)(Job&), std::vector<Objective>& (*)(Job&),
                 std::vector<SearchParameter>& (*)(Job&), std::vector<NamedValue>& (*)(Job&)>;

// The option has an effect only if the option `key` has one of `values`, or is set at all if `values` is empty. If a
// job gives the option although it has no effect, read_job reports an error, because the program would ignore it.
struct Effect {
  std::string key;
  std::vector<std::string> values;
};

struct Option {
  std::string key;  // dotted
  Access access;
  Type type;
  std::string help;        // no full stop
  std::string unset = {};  // what it means that the option is not given, if that is the default
  Effect effect = {};
  std::string other_names = {};  // names that other tools use, separated by spaces; only for "did you mean"
  bool short_form = false;       // the section may be given as the value of this option alone: `model: resnet18`
  std::string alias = {};        // a second name for the last part of the key, which job files may use as well

  std::string section() const;  // "data.train" for "data.train.path"; "" at the top level
  std::string leaf() const;     // "path"
  bool is_list() const;
  bool can_be_auto() const;
};

struct Section {
  std::string key, help;
};

const std::vector<Option>& option_table();    // in the order of the file
const std::vector<Section>& section_table();  // every section, in the order of the file
const Option* find_option(std::string_view key);
const Section* find_section(std::string_view key);
const Option* short_form_of(std::string_view section);          // returns nullptr if the section has no short form
std::vector<std::string> keys_below(std::string_view section);  // last parts of the keys directly in this section
bool is_set(const Option& option, const Job& job);              // false: the value means "not given"
bool has_effect(const Option& option, const Job& job);
bool is_table(const DataOptions& data);     // whether data.format names a format of tables; false for auto
bool is_of_training(std::string_view key);  // whether only trainings have this option or section
// The job of a file that only names this model: some defaults depend on the model.
Job default_job(const std::string& model);
// Gives the options of the model that are not given the defaults of job.model.name.
void take_model_defaults(Job& job, const std::function<bool(const std::string& key)>& is_given);
// Returns the option whose map has this dotted key as an entry, "params" for "params.lr"; nullptr if there is none.
const Option* owner_of_entry(std::string_view key);

// Calls the visitor with the option's member of this job.
template <typename Visitor>
decltype(auto) visit_value(const Option& option, Job& job, Visitor&& visitor) {
  return std::visit([&](auto reach) -> decltype(auto) { return visitor(reach(job)); }, option.access);
}
template <typename Visitor>
decltype(auto) visit_value(const Option& option, const Job& job, Visitor&& visitor) {
  return std::visit([&](auto reach) -> decltype(auto) { return visitor(std::as_const(reach(const_cast<Job&>(job)))); },
                    option.access);
}

}  // namespace sinew::spec
