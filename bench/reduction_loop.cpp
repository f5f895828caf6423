// Measures the collectives of a group of two processes that do nothing else. The time is compared with that of Gloo's
// all-reduce of as many bytes.
//
// Usage: reduction_loop RANK FOLDER FLOATS SECONDS. RANK: 0 or 1. FOLDER: where the two processes exchange their
// addresses. Rank 0 prints the median duration of a collective in milliseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "group/group.h"

namespace {

using namespace sinew;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Writes the file under another name and renames it, so the file appears complete.
void leave_address(const std::filesystem::path& place, const std::string& address) {
  const std::filesystem::path beside = place.string() + ".new";
  std::ofstream(beside) << address;
  std::filesystem::rename(beside, place);
}

std::string wait_for_address(const std::filesystem::path& place) {
  for (int i = 0; i < 3000; ++i) {
    std::string address;
    if (std::ifstream(place) >> address) return address;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Error("BENCH_FAILED", place.string() + " does not appear", "start the other rank");
}

cluster::View view_of(const std::vector<std::string>& addresses) {
  cluster::View view;
  view.generation = Generation(1);
  view.fresh = true;
  for (size_t i = 0; i < addresses.size(); ++i) {
    view.members.push_back({.id = MemberId(static_cast<int64_t>(i) + 1),
                            .address = addresses[i],
                            .share = 1,
                            .joining = false,
                            .donor = {}});
  }
  return view;
}

struct Rows {
  std::vector<float> mine, sum;
};

// Runs one collective. Returns true if it was the last one: the leader's control message says so.
bool one_collective(group::Group& group, Rows& rows, bool last) {
  group.begin(2, {static_cast<int64_t>(rows.mine.size())}, last ? "last" : "");
  while (const auto shard = group.next_shard()) group.deliver(*shard, group::Leaf{{rows.mine.data()}, "", nullptr});
  return group.finish({rows.sum.data()}).control_message == "last";
}

std::vector<double> collectives(group::Group& group, Rows& rows, double seconds) {
  std::vector<double> took;
  const auto begun = Clock::now();
  for (bool over = false; !over;) {
    const auto collective = Clock::now();
    over = one_collective(group, rows, seconds_since(begun) > seconds);
    took.push_back(1e3 * seconds_since(collective));
  }
  return took;
}

void run(int rank, const std::filesystem::path& folder, int64_t floats, double seconds) {
  link::TcpOptions options;
  options.job = "reduction";
  options.credentials = self_certified("reduction");
  group::Group* group = nullptr;
  link::Events events;
  events.on_frame = [&](MemberId from, link::Frame frame) { group->on_frame(from, std::move(frame)); };
  events.on_lost = [&](MemberId, const std::string& why) { group->fence(why); };
  group::GroupOptions group_options;
  group_options.merge = [](std::string_view, std::string_view) { return std::string(); };
  std::unique_ptr<group::Group> engine;
  const auto links = link::tcp_links(options, events);
  const MemberId me(rank + 1);
  links->set_identity(me);
  engine = std::make_unique<group::Group>(me, *links, group_options, system_clock());
  group = engine.get();
  leave_address(folder / std::to_string(rank), links->address());
  group->adopt(view_of({wait_for_address(folder / "0"), wait_for_address(folder / "1")}));
  group->start_at(0, {});
  Rows rows{std::vector<float>(static_cast<size_t>(floats), 1.0F), std::vector<float>(static_cast<size_t>(floats))};
  auto took = collectives(*group, rows, seconds);
  if (rows.sum.front() != 2.0F || rows.sum.back() != 2.0F) throw Error("BENCH_FAILED", "the sum is wrong", "");
  took.erase(took.begin(), took.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(took.size() / 2, 5)));
  std::sort(took.begin(), took.end());
  if (rank == 0) std::printf("%.4f\n", took[took.size() / 2]);
  // The last frames to the other process may still be in flight.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("usage: reduction_loop RANK FOLDER FLOATS SECONDS\n", stderr), 2;
  try {
    run(std::stoi(argv[1]), argv[2], std::stoll(argv[3]), std::stod(argv[4]));
  } catch (const std::exception& trouble) {
    return std::fprintf(stderr, "%s\n", trouble.what()), 1;
  }
  return 0;
}
