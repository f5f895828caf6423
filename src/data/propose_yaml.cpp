// Writes the job file of `sinew init`. It holds only the lines that matter for the data at hand.
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "base/joined.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "data/files.h"
#include "data/propose.h"

namespace sinew::data {
namespace {

// Returns the text as a YAML string: plain if YAML can only read it as this string, otherwise in double quotes.
std::string quoted(const std::string& text) {
  const auto plain_char = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '-';
  };
  const auto words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  const bool plain = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '/') &&
                     std::all_of(text.begin(), text.end(), plain_char) &&
                     std::find(words.begin(), words.end(), lower_case(text)) == words.end();
  if (plain) return text;
  std::string out = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '$') {  // a job file expands ${NAME}
      out += "$$";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      std::snprintf(escaped, sizeof escaped, "\\x%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <typename T, typename Write>
std::string list(const std::vector<T>& values, Write write) {
  return "[" + joined(values, ", ", write) + "]";
}

std::string integers(const std::vector<int64_t>& values) {
  return list(values, [](int64_t value) { return std::to_string(value); });
}

std::string source_yaml(const std::string& key, const spec::DataSource& source) {
  if (!source.given()) return "";
  if (!source.path.empty()) return "  " + key + ":\n    path: " + quoted(source.path) + "\n";
  return "  " + key + ":\n    images: " + quoted(source.images) + "\n    labels: " + quoted(source.labels) + "\n";
}

std::string columns_yaml(const spec::ColumnOptions& columns) {
  if (columns.target.empty()) return "";
  std::string text = "  columns:\n    target: " + quoted(columns.target) + "  # the column to predict\n";
  if (!columns.ignore.empty()) text += "    ignore: " + list(columns.ignore, quoted) + "\n";
  return text;
}

std::string image_yaml(const spec::DataOptions& data) {
  if (data.format != "image_folder" && data.format != "image_list" && data.format != "webdataset") return "";
  std::string text;
  if (!data.image.size.empty()) text += "    size: " + integers(data.image.size) + "  # height, width\n";
  if (data.image.channels == 1) text += "    channels: 1  # grey\n";
  return text.empty() ? "" : "  image:\n" + text;
}

std::string augment_yaml(const spec::AugmentOptions& augment) {
  std::string text;
  if (augment.crop_padding > 0) text += "    crop_padding: " + std::to_string(augment.crop_padding) + "\n";
  if (augment.flip > 0)
    text += "    flip: " + number_text(augment.flip) + "  # 0 where left and right differ in meaning\n";
  return text.empty() ? "" : "  augment:\n" + text;
}

std::string data_yaml(const spec::DataOptions& data) {
  std::string text = "data:\n  format: " + data.format + "\n" + source_yaml("train", data.train) +
                     source_yaml("val", data.val) + source_yaml("test", data.test);
  if (data.split_val > 0 || data.split_test > 0) text += "  split:  # fractions of train\n";
  if (data.split_val > 0) text += "    val: " + number_text(data.split_val) + "\n";
  if (data.split_test > 0) text += "    test: " + number_text(data.split_test) + "\n";
  if (!data.split_by.empty())
    text += "    by: " + quoted(data.split_by) + "  # the latest rows are validation and test\n";
  if (data.task != "auto") text += "  task: " + data.task + "\n";
  text += columns_yaml(data.columns) + image_yaml(data);
  if (data.format == "text") {
    text += "  text:\n    tokens: " + data.text.tokens + "\n    window: " + std::to_string(data.text.window) + "\n";
  }
  return text + augment_yaml(data.augment);
}

std::string model_yaml(const spec::ModelOptions& model) {
  std::string text = "model:\n  name: " + model.name + "\n";
  if (model.name == "mlp") text += "  hidden: " + integers(model.hidden) + "\n";
  if (model.name == "cnn") text += "  channels: " + integers(model.channels) + "\n";
  if (model.name == "cnn" && model.norm != "none") text += "  norm: " + model.norm + "\n";
  if (model.name == "lstm") text += "  hidden_size: " + std::to_string(model.hidden_size) + "\n";
  return text;
}

std::string loss_yaml(const spec::LossOptions& loss) {
  if (loss.label_smoothing == 0) return "";
  return "loss:\n  label_smoothing: " + number_text(loss.label_smoothing) + "\n";
}

std::string duration(const spec::Duration& value) {
  return number_text(value.amount) + (value.unit == spec::Duration::Unit::epochs ? "ep" : "st");
}

std::string training_yaml(const spec::Job& job) {
  std::string text = "trainer:\n  max_duration: " + duration(job.trainer.max_duration) +
                     "  # epochs; also 5000st, 30m\n  batch_size: " + std::to_string(job.trainer.batch_size) + "\n";
  if (job.trainer.drop_last) text += "  drop_last: true\n";
  if (job.trainer.grad_clip_norm > 0) text += "  grad_clip_norm: " + number_text(job.trainer.grad_clip_norm) + "\n";
  text += "optimizer:\n  name: " + job.optimizer.name + "\n  lr: " + number_text(job.optimizer.lr) + "\n";
  if (job.optimizer.weight_decay > 0) text += "  weight_decay: " + number_text(job.optimizer.weight_decay) + "\n";
  if (job.optimizer.weight_decay_schedule != "constant")
    text += "  weight_decay_schedule: " + job.optimizer.weight_decay_schedule + "\n";
  if (job.optimizer.betas != spec::OptimizerOptions().betas)
    text += "  betas: " + list(job.optimizer.betas, [](double beta) { return number_text(beta); }) + "\n";
  const bool scheduled = job.scheduler.name != "constant";
  if (scheduled) text += "scheduler:\n  name: " + job.scheduler.name + "\n";
  if (scheduled && job.scheduler.warmup.amount > 0) text += "  warmup: " + duration(job.scheduler.warmup) + "\n";
  if (!job.early_stopping.monitor.empty())
    text += "early_stopping:\n  monitor: " + job.early_stopping.monitor +
            "\n  patience: " + std::to_string(job.early_stopping.patience) +
            "  # the model is that of the best epoch\n";
  return text;
}

}  // namespace

std::string proposal_yaml(const Proposal& proposal) {
  std::string text = "# Written by `sinew init`. Options that are not here have their defaults.\n";
  for (std::string remark : proposal.remarks) {
    std::replace_if(
        remark.begin(), remark.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
    text += "# - " + remark + "\n";
  }
  return text + "name: " + quoted(proposal.job.name) + "\n" + data_yaml(proposal.job.data) +
         model_yaml(proposal.job.model) + loss_yaml(proposal.job.loss) + training_yaml(proposal.job);
}

std::string proposal_text(const Proposal& proposal) {
  std::string text;
  for (const auto* lines : {&proposal.remarks, &proposal.details}) {
    for (const std::string& line : *lines) text += printable(line) + "\n";
  }
  return text;
}

}  // namespace sinew::data
