// Counts what the layers of a model do in a shard. Private to train/.
//
// A layer is known by its parameters: a call that reads the memory of "conv1.weight" belongs to "conv1", whatever code
// makes the call, so this works for built-in models, programs, TorchScript and libraries. The backward pass of a call
// has the sequence number that autograd gave to the call. A call that reads no parameter has the name of its operator,
// with the sizes of its input.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/model.h"
#include "rundir/rundir.h"
#include "train/flop_count.h"

namespace sinew::train {

class LayerCount {
 public:
  // The tensors with which the observed replica computes.
  LayerCount(const std::vector<model::NamedTensor>& parameters, const std::vector<model::NamedTensor>& buffers);
  LayerCount(const LayerCount&) = delete;  // the count calls this object
  // Counts what `work` computes on the calling thread. The forward pass comes before its backward pass. Changes no bit
  // of what is computed.
  void observe(const std::function<void()>& work) { count_.observe(work); }
  std::vector<rundir::LayerUse> layers() const;  // by name

 private:
  std::string name(const at::RecordFunction& call, const std::string& caller, bool is_product);
  std::string layer_at(const at::Tensor& tensor) const;

  struct Memory {
    uintptr_t end = 0;
    std::string layer;
  };
  std::map<uintptr_t, Memory> memory_;          // by the address of the first byte
  std::map<std::string, int64_t> parameters_;   // numbers of each layer
  std::map<int64_t, std::string> by_sequence_;  // what each call with a backward pass counts for
  OperatorCount count_;
};

// Returns what a step takes, from the layers of one of its shards: a step has `samples` times as many samples as the
// shard, and `shards` shards. Keeps the largest layers, and adds up the rest.
rundir::ModelUse use_in_step(std::vector<rundir::LayerUse> of_shard, double samples, int64_t shards);

}  // namespace sinew::train
