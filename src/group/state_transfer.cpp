#include "group/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace sinew::group {
namespace {

using nlohmann::json;

constexpr DType kTypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                            DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

std::optional<DType> type_named(const std::string& name) {
  for (const DType type : kTypes) {
    if (name_of(type) == name) return type;
  }
  return std::nullopt;
}

link::Frame frame_of(uint16_t kind, int64_t collective, int64_t part, link::Bytes bytes) {
  link::Frame frame;
  frame.kind = kind;
  frame.collective = collective;
  frame.part = part;
  frame.payload = std::make_shared<const link::Bytes>(std::move(bytes));
  return frame;
}

}  // namespace

StateSender::StateSender(const checkpoint::OwnedSnapshot& snapshot, int64_t collective, uint64_t history)
    : snapshot_(snapshot), collective_(collective), history_(history) {
  for (const auto& [name, tensors] : snapshot.parts) {
    for (const auto& tensor : tensors) tensors_.push_back(&tensor);
  }
}

std::optional<link::Frame> StateSender::next() {
  if (!begun_) {
    begun_ = true;
    json parts = json::object();
    for (const auto& [name, tensors] : snapshot_.parts) {
      json list = json::array();
      for (const auto& [entry, bytes] : tensors) {
        list.push_back({{"name", entry.name}, {"dtype", name_of(entry.dtype)}, {"shape", entry.shape}});
      }
      parts[name] = list;
    }
    const std::string text = dump_json(json({{"step", snapshot_.step.value},
                                             {"digest", to_hex(snapshot_.digest)},
                                             {"history", history_},
                                             {"state", snapshot_.state_json},
                                             {"parts", parts}}));
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return frame_of(kStateBegin, collective_, 0, link::Bytes(bytes, bytes + text.size()));
  }
  link::Bytes bytes;
  bytes.reserve(kStateChunkBytes);
  while (tensor_ < tensors_.size() && bytes.size() < kStateChunkBytes) {
    const Buffer& source = tensors_[tensor_]->second;
    const size_t count = std::min(kStateChunkBytes - bytes.size(), source.size() - offset_);
    const size_t at = bytes.size();
    bytes.resize(at + count);
    std::copy_n(source.data() + offset_, count, bytes.data() + at);
    offset_ += count;
    if (offset_ < source.size()) break;
    ++tensor_;
    offset_ = 0;
  }
  if (bytes.empty()) return std::nullopt;
  return frame_of(kStateChunk, collective_, chunk_++, std::move(bytes));
}

std::string StateReceiver::take(const link::Frame& frame) {
  return frame.kind == kStateBegin ? begin(frame) : chunk(frame);
}

std::string StateReceiver::begin(const link::Frame& frame) {
  *this = StateReceiver();
  if (!frame.payload) return "a state without a description";
  const auto* text = reinterpret_cast<const char*>(frame.payload->data());
  const json document = json::parse(text, text + frame.payload->size(), nullptr, /*allow_exceptions=*/false);
  try {
    loaded_.step = Step(document.at("step"));
    loaded_.directory = "the state another worker sent";
    loaded_.state_json = document.at("state");
    history_ = document.at("history");
    if (!from_hex(document.at("digest").get<std::string>(), loaded_.digest)) return "a state without a digest";
    for (const auto& [name, list] : document.at("parts").items()) {
      checkpoint::TensorFile& file = loaded_.parts[name];
      for (const json& item : list) {
        const auto type = type_named(item.at("dtype"));
        if (!type) return "a state with a tensor of an unknown type";
        const auto added = file.tensors.emplace(item.at("name"), Array(*type, item.at("shape").get<sinew::Shape>()));
        if (!added.second) return "a state with two tensors of one name";
        tensors_.push_back(&added.first->second);
      }
    }
  } catch (const std::exception& error) {
    return std::string("a state whose description can not be read: ") + error.what();
  }
  collective_ = frame.collective;
  begun_ = true;
  skip_filled();
  return "";
}

std::string StateReceiver::chunk(const link::Frame& frame) {
  if (!begun_ || frame.collective != collective_ || frame.part != chunk_ || !frame.payload)
    return "a piece of a state out of order";
  ++chunk_;
  std::span<const std::byte> bytes(*frame.payload);
  while (!bytes.empty()) {
    if (tensor_ == tensors_.size()) return "a state with more bytes than it said";
    Buffer& into = tensors_[tensor_]->bytes;
    const size_t count = std::min(bytes.size(), into.size() - offset_);
    std::memcpy(into.data() + offset_, bytes.data(), count);
    bytes = bytes.subspan(count);
    offset_ += count;
    skip_filled();
  }
  return "";
}

void StateReceiver::skip_filled() {
  while (tensor_ < tensors_.size() && offset_ == tensors_[tensor_]->bytes.size()) {
    ++tensor_;
    offset_ = 0;
  }
}

checkpoint::Loaded StateReceiver::result() {
  begun_ = false;
  return std::move(loaded_);
}

}  // namespace sinew::group
