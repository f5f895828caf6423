// Writes a copy of a program's file with new values in some of its tensors.
//
// A replaced member keeps its size, so nothing in the file moves. The copy differs only in the bytes of the replaced
// members and in every place that holds one of their checksums. All other members are checked against their checksums
// while they are copied.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "program/files.h"
#include "program/weights.h"

namespace sinew::program {
namespace {

struct Change {
  std::string name;
  const StoredTensor* stored;
  const Array* array;
};
using Changes = std::map<std::string, std::vector<Change>>;  // the changes of each member

Changes changes_of(const Program& program, const std::vector<Replacement>& replacements) {
  Changes changes;
  std::map<std::string_view, int> seen;
  for (const Replacement& replacement : replacements) {
    SINEW_CHECK(replacement.array != nullptr, replacement.name);
    const std::string what = program.path + ": the tensor " + in_quotes(replacement.name);
    const auto found = program.weights.find(replacement.name);
    if (found == program.weights.end()) {
      throw Error("PROGRAM_BAD_REPLACEMENT", what + " cannot be replaced: the program has no weight of that name",
                  "compare the two models");
    }
    if (++seen[replacement.name] > 1) {
      throw Error("PROGRAM_BAD_REPLACEMENT", what + " is replaced twice", "give each tensor once");
    }
    const StoredTensor& stored = found->second;
    if (dtype_of(stored.dtype) != replacement.array->dtype) {
      throw Error("PROGRAM_BAD_REPLACEMENT",
                  what + " has the dtype " + std::string(name_of(stored.dtype)) + ", but its replacement has " +
                      std::string(name_of(replacement.array->dtype)),
                  "convert the replacement first");
    }
    if (stored.sizes != replacement.array->shape) {
      throw Error("PROGRAM_BAD_REPLACEMENT", what + " has another shape than its replacement",
                  "compare the two models");
    }
    changes[stored.member].push_back({replacement.name, &stored, replacement.array});
  }
  return changes;
}

// Remembers which elements of a member already have new bytes. This is needed only if tensors share bytes, or if a
// tensor repeats its elements.
class WrittenElements {
 public:
  explicit WrittenElements(size_t elements) : written_(elements) {}
  // Marks the element. Returns false if the element was already marked.
  bool mark(size_t element) {
    const bool before = written_[element];
    written_[element] = true;
    return !before;
  }

 private:
  std::vector<bool> written_;
};

void write_tensor(const std::string& path, const Change& change, WrittenElements* written,
                  std::vector<std::byte>& member) {
  const StoredTensor& stored = *change.stored;
  const size_t width = size_of(stored.dtype);
  const std::byte* const from = change.array->bytes.data();
  if (written == nullptr && is_dense(stored)) {
    if (const uint64_t bytes = dense_bytes(stored); bytes > 0)
      std::memcpy(member.data() + static_cast<size_t>(stored.offset) * width, from, bytes);
    return;
  }
  for_each_element(stored, [&](int64_t dense, int64_t element) {
    std::byte* const to = member.data() + static_cast<size_t>(element) * width;
    const std::byte* const value = from + static_cast<size_t>(dense) * width;
    if (written == nullptr || written->mark(static_cast<size_t>(element))) {
      std::memcpy(to, value, width);
    } else if (std::memcmp(to, value, width) != 0) {
      throw Error("PROGRAM_BAD_REPLACEMENT",
                  path + ": the new values of " + in_quotes(change.name) + " differ from others in the same bytes of " +
                      in_quotes(stored.member),
                  "give tensors that share memory the same values");
    }
  });
}

// Returns whether the tensor refers to one of its elements more than once. The answer is exact for all tensors that
// torch makes. For others it may be true although no element repeats.
bool repeats(const StoredTensor& stored) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // pairs of stride and size
  for (size_t d = 0; d < stored.sizes.size(); ++d) {
    if (stored.sizes[d] == 0) return false;
    if (stored.sizes[d] > 1) steps.emplace_back(stored.strides[d], stored.sizes[d]);
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

void apply(const std::string& path, const std::vector<Change>& changes, std::vector<std::byte>& member) {
  const bool alone = changes.size() == 1 && !repeats(*changes[0].stored);
  size_t narrowest = size_of(changes[0].stored->dtype);
  for (const Change& change : changes) narrowest = std::min(narrowest, size_of(change.stored->dtype));
  for (const Change& change : changes) {
    if (size_of(change.stored->dtype) != narrowest)
      throw Error("PROGRAM_BAD_REPLACEMENT",
                  path + ": tensors of different dtypes share member " + in_quotes(change.stored->member),
                  "replace one of them at a time");
  }
  WrittenElements written(alone ? 0 : member.size() / narrowest);
  for (const Change& change : changes) write_tensor(path, change, alone ? nullptr : &written, member);
}

class Rewriter {
 public:
  Rewriter(Disk& disk, const Program& program, const Changes& changes)
      : program_(program), changes_(changes), archive_(disk, program.path) {
    for (const auto& [name, change] : changes_) {
      const Member* member = archive_.find(name);
      const StoredTensor& stored = *change.front().stored;
      if (member == nullptr || member->begin != stored.begin || member->size != stored.member_bytes ||
          member->crc != stored.checksum) {
        throw Error("PROGRAM_FILE_CHANGED", program_.path + ": the file has changed since it was read",
                    "read it again");
      }
    }
  }

  void write(Disk::File& out) {
    for (const Member& member : archive_.members()) {
      const auto change = changes_.find(member.name);
      if (change == changes_.end())
        copy_member(member, out);
      else
        change_member(member, change->second, out);
    }
    copy(archive_.file().size(), out);
  }

 private:
  // Copies the file up to `end`, and writes the new checksums that lie in this range.
  void copy(uint64_t end, Disk::File& out) {
    const FileRange& file = archive_.file();
    file.read(at_, end - at_, [&](std::span<std::byte> piece) {
      constexpr uint64_t kCrcBytes = 4;
      auto crc = crcs_.lower_bound(at_ < kCrcBytes ? 0 : at_ - kCrcBytes + 1);
      for (; crc != crcs_.end() && crc->first < at_ + piece.size(); ++crc) {
        for (uint64_t i = 0; i < kCrcBytes; ++i) {
          const uint64_t offset = crc->first + i;
          if (offset >= at_ && offset - at_ < piece.size()) piece[offset - at_] = std::byte(crc->second >> (8 * i));
        }
      }
      out.write(piece);
      at_ += piece.size();
    });
  }

  void copy_member(const Member& member, Disk::File& out) {
    copy(member.begin, out);
    uint32_t crc = 0;
    archive_.file().read(member.begin, member.size, [&](std::span<std::byte> piece) {
      crc = crc32_of(piece, crc);
      out.write(piece);
    });
    if (crc != member.crc) refuse_checksum(program_.path, member.name);
    at_ = member.begin + member.size;
  }

  void change_member(const Member& member, const std::vector<Change>& changes, Disk::File& out) {
    std::vector<std::byte> bytes(member.size);
    archive_.file().read(member.begin, bytes);
    if (crc32_of(bytes) != member.crc) refuse_checksum(program_.path, member.name);
    apply(program_.path, changes, bytes);
    const uint32_t crc = crc32_of(bytes);
    for (const uint64_t offset : member.crc_offsets) crcs_[offset] = crc;
    copy(member.begin, out);
    out.write(bytes);
    at_ = member.begin + member.size;
  }

  const Program& program_;
  const Changes& changes_;
  const Archive archive_;
  uint64_t at_ = 0;                    // offset in the file up to which the copy is written
  std::map<uint64_t, uint32_t> crcs_;  // the new checksum for each offset in the file
};

}  // namespace

void write_program(Disk& disk, const Program& program, const std::vector<Replacement>& replacements,
                   const std::string& to) {
  const Changes changes = changes_of(program, replacements);
  Rewriter rewriter(disk, program, changes);
  write_durably(disk, to, [&](Disk::File& file) { rewriter.write(file); });
}

void write_program(const Program& program, const std::vector<Replacement>& replacements, const std::string& to) {
  write_program(system_disk(), program, replacements, to);
}

}  // namespace sinew::program
