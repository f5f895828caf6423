// Implements reference_markdown, which makes docs/reference/job-file.md from the option table.
#include "spec/options.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

constexpr const char* kIntroduction = R"(# The job file

<!-- Made by `sinew schema --markdown`; a test keeps it equal. -->

A job file describes a training. It is YAML 1.2. Only `data.train` is required, or `command` to run another program instead
of a training ([guides/commands.md](../guides/commands.md)):

```yaml
data:
  train: data/iris.csv
  format: csv
  columns: {target: species}
model: {name: mlp, hidden: [64, 64]}
trainer: {max_duration: 30ep, batch_size: 32}
objective: val/accuracy >= 0.95
```

`sinew validate job.yaml` reports all problems at once, as `file:line:column: what is wrong [CODE] / what to try`. The
[codes](errors.md) are stable. No training starts before the file is valid. `sinew schema` prints the JSON Schema (draft
2020-12) for editors. Sinew ignores nothing: an unknown key, a key that has no effect with the chosen model or optimizer,
and a key that is given twice are errors.

## How values are written

- **Durations**: a number and a unit without a space. `10ep` epochs, `500st` steps, `100ksp` samples, `2Mtok` tokens,
  `90s` `30m` `2h` `1d` time, `0.1dur` a fraction of the whole training. `st`, `sp` and `tok` can have the prefixes `k`,
  `M` and `G` and must give a whole number; the other units take decimals.
- **Sizes**: `256MiB`, `4GiB`, `512MB`, `100`. `kB MB GB TB` are powers of 1000, `KiB MiB GiB TiB` of 1024.
- **Numbers**: `64`, `0.1`, `1e-3`. `3.0` and `1e3` are whole numbers, too. `1_000`, `0x10` and `012` are refused, because
  YAML 1.1 and 1.2 read them differently; so are `.inf` and `.nan`.
- **Booleans**: `true` and `false` only.
- **Strings** need quotes if a YAML reader could take them for something else: `'5'`, `'no'`, `'012'`. A value must not
  continue on the next line.
- **Variables**: Sinew replaces `${NAME}` and `${NAME:-default}` in names, paths and column names by environment
  variables. A variable that is not set and has no default is an error. `$$` is a dollar sign.
- **Data**: `train: path`, or for idx and npy `train: {images: path, labels: path}`. Paths are relative to the working
  directory of the command.
- **Short forms**: `model: resnet18` stands for `model: {name: resnet18}`; likewise `loss`, `optimizer`, `scheduler`,
  `metrics: stdout`, and `early_stopping: val/loss` for its `monitor`.
- **Your own names**: `params` and `env` take any names, each with a number, a word, `true` or `false`. An override sets
  one of them: `params.lr=0.3`.
- **Commands**: Sinew replaces `{params.NAME}` in `command` and in the values of `env` by that parameter. Other braces stay
  as they are. Numbers and `true` need no quotes there; the command gets them as they are written.
- **Not set**: leave the key out. Empty values and `null` are errors.
- Sinew refuses YAML tags (`!!str`), several documents, merge keys (`<<`) and texts of several lines. Anchors and aliases
  work. A file has at most 50,000 values (with aliases expanded), 64 levels and 1 MiB.

## Overrides

Every command that takes a job file, except `sinew data`, takes overrides after it:
`sinew train job.yaml optimizer.lr=3e-4 model=cnn`. The values are YAML. An override of a section replaces the whole section,
so `optimizer=sgd` also removes the options of another optimizer.

## Options
)";

std::string escaped(const std::string& text) {
  std::string cell;
  for (const char letter : text) cell += letter == '|' ? "\\|" : std::string(1, letter);
  return cell;
}

std::string effect_text(const Option& option) {
  if (option.effect.key.empty()) return "";
  std::vector<std::string> values;
  for (const std::string& value : option.effect.values) {
    if (value != "auto") values.push_back(value);
  }
  if (values.empty()) return "; only with " + option.effect.key;
  return "; only with " + option.effect.key + ": " + either(values);
}

std::string alias_text(const Option& option) {
  return option.alias.empty() ? "" : "; may also be written `" + option.alias + "`";
}

std::string row(const Option& option) {
  const std::string value = value_text(option, Job{});
  const std::string of_tabular = value_text(option, default_job("tabular"));
  const bool depends = of_tabular != value && option.key != "model.name";
  return "| `" + option.key + "` | " + escaped(expectation(option)) + " | " +
         (value.empty() ? escaped(option.unset) : "`" + escaped(value) + "`") +
         (depends ? "; tabular: `" + escaped(of_tabular) + "`" : "") + " | " +
         escaped(option.help + effect_text(option) + alias_text(option)) + " |\n";
}

constexpr const char* kHeader = "\n| key | value | default | meaning |\n|---|---|---|---|\n";

}  // namespace

std::string reference_markdown() {
  std::string text = kIntroduction;
  text += kHeader;
  for (const Option& option : option_table()) {
    if (option.section().empty()) text += row(option);
  }
  for (const Section& section : section_table()) {
    text += "\n### " + section.key + "\n\n" + section.help + ".\n";
    std::string rows;
    for (const Option& option : option_table()) {
      if (option.section() == section.key) rows += row(option);
    }
    if (!rows.empty()) text += kHeader + rows;
  }
  return text;
}

}  // namespace sinew::spec
