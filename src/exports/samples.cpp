#include "exports/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/random.h"

namespace sinew::exports {
namespace {

using data::PreparedColumn;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

double made_up_number(const PreparedColumn& column, RandomStream& random, bool unknown) {
  if (column.cells == PreparedColumn::Cells::boolean) return static_cast<double>(random.below(2));
  if (column.kind == PreparedColumn::Kind::value) {
    if (unknown || column.places.empty()) return -12345.5;
    return std::strtod(column.places[random.below(column.places.size())].first.c_str(), nullptr);
  }
  constexpr double kTwentyYears = 20 * 365.25 * 86400;
  if (column.kind == PreparedColumn::Kind::date)
    return std::floor(column.fill + random.uniform(-kTwentyYears, kTwentyYears));
  return column.center + column.std * random.normal();
}

// Fills the cells of one column, so that every kind of value occurs.
data::CellColumn made_up_cells(const PreparedColumn& column, RandomStream& random, int64_t count) {
  data::CellColumn cells;
  const size_t places = column.places.size();
  for (int64_t row = 0; row < count; ++row) {
    const bool missing = random.below(6) == 0, unknown = random.below(6) == 0;
    if (column.cells == PreparedColumn::Cells::word) {
      const std::string word = places == 0 ? "word" : column.places[random.below(places)].first;
      cells.words.push_back(missing ? "" : unknown ? "no such word" : word);
      continue;
    }
    cells.numbers.push_back(missing ? kNoNumber : made_up_number(column, random, unknown));
  }
  return cells;
}

Value raw_cells(const PreparedColumn& column, const data::CellColumn& cells) {
  Value value;
  if (column.cells == PreparedColumn::Cells::word) {
    value.texts = cells.words;
  } else if (column.cells == PreparedColumn::Cells::boolean) {
    for (const double number : cells.numbers)
      value.texts.push_back(std::isnan(number) ? "" : number > 0 ? "Yes" : "false");
  } else {
    value.tensor = torch::tensor(cells.numbers, torch::kFloat64);
  }
  return value;
}

Samples made_up_rows(const data::DataInfo& info, const data::Preparation& preparation, RandomStream& random,
                     int64_t count) {
  Samples samples;
  std::vector<data::CellColumn> all;
  for (const PreparedColumn& column : preparation.columns) {
    all.push_back(made_up_cells(column, random, count));
    samples.raw[column.name] = raw_cells(column, all.back());
  }
  const Array encoded = data::encode_columns(info, all);
  samples.prepared = torch::empty(encoded.shape);
  std::memcpy(samples.prepared.mutable_data_ptr(), encoded.bytes.data(), encoded.bytes.size());
  samples.what = "rows";
  return samples;
}

// Values near those that the normalisation expects: bytes and whole numbers from 0 on, others around the mean.
torch::Tensor made_up_array(const data::Preparation& preparation, const std::vector<int64_t>& shape,
                            RandomStream& random) {
  torch::Tensor values = torch::empty(shape, torch::kFloat64);
  double* out = values.mutable_data_ptr<double>();
  const double mean = preparation.mean.empty() ? 0 : preparation.mean[0];
  const double factor = preparation.factor.empty() ? 1 : preparation.factor[0];
  for (int64_t i = 0; i < values.numel(); ++i) {
    out[i] = preparation.dtype == DType::u8 ? static_cast<double>(random.below(256)) : mean + random.normal() / factor;
  }
  switch (preparation.dtype) {
    case DType::boolean: return values > mean;
    case DType::u8: return values.to(torch::kUInt8);
    case DType::i8: return values.clamp(-128, 127).to(torch::kInt8);
    case DType::i16: return values.clamp(-32768, 32767).to(torch::kInt16);
    case DType::i32: return values.to(torch::kInt32);
    case DType::i64: return values.to(torch::kInt64);
    case DType::f16: return values.to(torch::kFloat16);
    case DType::bf16: return values.to(torch::kBFloat16);
    case DType::f32: return values.to(torch::kFloat32);
    case DType::f64: break;
  }
  return values;
}

Samples made_up_arrays(const data::DataInfo& info, const data::Preparation& preparation, RandomStream& random,
                       int64_t count) {
  Samples samples;
  std::vector<int64_t> shape = {count};
  shape.insert(shape.end(), info.input_shape.begin(), info.input_shape.end());
  const torch::Tensor values = made_up_array(preparation, shape, random);
  samples.array = channels_last(info) ? values.permute({0, 2, 3, 1}).contiguous() : values;
  samples.raw[info.input_shape.size() == 3 ? "images" : "values"].tensor = samples.array;
  // The same arithmetic as data/, but all in double precision.
  torch::Tensor prepared = values.to(torch::kFloat64);
  if (preparation.images) prepared = prepared / 255;
  if (!preparation.mean.empty()) {
    std::vector<int64_t> dims(shape.size(), 1);
    dims[1] = static_cast<int64_t>(preparation.mean.size());
    prepared = (prepared - torch::tensor(preparation.mean, torch::kFloat64).reshape(dims)) *
               torch::tensor(preparation.factor, torch::kFloat64).reshape(dims);
  }
  samples.prepared = prepared.to(torch::kFloat32);
  samples.what = info.input_shape.size() == 3 ? "images" : "rows";
  return samples;
}

Samples made_up_text(const data::DataInfo& info, const data::Preparation& preparation, RandomStream& random,
                     int64_t count) {
  Samples samples;
  const auto known = static_cast<int64_t>(preparation.vocabulary.size());
  samples.prepared = torch::empty({count, info.tokens_per_sample}, torch::kInt64);
  torch::Tensor characters = samples.prepared.clone();
  for (int64_t i = 0; i < characters.numel(); ++i) {
    const auto token = static_cast<int64_t>(random.below(static_cast<uint64_t>(info.classes)));
    samples.prepared.mutable_data_ptr<int64_t>()[i] = token;
    constexpr int64_t kNoCharacter = 0x110000;  // above every code point
    characters.mutable_data_ptr<int64_t>()[i] =
        token < known ? preparation.vocabulary[static_cast<size_t>(token)] : kNoCharacter;
  }
  samples.raw["characters"].tensor = characters;
  samples.array = samples.prepared;
  samples.what = "windows of text";
  return samples;
}

}  // namespace

Samples make_samples(const train::LoadedModel& loaded, int64_t count) {
  const data::DataInfo& info = loaded.data;
  const data::Preparation preparation = data::preparation_of(info);
  RandomStream random(derive(random_key({loaded.job.trainer.seed}), "export"));
  if (info.task == data::Task::next_token) return made_up_text(info, preparation, random, count);
  if (preparation.columns.empty()) return made_up_arrays(info, preparation, random, count);
  return made_up_rows(info, preparation, random, count);
}

Results results_of(train::LoadedModel& loaded, const torch::Tensor& prepared) {
  const torch::NoGradGuard no_grad;
  const Outcomes outcomes = outcomes_of(loaded);
  torch::Tensor outputs = loaded.model->forward(prepared);
  if (outputs.dim() == 3) outputs = outputs.select(1, outputs.size(1) - 1);
  outputs = outputs.to(torch::kFloat64).reshape({prepared.size(0), -1});
  Results results;
  if (!outcomes.classes) {
    results.numbers =
        outputs * torch::tensor(outcomes.std, torch::kFloat64) + torch::tensor(outcomes.mean, torch::kFloat64);
    return results;
  }
  if (outcomes.single) {
    const torch::Tensor likely = torch::sigmoid(outputs);
    results.numbers = torch::cat({1 - likely, likely}, 1);
  } else {
    results.numbers = outcomes.sigmoid ? torch::sigmoid(outputs) : torch::softmax(outputs, 1);
  }
  torch::Tensor best = results.numbers.argmax(1);
  if (outcomes.threshold) {
    const torch::Tensor score = outcomes.single ? outputs.select(1, 0) : outputs.select(1, 1) - outputs.select(1, 0);
    best = score.ge(*outcomes.threshold).to(torch::kInt64);
  }
  for (int64_t i = 0; i < best.numel(); ++i)
    results.names.push_back(outcomes.names.at(static_cast<size_t>(best[i].item<int64_t>())));
  return results;
}

double compare(const Outcomes& outcomes, const torch::Tensor& made, const torch::Tensor& wanted,
               const std::string& format) {
  torch::Tensor difference = (made.to(torch::kFloat64).reshape(wanted.sizes()) - wanted).abs();
  if (!outcomes.classes) difference = difference / torch::tensor(outcomes.std, torch::kFloat64);
  const auto largest = difference.max().item<double>();
  if (largest <= kMostDifference) return largest;  // also false for NaN
  throw Error("EXPORT_DIFFERS",
              "the " + format + " export computes other numbers than the trained model: they differ by " +
                  std::to_string(largest),
              "this is a bug in sinew; please report it with the job file");
}

}  // namespace sinew::exports
