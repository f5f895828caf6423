// A program's file anew, with other numbers in some of its tensors.
//
// A replaced member has the size it had, so the file keeps its form to the byte: it is copied, with the members' new
// bytes and, in each place that repeats it, their new checksum. What is copied is proven by its checksum on the way.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "program/files.h"
#include "program/weights.h"

namespace sinew::program {
namespace {

struct Change {
  std::string name;
  const Stored* stored;
  const Array* array;
};
using Changes = std::map<std::string, std::vector<Change>>;  // by member

Changes changes_of(const Program& program, const std::vector<Replacement>& replacements) {
  Changes changes;
  std::map<std::string_view, int> seen;
  for (const Replacement& replacement : replacements) {
    SINEW_CHECK(replacement.array != nullptr, replacement.name);
    const std::string what = program.path + ": the tensor " + shown(replacement.name);
    const auto found = program.weights.find(replacement.name);
    if (found == program.weights.end())
      throw Error(what + " can not be replaced: the program has no weight of that name", "compare the two models");
    if (++seen[replacement.name] > 1) throw Error(what + " is replaced twice", "give each tensor once");
    const Stored& stored = found->second;
    if (dtype_of(stored.dtype) != replacement.array->dtype) {
      throw Error(what + " has the dtype " + std::string(name_of(stored.dtype)) + ", its replacement has " +
                      std::string(name_of(replacement.array->dtype)),
                  "convert it first");
    }
    if (stored.sizes != replacement.array->shape)
      throw Error(what + " has another shape than its replacement", "compare the two models");
    changes[stored.member].push_back({replacement.name, &stored, replacement.array});
  }
  return changes;
}

// Which elements of a member have been given new bytes: only needed where tensors or their elements share some.
class Written {
 public:
  explicit Written(size_t elements) : written_(elements) {}
  bool first(size_t element) {
    const bool before = written_[element];
    written_[element] = true;
    return !before;
  }

 private:
  std::vector<bool> written_;
};

void put(const std::string& path, const Change& change, Written* written, std::vector<std::byte>& member) {
  const Stored& stored = *change.stored;
  const size_t width = size_of(stored.dtype);
  const std::byte* const from = change.array->bytes.data();
  if (written == nullptr && is_dense(stored)) {
    if (const uint64_t bytes = dense_bytes(stored); bytes > 0)
      std::memcpy(member.data() + static_cast<size_t>(stored.offset) * width, from, bytes);
    return;
  }
  for_each_element(stored, [&](int64_t dense, int64_t place) {
    std::byte* const to = member.data() + static_cast<size_t>(place) * width;
    const std::byte* const value = from + static_cast<size_t>(dense) * width;
    if (written == nullptr || written->first(static_cast<size_t>(place))) {
      std::memcpy(to, value, width);
    } else if (std::memcmp(to, value, width) != 0) {
      throw Error(path + ": the new values of " + shown(change.name) +
                      " disagree with others that stand in the same bytes of " + shown(stored.member),
                  "tensors that share memory must be given the same numbers");
    }
  });
}

// Does the tensor name one of its elements more than once? Exact for what torch makes; a doubt counts as yes.
bool repeats(const Stored& stored) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, size
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
      throw Error(path + ": tensors of different dtypes share member " + shown(change.stored->member),
                  "replace one of them at a time");
  }
  Written written(alone ? 0 : member.size() / narrowest);
  for (const Change& change : changes) put(path, change, alone ? nullptr : &written, member);
}

class Rewriter {
 public:
  Rewriter(Disk& disk, const Program& program, const Changes& changes)
      : program_(program), changes_(changes), archive_(disk, program.path) {
    for (const auto& [name, change] : changes_) {
      const Member* member = archive_.find(name);
      const Stored& stored = *change.front().stored;
      if (member == nullptr || member->begin != stored.begin || member->size != stored.member_bytes ||
          member->crc != stored.checksum)
        throw Error(program_.path + ": changed since it was read", "read it again");
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
  // Copies up to `end`, with the new checksums that fall into it.
  void copy(uint64_t end, Disk::File& out) {
    const FileRange& file = archive_.file();
    file.read(at_, end - at_, [&](std::span<std::byte> piece) {
      constexpr uint64_t kCrcBytes = 4;
      auto crc = crcs_.lower_bound(at_ < kCrcBytes ? 0 : at_ - kCrcBytes + 1);
      for (; crc != crcs_.end() && crc->first < at_ + piece.size(); ++crc) {
        for (uint64_t i = 0; i < kCrcBytes; ++i) {
          const uint64_t place = crc->first + i;
          if (place >= at_ && place - at_ < piece.size()) piece[place - at_] = std::byte(crc->second >> (8 * i));
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
    for (const uint64_t place : member.crc_places) crcs_[place] = crc;
    copy(member.begin, out);
    out.write(bytes);
    at_ = member.begin + member.size;
  }

  const Program& program_;
  const Changes& changes_;
  const Archive archive_;
  uint64_t at_ = 0;                    // of the file: what is before has been written
  std::map<uint64_t, uint32_t> crcs_;  // place -> new checksum
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
