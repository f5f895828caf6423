// Private to model/: declares the functions that make each architecture of the list in architectures.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"

namespace sinew::model {

std::unique_ptr<Model> make_linear(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_mlp(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_tabular(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_cnn(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet18(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet34(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet50(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_lstm(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);

// These functions make models that the user wrote, and check that the models fit the data.
std::unique_ptr<Model> make_program(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_script(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_library(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);

// These functions make synthetic samples to try a model with. The samples have the shapes and types of `data`:
// [count, ...] of the input, or of the target.
torch::Tensor synthetic_input(const data::DataInfo& data, int64_t count);
torch::Tensor synthetic_target(const data::DataInfo& data, int64_t count);
// The output that the loss takes from a model: `outputs` numbers for each sample (or token), or one number if `outputs`
// is 0.
class ExpectedOutput {
 public:
  ExpectedOutput(std::string file, const data::DataInfo& data, int64_t outputs);
  // Throws Error, naming the file, if the loss does not take the model's output for `count` samples. Costs some
  // comparisons.
  void check(const torch::Tensor& made, int64_t count) const;
  [[noreturn]] void refuse(const std::string& what, const std::string& wanted) const;

 private:
  static std::string text(at::IntArrayRef sizes);

  std::string file_;
  std::vector<int64_t> sample_;  // sizes after the first
  int64_t outputs_;
};
// Returns a model that does the same, but checks its output at every forward pass.
std::unique_ptr<Model> with_checked_output(std::unique_ptr<Model> model, ExpectedOutput expected);

// These functions find tensors that a safetensors file cannot hold. Without them, a training would run to its end and
// then lose its model. check_storable throws Error; the others return it.
void check_storable(const std::string& file, const std::vector<NamedTensor>& tensors);
Error reserved_name(const std::string& file, const std::string& name);
Error type_not_stored(const std::string& file, const std::string& name, const std::string& type);
inline constexpr const char* kReservedName = "__metadata__";
// Returns the error for a model of which nothing is trained.
Error nothing_to_train(const std::string& file, const std::string& hint);

// From this call on, allocating a tensor of 256 MiB or more throws an error if the tensor is larger than the free
// memory. Without this limit, Linux would end the process. The limit applies to the whole process; later calls do
// nothing. Smaller tensors are not checked, because reading the free memory takes time.
void limit_allocations();
// Returns how many bytes the process can still get, swap included, or UINT64_MAX if the texts do not say. The arguments
// are the texts of /proc/meminfo, and of memory.max, memory.current and memory.stat of the process's cgroup.
uint64_t free_memory(const std::string& meminfo, const std::string& max, const std::string& current,
                     const std::string& stat);

// inspect_file and save_model_file call these functions, one for each kind of file.
std::string problem_of(const std::string& file, const Error& error);  // the line that inspect shows
FileReport inspect_program(const std::string& file);
FileReport inspect_script(const std::string& file);
FileReport inspect_library(const std::string& file);
void save_library(const std::string& file, const std::string& to);
void save_script(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to);

// These functions throw Error if the architecture cannot take the data. The message says what the architecture takes.
void require_numbers(const data::DataInfo& data, const char* model);  // refuses tokens
void require_images(const data::DataInfo& data, const char* model);   // takes only [channels, height, width]

torch::Tensor activate(const torch::Tensor& input, const std::string& name);  // an activation's name; auto: relu

}  // namespace sinew::model
