#include "worker/injected_faults.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/error.h"

namespace sinew::worker {
namespace {

constexpr uint64_t kHighestFractionBit = 22;  // its number among the bits of the first float

// Reads a number from an environment variable. Returns `otherwise` if the variable is not set. Throws Error if its
// value is not a number, or is less than `least`.
double number_from(const char* name, double least, double otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !std::isfinite(value) || value < least)
    throw Error("WORKER_BAD_ENVIRONMENT",
                std::string(name) + "=" + text + " is not a number of at least " + std::to_string(least),
                std::string("unset ") + name);
  return value;
}

std::string text_from(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

double pace_of_environment() {
  return number_from("SINEW_PACE", 1, 1);
}

PoisonedShard::PoisonedShard() {
  const std::string text = text_from("SINEW_POISON");
  if (text.empty()) return;
  char colons[2] = {};
  std::istringstream(text) >> step_ >> colons[0] >> shard_ >> colons[1] >> how_;
  const bool known = how_ == "segv" || how_ == "abort" || how_ == "oom" || how_ == "error" || how_ == "hang";
  if (colons[0] != ':' || colons[1] != ':' || !known)
    throw Error("WORKER_BAD_ENVIRONMENT",
                "SINEW_POISON=" + text + " must be STEP:SHARD:HOW, where HOW is segv, abort, oom, error or hang",
                "unset SINEW_POISON");
}

void PoisonedShard::apply(const Work& work) const {
  if (how_.empty() || work.kind != Work::Kind::computing || work.step != step_ || work.shard != shard_) return;
  if (how_ == "error") throw Error("WORKER_POISONED", "SINEW_POISON makes this shard fail", "unset SINEW_POISON");
  if (how_ == "hang") {
    while (true) ::pause();
  }
  // "oom" raises SIGKILL, because the kernel kills a process with SIGKILL when memory runs out.
  std::raise(how_ == "segv" ? SIGSEGV : how_ == "abort" ? SIGABRT : SIGKILL);
}

FlippedBit::FlippedBit() : bit_(kHighestFractionBit) {
  const std::string text = text_from("SINEW_FLIP");
  if (text.empty()) return;
  char colons[3] = {0, 0, ':'};
  std::istringstream fields(text);
  fields >> step_ >> colons[0] >> member_ >> colons[1];
  std::getline(fields, what_, ':');
  const bool more = !fields.eof();
  if (more) fields >> bit_;
  constexpr std::array kPlaces{"shard", "audit", "sums", "parameters", "optimizer", "averages", "buffers"};
  const bool known = std::ranges::find(kPlaces, what_) != kPlaces.end();
  if (colons[0] != ':' || colons[1] != ':' || !known || (more && (!fields || fields.peek() != EOF)))
    throw Error("WORKER_BAD_ENVIRONMENT",
                "SINEW_FLIP=" + text +
                    " must be STEP:MEMBER:WHAT or STEP:MEMBER:WHAT:BIT, where MEMBER is 0 for a worker without a group "
                    "and WHAT is shard, audit, sums, parameters, optimizer, averages or buffers",
                "unset SINEW_FLIP");
  left_ = true;
}

train::Faults FlippedBit::faults() {
  train::Faults faults;
  if (!left_) return faults;
  if (what_ == "shard" || what_ == "audit") {
    faults.in_shard = [this](const Work& work, bool audit, std::vector<torch::Tensor>& gradients) {
      if (!due(Step(work.step)) || audit != (what_ == "audit") || !left_.exchange(false)) return;
      for (torch::Tensor& gradient : gradients)
        if (gradient.defined()) gradient = gradient.clone();  // it may share memory with another tensor
      flip(gradients);
    };
  } else if (what_ == "sums") {
    faults.in_sums = [this](Step step, std::vector<torch::Tensor>& sums) {
      if (due(step) && left_.exchange(false)) flip(sums);
    };
  } else {
    faults.in_state = [this](train::TrainingState& state) {
      if (!due(state.step) || !left_.exchange(false)) return;
      std::vector<torch::Tensor> tensors;
      const auto& named = what_ == "parameters" ? state.parameters : what_ == "averages" ? state.ema : state.buffers;
      if (what_ == "optimizer") {
        for (const auto& [name, moments] : state.optimizer)
          tensors.insert(tensors.end(), moments.begin(), moments.end());
      } else {
        for (const auto& one : named) tensors.push_back(one.tensor);
      }
      flip(tensors);
    };
  }
  return faults;
}

void FlippedBit::flip(const std::vector<torch::Tensor>& tensors) const {
  uint64_t bits = 0;
  for (const torch::Tensor& tensor : tensors)
    if (tensor.defined()) bits += tensor.nbytes() * 8;
  if (bits == 0) throw Error("WORKER_BAD_ENVIRONMENT", "SINEW_FLIP: this run has no " + what_, "unset SINEW_FLIP");
  uint64_t bit = bit_ % bits;
  for (const torch::Tensor& tensor : tensors) {
    const uint64_t here = tensor.defined() ? tensor.nbytes() * 8 : 0;
    if (bit < here) {
      static_cast<unsigned char*>(tensor.data_ptr())[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
      std::fprintf(stderr, "sinew-worker: SINEW_FLIP has flipped a bit of %s in step %lld\n", what_.c_str(),
                   static_cast<long long>(step_));
      return;
    }
    bit -= here;
  }
}

}  // namespace sinew::worker
