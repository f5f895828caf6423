// Measures two members of one process that are connected over TCP on loopback: the round-trip time of a small frame,
// and the rate of large frames.
#include <benchmark/benchmark.h>

#include <condition_variable>
#include <mutex>

#include "link/link.h"

namespace sinew::link {
namespace {

// Counts frames. Sends each frame back at once if `echo`.
class End {
 public:
  End(int64_t id, bool echo) : echo_(echo) {
    TcpOptions options;
    options.job = "bench";
    options.credentials = self_certified("bench");
    links_ = tcp_links(options, {[this](MemberId from, Frame frame) { arrived(from, std::move(frame)); },
                                 [](MemberId, const std::string&) {}});
    open_ = links_.get();
    links_->set_identity(MemberId(id));
  }
  Links& links() { return *links_; }
  void await(int64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }

 private:
  void arrived(MemberId from, Frame frame) {
    if (echo_) open_->send(from, std::move(frame));
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  const bool echo_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t count_ = 0;
  std::unique_ptr<Links> links_;
  Links* open_ = nullptr;
};

void run(benchmark::State& state, bool echo) {
  End a(1, false), b(2, echo);
  a.links().connect({{MemberId(2), b.links().address()}});
  b.links().connect({{MemberId(1), a.links().address()}});
  const auto bytes = static_cast<size_t>(state.range(0));
  Frame frames[2];  // used in turn: links compute the checksum of a payload once if it is sent twice in a row
  for (Frame& frame : frames) {
    if (bytes > 0) frame.payload = std::make_shared<Bytes>(bytes);
  }
  int64_t count = 0;
  for (auto _ : state) {
    a.links().send(MemberId(2), frames[count % 2]);
    (echo ? a : b).await(++count);
  }
  state.SetBytesProcessed(count * static_cast<int64_t>(bytes) * (echo ? 2 : 1));
}

void PingPong(benchmark::State& state) {
  run(state, true);
}
void OneWay(benchmark::State& state) {
  run(state, false);
}

BENCHMARK(PingPong)->Arg(0)->Arg(4096)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(OneWay)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sinew::link
