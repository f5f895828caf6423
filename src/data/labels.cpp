#include "data/labels.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sinew::data {
namespace {

constexpr int64_t kMaxClasses = 1 << 20;  // a larger label is more likely a mistake than a class
constexpr int64_t kLikelyClasses = 1000;  // auto: integers below this are classes in a file of any size
constexpr int64_t kFewClasses = 20;  // auto: floating-point numbers are classes if all are whole, below this, and few

bool is_integer(DType dtype) {
  return dtype != DType::f32 && dtype != DType::f64;
}

std::string place(const FileArray& targets, int64_t i) {
  return targets.name + '[' + std::to_string(i) + ']';
}

struct Range {
  double low = 0, high = 0;
  bool whole = true;  // all values are whole numbers
};

Range range_of(const FileArray& targets) {
  Range range;
  for (int64_t i = 0; i < targets.rows(); ++i) {
    const double value = value_at(targets.dtype, targets.row(i), 0);
    range.low = i == 0 ? value : std::min(range.low, value);
    range.high = i == 0 ? value : std::max(range.high, value);
    range.whole = range.whole && value == std::floor(value);
  }
  return range;
}

std::string text_of_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

LabelSchema infer_labels(const FileArray& train, const std::string& task) {
  LabelSchema schema;
  Shape shape = train.shape.empty() ? Shape{} : train.row_shape();
  if (element_count(shape) == 1) shape.clear();  // treats [n, 1] as [n]
  if (element_count(shape) == 0) {
    throw Error("DATA_EMPTY", train.name + ": its targets hold no values", "write the file again with values in it");
  }
  const Range range = shape.empty() ? range_of(train) : Range{};
  if (task == "auto") {
    const bool integers = is_integer(train.dtype);
    const auto limit =
        integers ? std::max<double>(kLikelyClasses, static_cast<double>(train.rows()) / 10) : kFewClasses;
    const bool classes = shape.empty() && range.whole && range.low >= 0 && range.high > 0 && range.high < limit &&
                         (integers || (range.high + 1) * 2 <= static_cast<double>(train.rows()));
    schema.task = classes ? Task::classification : Task::regression;
    schema.reason = classes ? "classification: " + std::string(integers ? "integer" : "whole") + " labels from " +
                                  text_of_number(range.low) + " to " + text_of_number(range.high)
                    : !shape.empty()           ? "regression: each target is several numbers"
                    : !is_integer(train.dtype) ? "regression: the targets are floating-point numbers"
                    : range.low < 0            ? "regression: some targets are negative"
                                               : "regression: the targets reach " + text_of_number(range.high);
  } else {
    schema.task = task == "regression" ? Task::regression : Task::classification;
  }
  if (schema.task == Task::regression) {
    schema.shape = shape;
    return schema;
  }
  if (!shape.empty()) {
    throw Error("DATA_BAD_TARGET", train.name + ": a class is one number, but each target here is several numbers",
                "set data.task: regression");
  }
  if (range.high >= kMaxClasses) {
    throw Error("DATA_TOO_MANY_CLASSES",
                train.name + ": a label of " + text_of_number(range.high) + " would make too many classes",
                "number classes from 0, or set data.task: regression");
  }
  schema.classes = static_cast<int64_t>(range.high) + 1;
  return schema;
}

Labels read_labels(const FileArray& targets, const LabelSchema& schema) {
  Labels labels;
  const int64_t width = element_count(schema.shape);
  if (!targets.shape.empty() && element_count(targets.row_shape()) != width) {
    throw Error("DATA_SHAPE_MISMATCH", targets.name + ": its targets have another shape than those of data.train",
                "write all splits with the same shape");
  }
  labels.rounding.resize(static_cast<size_t>(width));
  for (int64_t i = 0; i < targets.rows(); ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const double value = value_at(targets.dtype, targets.row(i), j);
      if (schema.task == Task::regression) {
        if (!std::isfinite(value)) {
          throw Error("DATA_BAD_TARGET", place(targets, i) + ": the target is not a finite number",
                      "correct it, or leave the sample out");
        }
        labels.rounding[static_cast<size_t>(j)].add(value);
        labels.numbers.push_back(static_cast<float>(value));
        continue;
      }
      if (!(value >= 0) || value != std::floor(value)) {
        throw Error("DATA_BAD_TARGET", place(targets, i) + ": label " + text_of_number(value) + " is not a class",
                    "number the classes from 0, or set data.task: regression");
      }
      if (value >= static_cast<double>(schema.classes)) {
        throw Error("DATA_UNKNOWN_CLASS",
                    place(targets, i) + ": label " + text_of_number(value) + ", but data.train has " +
                        std::to_string(schema.classes) + " classes (0 to " + std::to_string(schema.classes - 1) + ")",
                    "number the classes of all splits alike");
      }
      labels.classes.push_back(static_cast<int64_t>(value));
    }
  }
  return labels;
}

}  // namespace sinew::data
