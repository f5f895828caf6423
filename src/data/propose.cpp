// Implements `sinew init`: finds out which data a path holds, and proposes a job for it.
#include "data/propose.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include "base/disk.h"
#include "base/error.h"
#include "base/file_pattern.h"
#include "base/joined.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "data/files.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

struct Detector {
  const char* what;  // for the error that lists the known kinds of data
  std::optional<Detection> (*detect)(const std::string& path);
};

// The first detector that recognises the data wins.
constexpr Detector kDetectors[] = {
    {"a folder of IDX files (train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, ...)", detect_idx},
    {"a folder of CIFAR binary files (data_batch_1.bin, ... or train.bin)", detect_cifar},
    {"a folder with a sub-folder of images for each class, or train/, val/ and test/ with such folders",
     detect_image_folder},
    {"a .tar of images with their labels (17.jpg, 17.cls), or a folder of such files", detect_webdataset},
    {"a .npz, or .npy files with inputs and targets", detect_numpy},
    {"a list of image files with labels (path, tab or comma, label)", detect_image_list},
    {"a table (.csv, .tsv, .jsonl), a folder of such files, or a pattern (data/*.csv)", detect_table},
    {"a folder with a sub-folder of texts (.txt) for each class", detect_text_folder},
    {"a text (.txt, .md)", detect_text},
};

std::string shape_text(const Shape& shape) {
  return joined_numbers(shape, " x ");
}

std::string describe(const DataInfo& info) {
  std::string text = std::to_string(info.train_size) + " training";
  if (info.val_size > 0) text += ", " + std::to_string(info.val_size) + " validation";
  if (info.test_size > 0) text += ", " + std::to_string(info.test_size) + " test";
  const auto columns = std::ranges::count_if(
      info.columns, [](const ColumnFacts& column) { return column.kind != "target" && column.kind != "ignored"; });
  if (columns > 0) {
    text += " rows with " + std::to_string(columns) + (columns == 1 ? " input column" : " input columns");
    if (info.input_shape != Shape{columns}) text += " (" + shape_text(info.input_shape) + " numbers)";
  } else {
    text += " samples of shape " + shape_text(info.input_shape);
  }
  if (info.task == Task::classification) text += ", " + std::to_string(info.classes) + " classes";
  if (info.task == Task::regression) text += ", a number to predict";
  const auto reason = info.reasons.find("data.task");
  if (info.task == Task::regression && columns == 0 && reason != info.reasons.end())
    text += " (" + reason->second + ")";
  if (info.task == Task::next_token) text += ", a vocabulary of " + std::to_string(info.classes);
  return text;
}

// Opens the data as the job would, to prove that the proposed job file works. Returns nullopt if it does not.
std::optional<DataInfo> try_open(Proposal& proposal) {
  spec::DataOptions options = proposal.job.data;
  const bool table = !options.columns.target.empty();
  if (!table) options.normalize = "none";  // saves the time of measuring the pixels
  try {
    DataInfo info = open_dataset(options, proposal.job.trainer.seed)->info();
    proposal.remarks.insert(proposal.remarks.end(), info.notes.begin(), info.notes.end());
    proposal.remarks.push_back(describe(info));
    if (table) proposal.details = column_lines(info.columns);
    return info;
  } catch (const Error& error) {
    proposal.remarks.push_back("warning: this job cannot open the data: " + std::string(error.what()));
    proposal.trouble = error;
    return std::nullopt;
  }
}

enum class Kind { small_image, large_image, cifar, vector, table, text };

Kind kind_of(const spec::DataOptions& data, const std::optional<DataInfo>& info) {
  if (data.format == "text") return Kind::text;
  if (!data.columns.target.empty()) return Kind::table;
  if (data.format == "cifar10" || data.format == "cifar100") return Kind::cifar;
  if (info && info->input_shape.size() == 3) {
    return std::max(info->input_shape[1], info->input_shape[2]) > 64 ? Kind::large_image : Kind::small_image;
  }
  if (data.format == "idx") return info ? Kind::vector : Kind::small_image;
  if (data.format == "image_folder" || data.format == "image_list" || data.format == "webdataset")
    return Kind::large_image;
  return Kind::vector;
}

void choose_for_images(spec::Job& job, Kind kind, std::vector<std::string>& remarks) {
  job.optimizer.name = "adamw";
  job.optimizer.weight_decay = 0.01;
  job.scheduler.name = "cosine";
  if (kind == Kind::small_image) {
    job.model.name = "cnn";
    job.model.norm = "batch";
    job.trainer.batch_size = 128;
    job.trainer.max_duration = {10, spec::Duration::Unit::epochs};
    return;
  }
  job.model.name = "resnet18";
  job.trainer.batch_size = kind == Kind::cifar ? 128 : 32;
  job.trainer.max_duration = {30, spec::Duration::Unit::epochs};
  job.scheduler.warmup = {1, spec::Duration::Unit::epochs};
  job.data.augment.flip = 0.5;
  if (kind == Kind::cifar) job.data.augment.crop_padding = 4;
  remarks.push_back("resnet18 is slow without a GPU; model.name: cnn is many times faster on a CPU");
}

// Returns how many epochs one core trains in this time. It follows from the sizes alone, so that the same data give the
// same job file on every machine. The constants are of a core of 2026 and were measured with bench/tables.py.
double epochs_within(double seconds, const DataInfo& info, const spec::Job& job) {
  constexpr double kSecondsOfWeight = 4e-10, kSecondsOfUnit = 2e-8, kSecondsOfStep = 4e-3;
  int64_t inputs = 4 * element_count(info.input_shape), weights = 0, units = 0;  // a number becomes 4 inputs
  for (const int64_t size : job.model.hidden) {
    weights += inputs * size;
    units += size;
    inputs = size;
  }
  const auto rows = static_cast<double>(info.train_size);
  const double epoch =
      rows * (static_cast<double>(weights) * kSecondsOfWeight + static_cast<double>(units) * kSecondsOfUnit) +
      std::ceil(rows / static_cast<double>(job.trainer.batch_size)) * kSecondsOfStep;
  return std::max(1.0, std::floor(seconds / epoch));
}

constexpr int64_t kManyRows = 50'000;

// The training of RealMLP-TD (Holzmueller, Grinsztajn, Steinwart 2024, appendix A), which belongs to model: tabular.
// The best epoch is that of the lowest validation loss.
void choose_for_table(spec::Job& job, const std::optional<DataInfo>& info, double time_limit,
                      std::vector<std::string>& remarks) {
  const bool regression = info && info->task == Task::regression;
  job.model = spec::default_model("tabular");
  if (!regression) job.loss.label_smoothing = 0.1;
  job.trainer.max_duration = {256, spec::Duration::Unit::epochs};
  job.trainer.batch_size = 256;
  job.trainer.drop_last = info && info->train_size >= job.trainer.batch_size;
  job.optimizer.lr = regression ? 0.2 : 0.04;
  job.optimizer.weight_decay = 0.02;
  job.optimizer.weight_decay_schedule = "flat_cos";
  job.optimizer.betas = {0.9, 0.95};
  job.scheduler.name = "coslog4";
  if (info && info->val_size > 0) {
    job.early_stopping.monitor = "val/loss";
    job.early_stopping.patience = 256;
  }
  if (info && time_limit > 0) {
    const double epochs = epochs_within(time_limit, *info, job);
    if (epochs >= job.trainer.max_duration.amount) return;
    job.trainer.max_duration.amount = epochs;
    remarks.push_back("--time-limit shortens the training to " + number_text(epochs) + " epochs of 256");
  } else if (info && info->train_size > kManyRows) {
    remarks.push_back("256 epochs of so many rows take long; --time-limit shortens the training");
  }
}

void choose(spec::Job& job, Kind kind, const std::optional<DataInfo>& info, double time_limit,
            std::vector<std::string>& remarks) {
  if (kind == Kind::small_image || kind == Kind::large_image || kind == Kind::cifar) {
    choose_for_images(job, kind, remarks);
  } else if (kind == Kind::table) {
    choose_for_table(job, info, time_limit, remarks);
  } else if (kind == Kind::text) {
    job.model.name = "lstm";
    job.model.hidden_size = 256;
    job.optimizer.lr = 2e-3;
    job.trainer.batch_size = 64;
    job.trainer.grad_clip_norm = 1;
  } else {
    const bool small = info && info->train_size < 2000;
    job.model.name = "mlp";
    job.model.hidden = {128, 64};
    job.optimizer.weight_decay = 0.01;
    job.trainer.batch_size = small ? 32 : 256;
    job.trainer.max_duration = {small ? 50.0 : 20.0, spec::Duration::Unit::epochs};
  }
}

// "data/My Photos/" gives "my-photos".
std::string job_name(const std::string& path) {
  fs::path normal = fs::path(path).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();
  std::string name = lower_case(normal.filename().string());
  name = name.substr(0, name.find('.', 1));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
  }
  const auto first = std::ranges::find_if(name, [](unsigned char c) { return std::isalnum(c) != 0; });
  if (first == name.end()) return "job";
  constexpr std::ptrdiff_t kLongest = 64;  // a job's name is also that of a folder
  return {first, first + std::min(kLongest, name.end() - first)};
}

// Says what a folder holds: ", which holds 24 .png files and 2 folders". Returns "" for a file.
std::string what_is_in(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return "";
  std::map<std::string, int64_t> counts;
  for (const Disk::Entry& entry : system_disk().list(path)) {
    if (entry.name.starts_with('.')) continue;
    const std::string extension = file_extension(entry.name);
    ++counts[entry.directory ? "folder" : extension.empty() ? "file" : '.' + extension + " file"];
  }
  if (counts.empty()) return ", which is an empty folder";
  std::vector<std::pair<std::string, int64_t>> most(counts.begin(), counts.end());
  std::ranges::stable_sort(most, std::greater<>(), &std::pair<std::string, int64_t>::second);
  most.resize(std::min<size_t>(most.size(), 3));
  return ", which holds " + joined(most, " and ", [](const auto& kind) {
           return with_commas(kind.second) + ' ' + printable_start(kind.first) + (kind.second == 1 ? "" : "s");
         });
}

// Throws the Error for a path at which nothing is.
[[noreturn]] void refuse_missing(const std::string& path) {
  std::error_code ignored;
  if (fs::is_symlink(path, ignored))
    throw Error("DATA_UNREADABLE_FILE",
                path + " is a link to " + printable_start(fs::read_symlink(path, ignored).string(), 200) +
                    ", which leads to no file or folder",
                "correct the link, or give the path of your data");
  throw Error("DATA_UNREADABLE_FILE", "there is no file or folder " + path, "give the path of your data");
}

// Makes the user's second path the test data.
void take_test(const std::string& test, const std::string& path, Detection& detection) {
  if (!system_disk().exists(test) && !is_file_pattern(test)) refuse_missing(test);
  spec::DataOptions& data = detection.data;
  if (data.train.path.empty() || data.format == "cifar10" || data.format == "cifar100")
    throw Error("DATA_BAD_OPTION", "test data cannot be named beside the " + data.format + " files of " + path,
                "give one path, and name the test data in the job file");
  if (data.test.given() && data.test.path != path)
    throw Error("DATA_BAD_OPTION", path + " has test data of its own: " + data.test.path, "give one path");
  data.test = {};
  data.test.path = test;
}

}  // namespace

Proposal propose_job(const std::string& path, const Wanted& wanted) {
  if (is_dead_link(path) || (!system_disk().exists(path) && !is_file_pattern(path))) refuse_missing(path);
  const bool pattern = is_file_pattern(path);
  for (const Detector& detector : kDetectors) {
    // The others read one file or folder.
    if (pattern && detector.detect != detect_table && detector.detect != detect_webdataset) continue;
    std::optional<Detection> detection = detector.detect(path);
    if (!detection) continue;
    if (detector.detect == detect_table) {
      choose_target(*detection, wanted);
    } else if (!wanted.target.empty()) {
      throw Error("DATA_BAD_OPTION", path + " is no table, so it has no column '" + wanted.target + "'",
                  "leave --target out");
    } else if (wanted.time_limit > 0) {
      throw Error("DATA_BAD_OPTION", path + " is no table, so its training cannot be shortened to a time",
                  "leave --time-limit out, and set trainer.max_duration or budget.time in the job file");
    }
    detection->data.task = wanted.task;
    if (!wanted.test.empty()) take_test(wanted.test, path, *detection);
    Proposal proposal;
    proposal.job.name = job_name(path);
    proposal.job.data = std::move(detection->data);
    proposal.remarks = std::move(detection->remarks);
    spec::DataOptions& data = proposal.job.data;
    if (!data.val.given()) data.split_val = 0.1;
    if (!data.test.given() && data.format != "text") data.split_test = 0.1;
    std::optional<DataInfo> info = try_open(proposal);
    if (!info && !data.split_by.empty()) {  // for example, a row has no date
      data.split_by.clear();
      proposal.trouble.reset();
      proposal.remarks.pop_back();  // the warning of the first try
      info = try_open(proposal);
    }
    choose(proposal.job, kind_of(data, info), info, wanted.time_limit, proposal.remarks);
    return proposal;
  }
  throw Error("DATA_UNKNOWN_FORMAT", "Sinew does not recognise the data at " + path + what_is_in(path),
              "give one of: " + joined(kDetectors, "; ", &Detector::what));
}

}  // namespace sinew::data
