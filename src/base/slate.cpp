#include "base/slate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

namespace sinew {

// A cache line a lane; the words in the order of Word.
struct SlateLine {
  std::array<std::atomic<int64_t>, 8> words;
};

namespace {

enum Word { kNumber, kKind, kStep, kShard, kEpoch, kFirst, kCount };

constexpr int kMostLanes = 256;  // further ones note nothing
constexpr size_t kBytes = kMostLanes * sizeof(SlateLine);
static_assert(sizeof(SlateLine) == 64 && std::atomic<int64_t>::is_always_lock_free);

SlateLine* mapped(int file) {
  void* bytes = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return bytes == MAP_FAILED ? nullptr : static_cast<SlateLine*>(bytes);
}

std::string samples_of(const Work& work) {
  const std::string last = std::to_string(work.first + work.count - 1);
  return work.count == 1 ? "sample " + last : "samples " + std::to_string(work.first) + " to " + last;
}

}  // namespace

std::string to_string(const Work& work) {
  const std::string step = "step " + std::to_string(work.step), number = std::to_string(work.shard);
  switch (work.kind) {
    case Work::Kind::nothing: return "nothing";
    case Work::Kind::computing:
      return step + ", shard " + number + " (" + samples_of(work) + " in the order of epoch " +
             std::to_string(work.epoch) + ")";
    case Work::Kind::evaluating: return "evaluation at " + step + ", piece " + number + " (" + samples_of(work) + ")";
    case Work::Kind::reducing: return step + ", adding up";
    case Work::Kind::updating: return step + ", the update";
    case Work::Kind::recording: return step + ", its records";
  }
  return "";
}

ChildSlate::ChildSlate() : file_(::memfd_create("slate", MFD_CLOEXEC)) {
  if (file_ >= 0 && ::ftruncate(file_, kBytes) == 0) lines_ = mapped(file_);
}

ChildSlate::~ChildSlate() {
  if (lines_ != nullptr) ::munmap(lines_, kBytes);
  if (file_ >= 0) ::close(file_);
}

ChildSlate::ChildSlate(ChildSlate&& other) noexcept
    : file_(std::exchange(other.file_, -1)), lines_(std::exchange(other.lines_, nullptr)) {}

std::string ChildSlate::path() const {
  return lines_ == nullptr ? "" : "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
}

std::vector<Noted> ChildSlate::read() const {
  std::vector<Noted> found;
  for (int lane = 0; lines_ != nullptr && lane < kMostLanes; ++lane) {
    const auto word = [&](Word which) { return lines_[lane].words[which].load(std::memory_order_acquire); };
    const int64_t kind = word(kKind), number = word(kNumber);
    if (number <= 0 || kind < 0 || kind > static_cast<int64_t>(Work::Kind::recording)) continue;
    const Work work = {
        static_cast<Work::Kind>(kind), word(kStep), word(kShard), word(kEpoch), word(kFirst), word(kCount)};
    found.push_back({lane, number, work});
  }
  return found;
}

Slate::Slate(const std::string& path) {
  const int file = path.empty() ? -1 : ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  struct stat facts {};
  if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == kBytes) lines_ = mapped(file);
  ::close(file);
}

Slate::~Slate() {
  if (lines_ != nullptr) ::munmap(lines_, kBytes);
}

// The kind goes first and comes back last: who dies in between was at nothing.
void Slate::note(int lane, const Work& work) {
  if (lines_ == nullptr || lane < 0 || lane >= kMostLanes) return;
  auto& words = lines_[lane].words;
  words[kKind].store(static_cast<int64_t>(Work::Kind::nothing), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  words[kNumber].store(words[kNumber].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  words[kStep].store(work.step, std::memory_order_relaxed);
  words[kShard].store(work.shard, std::memory_order_relaxed);
  words[kEpoch].store(work.epoch, std::memory_order_relaxed);
  words[kFirst].store(work.first, std::memory_order_relaxed);
  words[kCount].store(work.count, std::memory_order_relaxed);
  words[kKind].store(static_cast<int64_t>(work.kind), std::memory_order_release);
}

}  // namespace sinew
