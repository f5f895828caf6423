// docs/reference/job-file.md, made from the table.
#include "spec/options.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

constexpr const char* kIntroduction = R"(# The job file

<!-- Made by `sinew schema --markdown`; a test keeps it equal. -->

A job file says what to train, once. It is YAML 1.2; only `data.train` is required, or `command` where any other program
is run instead of a training ([guides/commands.md](../guides/commands.md)):

```yaml
data:
  train: data/iris.csv
  format: csv
  columns: {target: species}
model: {name: mlp, hidden: [64, 64]}
trainer: {max_duration: 30ep, batch_size: 32}
objective: val/accuracy >= 0.95
```

`sinew validate job.yaml` reports every problem at once, as `file:line:column: what is wrong / what to try`, and nothing
heavy starts before the file is good. `sinew schema` prints the JSON Schema (draft 2020-12) for editors.
Nothing is ignored: an unknown key, a key without effect on the chosen model or optimizer, and a key given twice are
errors.

## How values are written

- **Durations**: a number and a unit without a space. `10ep` epochs, `500st` steps, `100ksp` samples, `2Mtok` tokens,
  `90s` `30m` `2h` `1d` time, `0.1dur` a part of the whole training. `k`, `M` and `G` go before `st`, `sp` and `tok`,
  which must come out whole; the others may have decimals.
- **Sizes**: `256MiB`, `4GiB`, `512MB`, `100`. `kB MB GB TB` are powers of 1000, `KiB MiB GiB TiB` of 1024.
- **Numbers**: `64`, `0.1`, `1e-3`. A whole number may be written `3.0` or `1e3`. Not `1_000`, `0x10` or `012`, which
  YAML 1.1 and 1.2 read differently, and no `.inf` or `.nan`.
- **Booleans**: `true` and `false`, nothing else.
- **Strings** need quotes where a YAML reader could take them for something else: `'5'`, `'no'`, `'012'`. A value stands
  on one line.
- **Variables**: `${NAME}` and `${NAME:-default}` in names, paths and column names are replaced from the environment;
  one that is not set is an error. `$$` is a dollar.
- **Data**: `train: path`, or for idx and npy `train: {images: path, labels: path}`. Paths are relative to the working
  directory of the command.
- **Short forms**: `model: resnet18` stands for `model: {name: resnet18}`; likewise `loss`, `optimizer`, `scheduler`,
  `metrics: stdout`, and `early_stopping: val/loss` for its `monitor`.
- **Names of your own**: below `params` and `env` stand any names, each with a number, a word or a flag. An override says one of
  them: `params.lr=0.3`.
- **Commands**: `{params.NAME}` in `command` and in the values of `env` is that parameter. Other braces stay as they are.
  Numbers and `true` need no quotes there: they are what is written.
- **Not set** is written by leaving the key out; empty values and `null` are errors.
- Not used: YAML tags (`!!str`), several documents, merge keys (`<<`), texts of several lines. Anchors and aliases work;
  a file holds at most 10,000 values, aliases counted as what they stand for, 64 levels and 1 MiB.

## Overrides

Every command that takes a job file, but `sinew data`, takes overrides after it: `sinew train job.yaml optimizer.lr=3e-4 model=cnn`. Values are
YAML. An override of a section replaces the whole section, so `optimizer=sgd` also drops the options of another
optimizer.

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
  return "| `" + option.key + "` | " + escaped(expectation(option)) + " | " +
         (value.empty() ? escaped(option.unset) : "`" + escaped(value) + "`") + " | " +
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
