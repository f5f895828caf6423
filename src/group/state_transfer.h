// Transfers a snapshot of the training state from a donor to a joining member. Private to group/.
//
// Format: one frame that describes the tensors and their sizes, then the bytes of all tensors in that order, in chunks.
// A link either delivers everything in order or is lost, so chunks are neither repeated nor acknowledged.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "link/link.h"

namespace sinew::group {

constexpr uint16_t kStateBegin = 64, kStateChunk = 65;  // frame kinds; lower ones belong to Group
constexpr size_t kStateChunkBytes = size_t{1} << 20;

// Makes the frames of a snapshot one by one, so that only the frames in flight take memory.
class StateSender {
 public:
  StateSender(const checkpoint::OwnedSnapshot& snapshot, int64_t collective, uint64_t history);
  std::optional<link::Frame> next();  // nullopt if there are no more frames

 private:
  const checkpoint::OwnedSnapshot& snapshot_;
  int64_t collective_;
  uint64_t history_;
  bool begun_ = false;
  std::vector<const std::pair<checkpoint::TensorEntry, Buffer>*> tensors_;
  size_t tensor_ = 0, offset_ = 0;
  int64_t chunk_ = 0;
};

// Reassembles the state. A begin frame discards what came before.
class StateReceiver {
 public:
  // Takes the next frame. Returns the problem with it, or an empty string if there is none.
  std::string take(const link::Frame& frame);
  bool complete() const { return begun_ && tensor_ == tensors_.size(); }
  int64_t collective() const { return collective_; }
  uint64_t history() const { return history_; }
  checkpoint::Loaded result();  // call once, when complete()

 private:
  std::string begin(const link::Frame& frame);
  std::string chunk(const link::Frame& frame);
  void skip_filled();

  bool begun_ = false;
  int64_t collective_ = 0, chunk_ = 0;
  uint64_t history_ = 0;
  checkpoint::Loaded loaded_;
  std::vector<Array*> tensors_;  // tensors of loaded_, in the order of the bytes
  size_t tensor_ = 0, offset_ = 0;
};

}  // namespace sinew::group
