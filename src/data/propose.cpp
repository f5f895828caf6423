// `sinew init`: what lies at a path, and a job that fits it.
#include "data/propose.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

struct Recogniser {
  const char* what;  // for the error that lists what was looked for
  std::optional<Sighting> (*see)(const std::string& path);
};

// In this order: the first that sees something is believed.
constexpr Recogniser kRecognisers[] = {
    {"a folder of IDX files (train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, ...)", see_idx},
    {"a folder of CIFAR binary files (data_batch_1.bin, ... or train.bin)", see_cifar},
    {"a folder with a sub-folder of jpg or png files for each class, or train/, val/, test/ of such", see_image_folder},
    {"a .npz, or .npy files with inputs and targets", see_numpy},
    {"a list of image files with labels (path, tab or comma, label)", see_image_list},
    {"a table (.csv, .tsv, .jsonl)", see_table},
    {"a text (.txt, .md)", see_text},
};

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

std::string describe(const DataInfo& info) {
  std::string text = std::to_string(info.train_size) + " training";
  if (info.val_size > 0) text += ", " + std::to_string(info.val_size) + " validation";
  if (info.test_size > 0) text += ", " + std::to_string(info.test_size) + " test";
  text += " samples of shape " + shape_text(info.input_shape);
  if (info.task == Task::classification) text += ", " + std::to_string(info.classes) + " classes";
  if (info.task == Task::regression) text += ", a number to predict";
  if (info.task == Task::next_token) text += ", a vocabulary of " + std::to_string(info.classes);
  return text;
}

// Opens the data as the job would, so that the file init writes is known to work. Nothing when it does not.
std::optional<DataInfo> try_open(const spec::Job& job, std::vector<std::string>& remarks) {
  spec::DataOptions options = job.data;
  options.normalize = "none";  // only to look
  try {
    DataInfo info = open_dataset(options, job.trainer.seed)->info();
    remarks.push_back(describe(info));
    return info;
  } catch (const Error& error) {
    remarks.push_back("Attention: the data do not open with this job: " + std::string(error.what()) +
                      (error.hint.empty() ? "" : " (" + error.hint + ")"));
    return std::nullopt;
  }
}

enum class Kind { small_image, large_image, cifar, vector, text };

Kind kind_of(const spec::DataOptions& data, const std::optional<DataInfo>& info) {
  if (data.format == "text") return Kind::text;
  if (data.format == "cifar10" || data.format == "cifar100") return Kind::cifar;
  if (info && info->input_shape.size() == 3) {
    return std::max(info->input_shape[1], info->input_shape[2]) > 64 ? Kind::large_image : Kind::small_image;
  }
  if (data.format == "idx") return info ? Kind::vector : Kind::small_image;
  if (data.format == "image_folder" || data.format == "image_list") return Kind::large_image;
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
  remarks.push_back("resnet18 wants a GPU or patience; model.name: cnn is many times faster on a CPU");
}

void choose(spec::Job& job, Kind kind, const std::optional<DataInfo>& info, std::vector<std::string>& remarks) {
  if (kind == Kind::small_image || kind == Kind::large_image || kind == Kind::cifar) {
    choose_for_images(job, kind, remarks);
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
  fs::path place = fs::path(path).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  std::string name = lower_case(place.filename().string());
  name = name.substr(0, name.find('.', 1));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
  }
  const bool useful = std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  return useful ? name : "job";
}

}  // namespace

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string ending_of(const std::string& path) {
  fs::path name(lower_case(fs::path(path).filename().string()));
  if (name.extension() == ".gz") name = name.stem();
  const std::string extension = name.extension().string();
  return extension.empty() ? "" : extension.substr(1);
}

std::string head_of(const std::string& path, size_t limit) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) throw Error("cannot read " + path, "check the path and its permissions");
  std::string head(limit, '\0');
  const int got = gzread(file, head.data(), static_cast<unsigned>(limit));
  gzclose_r(file);
  if (got < 0) throw Error("cannot read " + path, "the file is damaged or cannot be read");
  head.resize(static_cast<size_t>(got));
  return head;
}

Proposal propose_job(const std::string& path) {
  if (!system_disk().exists(path)) throw Error("there is no " + path, "give a file or folder with data");
  for (const Recogniser& recogniser : kRecognisers) {
    std::optional<Sighting> sighting = recogniser.see(path);
    if (!sighting) continue;
    Proposal proposal;
    proposal.job.name = job_name(path);
    proposal.job.data = std::move(sighting->data);
    proposal.remarks = std::move(sighting->remarks);
    spec::DataOptions& data = proposal.job.data;
    if (!data.val.given()) data.split_val = 0.1;
    if (!data.test.given() && data.format != "text") data.split_test = 0.1;
    const std::optional<DataInfo> info = try_open(proposal.job, proposal.remarks);
    choose(proposal.job, kind_of(data, info), info, proposal.remarks);
    return proposal;
  }
  std::string looked_for;
  for (const Recogniser& recogniser : kRecognisers)
    looked_for += std::string(looked_for.empty() ? "" : "; ") + recogniser.what;
  throw Error("nothing Sinew knows lies at " + path, "what was looked for: " + looked_for);
}

}  // namespace sinew::data
