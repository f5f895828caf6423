// The one table of options. Validation, defaults, JSON Schema, reference page, --help and to_yaml all read it; there is
// no second list of keys. Private to spec/.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "spec/spec.h"

namespace sinew::spec {

enum class Kind {
  text,        // any one-line string; ${NAME} is replaced
  word,        // of a command line: as text, or a number or boolean as it is written
  values,      // a map of the user's own names to one value each
  path,        // as text
  name,        // as text, but fit to be a directory's name
  metric,      // "val/loss"
  choice,      // one of a few words
  flag,        // true | false
  whole,       // integer
  number,      // real
  duration,    // "10ep"
  interval,    // a duration or "never"
  bytes,       // "256MiB"
  time,        // "2h", kept in seconds
  objective,   // "val/accuracy >= 0.92"
  comparison,  // "model.dim % model.heads == 0"
  search,      // a map of options and what to try of each
};

struct Range {
  double low = 0, high = 0;
  bool open_low = false, open_high = false;  // the end itself is not allowed
  bool holds(double value) const {
    return (open_low ? value > low : value >= low) && (open_high ? value < high : value <= high);
  }
};

// What values an option takes. Whether it is a list, or may be `auto`, is told by its place in Job.
struct Type {
  Kind kind = Kind::text;
  Range range = {};                       // whole, number: of each item
  std::vector<std::string> choices = {};  // choice; whole: if not empty, the only values
  size_t min_items = 1, max_items = 1;
  std::string units = {};    // duration: the units allowed, separated by spaces
  bool zero = false;         // duration: may be 0
  bool auto_metric = false;  // metric: may be `auto`
};

// Where an option lives in a Job.
using Access =
    std::variant<std::string& (*)(Job&), int64_t& (*)(Job&), uint64_t& (*)(Job&), double& (*)(Job&), bool& (*)(Job&),
                 Duration& (*)(Job&), Auto<int64_t>& (*)(Job&), std::vector<int64_t>& (*)(Job&),
                 std::vector<double>& (*)(Job&), std::vector<std::string>& (*)(Job&),
                 std::optional<Objective>& (*)(Job&), std::vector<Objective>& (*)(Job&),
                 std::vector<SearchParameter>& (*)(Job&), std::vector<NamedValue>& (*)(Job&)>;

// An option has an effect only when the option `key` has one of `values` (empty: when it is set at all). Giving it
// otherwise is an error, because it would be ignored.
struct Effect {
  std::string key;
  std::vector<std::string> values;
};

struct Option {
  std::string key;  // dotted
  Access access;
  Type type;
  std::string help;        // no full stop
  std::string unset = {};  // what its absence means, for options whose default is "not given"
  Effect effect = {};
  std::string other_names = {};  // what other tools call it, separated by spaces: for did-you-mean only
  bool short_form = false;       // its section may be given as just this value: `model: resnet18`
  std::string alias = {};        // a second name for the last part of the key, which job files may use as well

  std::string section() const;  // "data.train" of "data.train.path"; "" at the top
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
const Option* short_form_of(std::string_view section);          // nullptr: none
std::vector<std::string> keys_below(std::string_view section);  // leaf names of options and sections directly in it
bool is_set(const Option& option, const Job& job);              // false: the value is "not given"
bool has_effect(const Option& option, const Job& job);
bool is_of_training(std::string_view key);  // an option or a section that a command does not have
// "params" of "params.lr": the option whose map this dotted key is an entry of; nullptr: none.
const Option* owner_of_entry(std::string_view key);

// The option's value in this job.
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
