// Implements `sinew predict`, which continues a prompt, or writes predictions as CSV (RFC 4180) or JSON lines. There is
// one row for each sample, in the order of the data.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/csv_field.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

using nlohmann::json;
using Write = std::function<void(const std::string&)>;

struct Rows {
  const train::Predictions& predictions;
  bool csv;

  bool numbers() const { return predictions.classes.empty(); }
  bool has_class(size_t i) const { return predictions.classes[i] != train::kNoClass; }
  std::string name(int32_t c) const {
    const auto& names = predictions.samples->info().class_names;
    return static_cast<size_t>(c) < names.size() ? names[static_cast<size_t>(c)] : std::to_string(c);
  }

  std::string header() const {
    if (!numbers()) return "sample,prediction,probability\n";
    if (predictions.width == 1) return "sample,prediction\n";
    std::string line = "sample";
    for (int64_t j = 0; j < predictions.width; ++j) line += ",prediction_" + std::to_string(j);
    return line + "\n";
  }

  std::string row(size_t i) const {
    const std::string sample = predictions.samples->describe(data::Split::test, static_cast<int64_t>(i));
    const auto width = static_cast<size_t>(predictions.width);
    const double* values = predictions.numbers.data() + (numbers() ? i * width : 0);
    if (csv) {
      std::string line = csv_field(sample);
      for (size_t j = 0; numbers() && j < width; ++j) line += "," + number_text(values[j]);
      if (!numbers() && !has_class(i)) line += ",,";
      if (!numbers() && has_class(i))
        line += "," + csv_field(name(predictions.classes[i])) + "," + number_text(predictions.probabilities[i]);
      return line + "\n";
    }
    json object = {{"sample", sample}};
    if (!numbers()) {
      object["prediction"] = has_class(i) ? json(name(predictions.classes[i])) : json();
      object["class"] = has_class(i) ? json(predictions.classes[i]) : json();
      const float probability = predictions.probabilities[i];  // JSON has no NaN and no infinity; they become null
      object["probability"] = std::isfinite(probability) ? json::parse(number_text(probability)) : json();
    } else if (width == 1) {
      object["prediction"] = values[0];
    } else {
      object["prediction"] = std::vector<double>(values, values + width);
    }
    return dump_json(object) + "\n";
  }

  // The number of samples for which the model computed NaN or an infinity.
  int64_t not_finite() const {
    const auto width = static_cast<size_t>(predictions.width);
    int64_t count = 0;
    for (size_t i = 0; i < predictions.decoded.size(); ++i) {
      if (!predictions.decoded[i]) continue;
      const double* values = predictions.numbers.data() + (numbers() ? i * width : 0);
      const bool finite =
          numbers() ? std::all_of(values, values + width, [](double v) { return std::isfinite(v); }) : has_class(i);
      count += finite ? 0 : 1;
    }
    return count;
  }

  void write(const Write& out) const {
    std::string block = csv ? header() : "";
    for (size_t i = 0; i < predictions.decoded.size(); ++i) {
      if (predictions.decoded[i]) block += row(i);
      if (block.size() < (1 << 16)) continue;
      out(block);
      block.clear();
    }
    out(block);
  }
};

void write_to_stdout(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_failed();
}

// Writes the prompt and what the model makes of it. A terminal gets no control characters.
int run_generation(const task::Predict& task, const train::Trained& trained, const spec::Job& job,
                   sandbox::OutsideFile* outside) {
  const task::Generation& given = *task.generation;
  const std::string text = given.prompt +
                           train::generate(trained, job,
                                           {.prompt = given.prompt,
                                            .max_tokens = given.max_tokens,
                                            .temperature = given.temperature,
                                            .top_k = given.top_k,
                                            .seed = static_cast<uint64_t>(given.seed)},
                                           system_disk()) +
                           "\n";
  if (outside != nullptr) {
    outside->write(text);
    outside->commit();
  } else if (task.output != "-") {
    write_output(system_disk(), task.output,
                 [&](Disk::File& file) { file.write(std::as_bytes(std::span(text.data(), text.size()))); });
  } else {
    write_to_stdout(terminal_of(STDOUT_FILENO).present ? printable(text, true) : text);
    flush_stdout();
  }
  return 0;
}

}  // namespace

int run_predict(const task::Predict& task) {
  const std::string &data = task.data, &out = task.output;
  const train::Trained trained = train::find_trained(task.model, system_disk());
  if (!trained.remark.empty()) std::fprintf(stderr, "warning: %s\n", printable(trained.remark).c_str());
  const spec::Job job = read_job_text(trained.job_yaml, trained.weights + ": job", {});
  const auto outside = confine(task.sandbox, out == "-" ? "" : out, sandbox::OutsideFile::Kind::output);
  if (task.generation) return run_generation(task, trained, job, outside.get());
  const train::Predictions predictions = train::predict(trained, job, data, system_disk());
  const Rows rows{predictions, task.format == "csv"};
  if (out == "-") {
    rows.write(write_to_stdout);
    flush_stdout();
  } else if (outside) {
    rows.write([&](const std::string& text) { outside->write(text); });
    outside->commit();
  } else {
    write_output(system_disk(), out, [&](Disk::File& file) {
      rows.write([&](const std::string& text) { file.write(std::as_bytes(std::span(text.data(), text.size()))); });
    });
  }
  const auto made = std::count(predictions.decoded.begin(), predictions.decoded.end(), true);
  if (const auto without = static_cast<int64_t>(predictions.decoded.size()) - made; without > 0) {
    std::fprintf(stderr, "%lld samples cannot be decoded and have no prediction, one of them: %s\n",
                 static_cast<long long>(without), printable(predictions.first_skipped).c_str());
  }
  if (const int64_t wrong = rows.not_finite(); wrong > 0) {
    std::fprintf(stderr,
                 "warning: the model computed NaN or an infinity for %lld of %lld samples, which have no %s: check "
                 "their values, which may be too large, and the model\n",
                 static_cast<long long>(wrong), static_cast<long long>(made),
                 rows.numbers() ? "finite value" : "class");
  }
  const data::DataInfo& info = predictions.samples->info();
  for (const std::string& note : info.notes) std::fprintf(stderr, "%s\n", printable(note).c_str());
  if (out != "-")
    std::fprintf(stderr, "wrote %lld predictions of %s to %s\n", static_cast<long long>(made),
                 printable(trained.description).c_str(), out.c_str());
  return 0;
}

}  // namespace sinew::worker
