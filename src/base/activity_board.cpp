#include "base/activity_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/printable.h"

namespace sinew {

// One cache line for each lane. SlotWord is the index into `words`.
struct LaneSlot {
  std::array<std::atomic<int64_t>, 8> words;
};

namespace {

enum SlotWord { kSequence, kKind, kStep, kShard, kEpoch, kFirst, kCount };

constexpr int kMostLanes = 256;  // posts of further lanes are dropped
constexpr size_t kLaneBytes = kMostLanes * sizeof(LaneSlot);
// Two texts follow the lanes: the error and its hint. Each ends with a zero byte. A text is present if its first byte
// is not 0.
constexpr size_t kTextBytes = 2048;
constexpr size_t kBytes = kLaneBytes + 2 * kTextBytes;
static_assert(sizeof(LaneSlot) == 64 && std::atomic<int64_t>::is_always_lock_free);

LaneSlot* mapped(int file) {
  void* bytes = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return bytes == MAP_FAILED ? nullptr : static_cast<LaneSlot*>(bytes);
}

char* text_of(LaneSlot* lanes, size_t index) {
  return reinterpret_cast<char*>(lanes) + kLaneBytes + index * kTextBytes;
}

// The supervisor reads the text only after the worker has ended. The worker may die while it writes, so the first byte,
// which marks the text as present, is written last.
void put_text(char* place, std::string text) {
  text = printable(text.substr(0, text.find('\n')));
  text.resize(std::min(text.size(), kTextBytes - 1));
  if (text.empty()) return;
  std::memcpy(place + 1, text.c_str() + 1, text.size());
  std::atomic_thread_fence(std::memory_order_release);
  *place = text[0];
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

ChildActivityBoard::ChildActivityBoard() : file_(::memfd_create("activity", MFD_CLOEXEC)) {
  if (file_ >= 0 && ::ftruncate(file_, kBytes) == 0) lanes_ = mapped(file_);
}

ChildActivityBoard::~ChildActivityBoard() {
  if (lanes_ != nullptr) ::munmap(lanes_, kBytes);
  if (file_ >= 0) ::close(file_);
}

ChildActivityBoard::ChildActivityBoard(ChildActivityBoard&& other) noexcept
    : file_(std::exchange(other.file_, -1)), lanes_(std::exchange(other.lanes_, nullptr)) {}

std::string ChildActivityBoard::path() const {
  return lanes_ == nullptr ? "" : "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
}

std::vector<LaneActivity> ChildActivityBoard::read() const {
  std::vector<LaneActivity> found;
  for (int lane = 0; lanes_ != nullptr && lane < kMostLanes; ++lane) {
    const auto word = [&](SlotWord which) { return lanes_[lane].words[which].load(std::memory_order_acquire); };
    const int64_t kind = word(kKind), sequence = word(kSequence);
    if (sequence <= 0 || kind < 0 || kind > static_cast<int64_t>(Work::Kind::recording)) continue;
    const Work work = {
        static_cast<Work::Kind>(kind), word(kStep), word(kShard), word(kEpoch), word(kFirst), word(kCount)};
    found.push_back({lane, sequence, work});
  }
  return found;
}

std::optional<PostedError> ChildActivityBoard::error() const {
  if (lanes_ == nullptr || *text_of(lanes_, 0) == '\0') return std::nullopt;
  const auto text = [&](size_t index) {
    const char* place = text_of(lanes_, index);
    return printable({place, ::strnlen(place, kTextBytes)});  // the child may have written anything
  };
  return PostedError{text(0), text(1)};
}

ActivityBoard::ActivityBoard(const std::string& path) {
  const int file = path.empty() ? -1 : ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  struct stat facts {};
  if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == kBytes) lanes_ = mapped(file);
  ::close(file);
}

ActivityBoard::~ActivityBoard() {
  if (lanes_ != nullptr) ::munmap(lanes_, kBytes);
}

void ActivityBoard::post(const PostedError& error) {
  if (lanes_ == nullptr) return;
  put_text(text_of(lanes_, 1), error.hint);
  put_text(text_of(lanes_, 0), error.what);
}

// Sets the kind to `nothing` first and to its new value last. If the worker dies between the two stores, the board
// shows no half-written work.
void ActivityBoard::post(int lane, const Work& work) {
  if (lanes_ == nullptr || lane < 0 || lane >= kMostLanes) return;
  auto& words = lanes_[lane].words;
  words[kKind].store(static_cast<int64_t>(Work::Kind::nothing), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  words[kSequence].store(words[kSequence].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  words[kStep].store(work.step, std::memory_order_relaxed);
  words[kShard].store(work.shard, std::memory_order_relaxed);
  words[kEpoch].store(work.epoch, std::memory_order_relaxed);
  words[kFirst].store(work.first, std::memory_order_relaxed);
  words[kCount].store(work.count, std::memory_order_relaxed);
  words[kKind].store(static_cast<int64_t>(work.kind), std::memory_order_release);
}

}  // namespace sinew
