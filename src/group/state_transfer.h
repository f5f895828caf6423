// Inside group/: a snapshot of the training state on its way from a donor to a member that joins.
//
// On the wire: one frame that describes (what is there, how large), then the bytes of all tensors in that order, in
// chunks. A link delivers whole and in order or is lost, so nothing is numbered twice or acknowledged.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "link/link.h"

namespace sinew::group {

constexpr uint16_t kStateBegin = 64, kStateChunk = 65;  // frame kinds; those below are Group's
constexpr size_t kStateChunkBytes = size_t{1} << 20;

// The frames of a snapshot, made one by one so that only those under way take memory.
class StateSender {
 public:
  StateSender(const checkpoint::OwnedSnapshot& snapshot, int64_t collective, uint64_t history);
  std::optional<link::Frame> next();  // nullopt: that was all

 private:
  const checkpoint::OwnedSnapshot& snapshot_;
  int64_t collective_;
  uint64_t history_;
  bool begun_ = false;
  std::vector<const std::pair<checkpoint::TensorEntry, Buffer>*> tensors_;
  size_t tensor_ = 0, offset_ = 0;
  int64_t chunk_ = 0;
};

// Puts the state together again. A begin frame starts over.
class StateReceiver {
 public:
  // Why the frame makes no sense, or empty.
  std::string take(const link::Frame& frame);
  bool complete() const { return begun_ && tensor_ == tensors_.size(); }
  int64_t collective() const { return collective_; }
  uint64_t history() const { return history_; }
  checkpoint::Loaded result();  // once, when complete

 private:
  std::string begin(const link::Frame& frame);
  std::string chunk(const link::Frame& frame);
  void skip_filled();

  bool begun_ = false;
  int64_t collective_ = 0, chunk_ = 0;
  uint64_t history_ = 0;
  checkpoint::Loaded loaded_;
  std::vector<Array*> tensors_;  // of loaded_, in the order of the bytes
  size_t tensor_ = 0, offset_ = 0;
};

}  // namespace sinew::group
