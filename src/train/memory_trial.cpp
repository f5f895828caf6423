#include "train/memory_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/resident_memory.h"
#include "train/engine.h"
#include "train/state.h"

namespace sinew::train {
namespace {

// The child writes this to the pipe, then the text of the error.
struct Record {
  bool ended_early = false;
  int64_t bytes = 0, file_bytes = 0;
};

// A step of the job with fewer shards, so that it takes little time, but with as many samples in each.
spec::Job short_step_of(spec::Job job, StepShape shape, const data::DataInfo& info) {
  auto& trainer = job.trainer;
  const int64_t samples = quotient_up(trainer.batch_size, shape.shards);
  const int64_t shards = std::min(shape.shards, 2 * shape.lanes);
  const int64_t evaluated = trainer.eval_batch_size > 0 ? trainer.eval_batch_size : trainer.batch_size;
  const int64_t part =
      data::evaluation_part(std::max(info.val_size, info.test_size), evaluated, shape.shards, kMaxTreeLeaves);
  trainer.eval_batch_size = part * shards;
  trainer.batch_size = std::min(trainer.batch_size, samples * shards);
  trainer.batch_size_ramp.clear();
  trainer.drop_last = false;
  trainer.shards = shards;
  trainer.lanes = shape.lanes;
  job.cluster.audit = 0;
  return job;
}

// What the reducer holds of a step with so many shards (make_local_reducer).
int64_t held_gradients(int64_t gradient, int64_t shards, int64_t lanes) {
  if (gradient * shards <= kHeldGradientBytes) return gradient * shards;
  int64_t levels = 1;
  for (int64_t reached = 4; reached < shards; reached *= 4) ++levels;
  return gradient * std::min(shards, lanes + 3 * levels);
}

// What loaders keep ready for this many samples of a step and the two after it, or for an evaluation.
int64_t loaded_ahead(const spec::Job& job, const data::Dataset& dataset, int64_t batch_size, int64_t evaluated) {
  if (dataset.in_memory()) return 0;
  constexpr int64_t kNumber = 8;  // bytes, at most
  const data::DataInfo& info = dataset.info();
  const int64_t sample = kNumber * (element_count(info.input_shape) + element_count(info.target_shape));
  return std::min(job.data.prefetch_bytes, std::max(3 * batch_size, evaluated) * sample);
}

void evaluate_some(Engine& engine, const data::DataInfo& info, int64_t lanes) {
  if (info.val_size + info.test_size == 0) return;
  std::atomic<int64_t> begun{0};
  try {
    engine.evaluate(info.val_size >= info.test_size ? data::Split::val : data::Split::test,
                    [&] { return begun++ >= 2 * lanes; });
  } catch (const loop::OutOfTime&) {
  }
}

Record measure(const TrialOptions& options) {
  const data::DataInfo& info = options.dataset->info();
  const StepShape shape = options.shape;
  const spec::Job job = short_step_of(options.job, shape, info);
  StageTimer stages(shape.lanes, system_clock().monotonic_seconds(), system_clock());
  data::Prefetcher prefetcher(*options.dataset, job.trainer.seed, *job.data.prefetch_threads, job.data.prefetch_bytes);
  const auto reducer = make_local_reducer();
  Engine engine(EngineOptions{
      .job = job, .dataset = options.dataset, .prefetcher = &prefetcher, .reducer = reducer.get(), .stages = &stages});
  engine.step(0.0, /*want_norm=*/false);
  const checkpoint::OwnedSnapshot copy = train::snapshot(engine.state(), {}, &engine.lanes());
  engine.step(0.0, /*want_norm=*/false);
  evaluate_some(engine, info, shape.lanes);
  int64_t gradient = 0;
  for (const torch::Tensor& one : engine.gradients()) gradient += static_cast<int64_t>(one.nbytes());
  const int64_t more =
      held_gradients(gradient, shape.shards, shape.lanes) - held_gradients(gradient, *job.trainer.shards, shape.lanes);
  const int64_t ahead =
      loaded_ahead(job, *options.dataset, options.job.trainer.batch_size, std::max(info.val_size, info.test_size)) -
      loaded_ahead(job, *options.dataset, job.trainer.batch_size, 0);
  const ResidentMemory memory = resident_memory();
  return {.bytes = memory.peak - memory.files + std::max<int64_t>(0, more) + std::max<int64_t>(0, ahead),
          .file_bytes = memory.files};
}

void write_text(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t done = ::write(file, text.data(), text.size());
  ::close(file);
}

// RLIMIT_DATA counts what is reserved, which is more than what is resident: stacks of threads, and what an allocator
// keeps for later. So a trial that nearly needs most_bytes may end early, but none ever exceeds them: a group may be
// set up so that the kernel ends all of its processes together.
void limit_memory(const TrialOptions& options) {
  write_text("/proc/self/oom_score_adj", "1000");
  const ResidentMemory now = resident_memory();
  rlimit limit{};
  ::getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min<rlim_t>(
      limit.rlim_max, static_cast<rlim_t>(now.data_space + std::max<int64_t>(0, options.most_bytes - now.held)));
  ::setrlimit(RLIMIT_DATA, &limit);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

// Whether the error means that memory ran out. An error in a shard has the text of the one that caused it.
bool ran_out(const std::exception& error) {
  const std::string_view text = error.what();
  const auto says = [&](const char* words) { return text.find(words) != std::string_view::npos; };
  return shortage_of(error) || says("bad_alloc") || says("not enough memory") || says("allocate memory") ||
         says("Resource temporarily unavailable");  // a thread whose stack found no room
}

[[noreturn]] void run_trial(const TrialOptions& options, int output, pid_t parent) {
  forget_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  limit_memory(options);
  Record record;
  std::string error;
  try {
    record = measure(options);
  } catch (const std::exception& failed) {
    record = {};
    record.ended_early = ran_out(failed);
    constexpr size_t kMostText = 2000;  // a pipe takes it without a reader
    if (!record.ended_early) error = std::string(failed.what()).substr(0, kMostText);
    if (!record.ended_early && error.empty()) error = "?";
  } catch (...) {
    error = "?";
  }
  std::string text(reinterpret_cast<const char*>(&record), sizeof record);
  text += error;
  const bool written = ::write(output, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::_exit(written ? 0 : 1);  // destructors would only take time
}

// Reads what the child writes until it ends. Returns why it did not wait for that. Ends the child if it holds too much.
TrialResult::End read_all(int input, pid_t child, const TrialOptions& options, std::string& text) {
  const std::string status = "/proc/" + std::to_string(child) + "/status";
  for (;;) {
    if (options.stop_signals != nullptr && options.stop_signals->load() > 0) return TrialResult::End::stopped;
    if (system_clock().monotonic_seconds() > options.ends_at) return TrialResult::End::too_long;
    pollfd waits{input, POLLIN, 0};
    constexpr int kLookMilliseconds = 20;
    if (::poll(&waits, 1, kLookMilliseconds) <= 0) {
      if (resident_memory(kernel_text(status)).held > options.most_bytes) ::kill(child, SIGKILL);
      continue;
    }
    char part[4096];
    const ssize_t count = ::read(input, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return TrialResult::End::measured;
    text.append(part, static_cast<size_t>(count));
  }
}

}  // namespace

TrialResult try_memory(const TrialOptions& options) {
  TrialResult result{.end = TrialResult::End::impossible, .trial = {.shape = options.shape}};
  if (process_row(::getpid()).threads != 1) return result;  // the child would have only one of them
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return result;
  const pid_t self = ::getpid(), child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run_trial(options, ends[1], self);
  }
  ::close(ends[1]);
  std::string text;
  if (child > 0) result.end = read_all(ends[0], child, options, text);
  ::close(ends[0]);
  if (child < 0) return result;
  if (result.end != TrialResult::End::measured) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // A signal for the whole group of processes has also ended the child.
  if (options.stop_signals != nullptr && options.stop_signals->load() > 0) result.end = TrialResult::End::stopped;
  if (result.end != TrialResult::End::measured) return result;
  if (text.size() < sizeof(Record)) {
    // Code that does not expect an allocation to fail ends by other signals than SIGKILL.
    result.trial.ended_early = WIFSIGNALED(status);
    if (!result.trial.ended_early) result.trial.error = "?";
    return result;
  }
  Record record;
  std::memcpy(&record, text.data(), sizeof record);
  result.trial.ended_early = record.ended_early;
  result.trial.bytes = record.bytes;
  result.trial.error = text.substr(sizeof record);
  result.file_bytes = record.file_bytes;
  return result;
}

}  // namespace sinew::train
