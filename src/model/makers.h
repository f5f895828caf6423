// Inside model/: declares the functions that make each architecture of the list in architectures.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/model.h"

namespace sinew::model {

std::unique_ptr<Model> make_linear(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_mlp(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_cnn(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet18(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet34(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet50(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_lstm(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);

// Models that the user wrote, with their inputs bound to the data.
std::unique_ptr<Model> make_program(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_script(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_library(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);

// Synthetic samples of the shapes and types in `data`, to try a model with: [count, ...] of the input, or of the
// target.
torch::Tensor synthetic_input(const data::DataInfo& data, int64_t count);
torch::Tensor synthetic_target(const data::DataInfo& data, int64_t count);
// What the loss takes from a model: `outputs` numbers for each sample (or token), or one number if `outputs` is 0.
class ExpectedOutput {
 public:
  ExpectedOutput(std::string file, const data::DataInfo& data, int64_t outputs);
  // Throws Error, naming the file, if the model's output for `count` samples is something else. Costs some comparisons.
  void check(const torch::Tensor& made, int64_t count) const;
  [[noreturn]] void refuse(const std::string& what, const std::string& wanted) const;

 private:
  static std::string text(at::IntArrayRef sizes);

  std::string file_;
  std::vector<int64_t> sample_;  // sizes after the first
  int64_t outputs_;
};
// The same model, whose output is checked at every forward pass.
std::unique_ptr<Model> with_checked_output(std::unique_ptr<Model> model, ExpectedOutput expected);

// Makes every allocation of a tensor fail with an error that says so, instead of ending the process, if it is larger
// than the memory that is free. For the whole process; later calls do nothing. It looks at the memory only for large
// tensors, for which filling them takes a thousand times as long.
void limit_allocations();
// The bytes that the process can still get, swap included: from the texts of /proc/meminfo and of its cgroup's
// memory.max, memory.current and memory.stat. UINT64_MAX if they do not say. Pure.
uint64_t free_memory(const std::string& meminfo, const std::string& max, const std::string& current,
                     const std::string& stat);

// inspect_file and save_model_file call these functions, one for each kind of file.
FileReport inspect_script(const std::string& file);
FileReport inspect_library(const std::string& file);
void save_library(const std::string& file, const std::string& to);
void save_script(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to);

// The following two throw Error if the architecture cannot take the data. The message says what the architecture takes.
void require_numbers(const data::DataInfo& data, const char* model);  // refuses tokens
void require_images(const data::DataInfo& data, const char* model);   // takes only [channels, height, width]

torch::Tensor activate(const torch::Tensor& input, const std::string& name);  // relu | gelu | tanh | silu

}  // namespace sinew::model
