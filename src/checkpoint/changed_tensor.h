// For tests: makes a checkpoint like that of a machine whose memory changed after the digest of the state was computed.
#pragma once

#include <algorithm>
#include <string>

#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {

// Replaces the step directory by one in which a bit of a tensor of `part` differs. Its manifest fits its files.
inline void change_a_tensor(Disk& disk, const std::string& directory, const std::string& part = "model") {
  Loaded loaded = load(disk, directory).value();
  Array& changed = std::ranges::find_if(loaded.parts.at(part).tensors, [](const auto& one) {
                     return one.second.bytes.size() > 0;
                   })->second;
  changed.bytes.data()[0] ^= std::byte{1};
  Snapshot snapshot{loaded.step, {}, loaded.state_json, loaded.digest};
  for (const auto& [name, file] : loaded.parts) {
    for (const auto& [tensor, array] : file.tensors)
      snapshot.parts[name].push_back(
          {tensor, array.dtype, array.shape, std::span<const std::byte>(array.bytes.data(), array.bytes.size())});
  }
  disk.remove_all(directory);
  save(disk, directory.substr(0, directory.rfind('/')), snapshot, 0);
}

}  // namespace sinew::checkpoint
