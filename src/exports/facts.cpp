#include "exports/facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/joined.h"
#include "base/number_text.h"
#include "base/sha256.h"
#include "rundir/rundir.h"

namespace sinew::exports {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCellNames[] = {"number", "boolean", "date", "word"};
constexpr size_t kShownColumns = 40;

Json column_facts(const data::PreparedColumn& column) {
  Json facts = {{"name", column.name}, {"cells", kCellNames[static_cast<size_t>(column.cells)]}};
  if (column.cells == data::PreparedColumn::Cells::number) {
    facts["decimal"] = std::string(1, column.decimal);
    facts["thousands"] = column.thousands == '\0' ? "" : std::string(1, column.thousands);
    facts["unit"] = column.unit;
  }
  if (!column.date_form.empty()) facts["date_form"] = column.date_form;
  return facts;
}

std::string inputs_text(const Json& facts) {
  const std::string kind = facts.at("kind");
  if (kind != "table")
    return "One input, `" + facts.at("name").get<std::string>() + "`: " + facts.at("dtype").get<std::string>() +
           " [batch, " + joined_numbers(facts.at("shape").get<std::vector<int64_t>>(), ", ") + "]. " +
           facts.at("help").get<std::string>() + "\n";
  std::string text = "A table with these columns:\n\n| column | cells |\n|---|---|\n";
  const Json& columns = facts.at("columns");
  for (size_t i = 0; i < columns.size() && i < kShownColumns; ++i) {
    const std::string form = columns[i].value("date_form", "");
    text += "| " + columns[i].at("name").get<std::string>() + " | " + columns[i].at("cells").get<std::string>() +
            (form.empty() ? "" : " (" + form + ")") + " |\n";
  }
  if (columns.size() > kShownColumns) text += "| and " + std::to_string(columns.size() - kShownColumns) + " more | |\n";
  return text;
}

std::string outputs_text(const Outcomes& outcomes) {
  if (!outcomes.classes) return "The predicted number, in the units of the target.\n";
  constexpr size_t kShownClasses = 30;
  std::vector<std::string> shown(
      outcomes.names.begin(),
      outcomes.names.begin() + static_cast<std::ptrdiff_t>(std::min(outcomes.names.size(), kShownClasses)));
  for (std::string& name : shown) name = "`" + name + "`";
  return "The probability of each of " + std::to_string(outcomes.names.size()) +
         " classes, in this order: " + joined(shown, ", ") + (outcomes.names.size() > kShownClasses ? ", ..." : "") +
         ".\n" +
         (outcomes.threshold
              ? "\nA sample counts as " + shown[1] + " from the probability " +
                    rounded_text(train::probability_of(*outcomes.threshold), 6) + " on: the threshold of this model.\n"
              : "");
}

}  // namespace

Origin origin_of(const train::Trained& trained, const spec::Job& job, Disk& disk) {
  Origin origin;
  origin.job_sha256 = sha256_hex(trained.job_yaml);
  origin.step = trained.step;
  if (trained.run_directory.empty()) return origin;
  origin.run = trained.run_directory.substr(trained.run_directory.rfind('/') + 1);
  const auto outcome = rundir::parse_outcome(rundir::report_text(disk, trained.run_directory));
  if (!outcome) return origin;
  const spec::EarlyStoppingOptions& early = job.early_stopping;
  const bool best_restored = outcome->best && !early.monitor.empty() && early.restore_best;
  if (!trained.checkpoint) {
    origin.step = best_restored ? outcome->best->step : outcome->steps;
    for (const auto& [name, value] : outcome->last) {
      if (name.starts_with("test/") || *origin.step == outcome->steps) origin.metrics[name] = value;
    }
  }
  if (outcome->best && origin.step == outcome->best->step) {
    origin.metrics[outcome->best->metric] = outcome->best->value;
    origin.metric = outcome->best->metric + " " + rounded_text(outcome->best->value) + " at step " +
                    std::to_string(outcome->best->step);
  }
  return origin;
}

Json input_facts(const train::LoadedModel& loaded) {
  const data::DataInfo& info = loaded.data;
  const data::Preparation preparation = data::preparation_of(info);
  Json facts;
  if (!preparation.columns.empty()) {
    facts["kind"] = "table";
    for (const data::PreparedColumn& column : preparation.columns) facts["columns"].push_back(column_facts(column));
    return facts;
  }
  if (info.task == data::Task::next_token) {
    return {{"kind", "text"},
            {"name", "characters"},
            {"dtype", "int64"},
            {"shape", info.input_shape},
            {"bytes", loaded.job.data.text.tokens == "bytes"},
            {"help", "The code points of a window of text (bytes, if `bytes` is true)."}};
  }
  const bool images = info.input_shape.size() == 3, turned = channels_last(info);
  const Shape& shape = info.input_shape;
  facts = {{"kind", images ? "images" : "array"},
           {"name", images ? "images" : "values"},
           {"dtype", std::string(onnx::name_of(onnx::element_of(preparation.dtype)))},
           {"shape", turned ? Shape{shape[1], shape[2], shape[0]} : shape},
           {"channels_last", turned}};
  if (preparation.images) facts["resize"] = preparation.resized;
  facts["help"] = std::string(images ? turned ? "[height, width, channels]" : "[channels, height, width]" : "A row") +
                  ", with the values of the training files: the normalisation is inside.";
  return facts;
}

std::string model_card(const train::LoadedModel& loaded, const Origin& origin,
                       const std::vector<std::pair<std::string, std::string>>& files, const std::string& usage,
                       const std::string& checked) {
  std::string text = "# " + loaded.job.name + "\n\nA model trained by Sinew: " + loaded.job.model.name + ", loss " +
                     loaded.job.loss.name + ", " + std::to_string(model::parameter_count(*loaded.model)) +
                     " parameters, float32.\n";
  text += "\n## Files\n\n| file | what it is |\n|---|---|\n";
  for (const auto& [name, what] : files) text += "| `" + name + "` | " + what + " |\n";
  text += "\n## Inputs\n\n" + inputs_text(input_facts(loaded)) + "\n## Outputs\n\n" + outputs_text(outcomes_of(loaded));
  text += "\n## Use it\n\n```python\n" + usage + "```\n";
  text += "\n## Metrics\n\n";
  text += origin.metrics.empty() ? "The run has no metric of these weights.\n" : "| metric | value |\n|---|---|\n";
  for (const auto& [name, value] : origin.metrics) text += "| " + name + " | " + rounded_text(value) + " |\n";
  text += "\n## Origin\n\n";
  if (!origin.run.empty()) text += "- run: " + origin.run + "\n";
  if (origin.step) text += "- step of the weights: " + std::to_string(*origin.step) + "\n";
  if (!origin.metric.empty()) text += "- chosen by: " + origin.metric + "\n";
  text += "- SHA-256 of the resolved job: " + origin.job_sha256 + "\n";
  return text + "\n" + checked + "\n";
}

}  // namespace sinew::exports
