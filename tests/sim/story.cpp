#include "story.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rundir/rundir.h"

namespace sinew::sim {
namespace {

using supervise::ChaosEvent;

constexpr int64_t kChaosEvents = 12, kTroubles = 8, kTroublesOfLeaders = 3;
constexpr uint64_t kMostChanges = 3;
constexpr int64_t kStops = 10;  // how often a leader is suspended in a story of two leaders
// most calls of the disk between the decision to suspend the leader and the call at which that happens
constexpr uint64_t kMostCalls = 60;
constexpr double kLongestStop = 8;     // seconds; after about two, the others go on without a suspended member
constexpr double kEverySeconds = 1.5;  // seconds between two events of the plan
constexpr double kEverySecondsOfLeaders = 6;
constexpr double kSlowSteps = 12;         // with Faults::leaders, a step takes this much longer than usual
constexpr double kPersonSeconds = 5;      // seconds between two looks of a person at the run
constexpr double kPatienceSeconds = 300;  // added to the time that the slowest worker would need for the run alone

// Returns the part of the shards that is audited. It is not 1 in a story in which memory changes: a member whose memory
// changed would be fenced, and the group would go on. But the judge expects that the group as a whole notices the
// change.
double audited_part(uint64_t seed, Faults faults) {
  if (faults == Faults::lies) return 1;
  const bool changes = faults == Faults::all || faults == Faults::changes;
  const double parts[] = {0, 0.3, changes ? 0.1 : 1};
  return parts[seed % 3];
}

// Returns whether the path is one that all writers share. Below .writers/, each writer changes only its own names.
bool is_of_the_run(const std::string& path) {
  return path.find(WriteFence::kDirectory) == std::string::npos;
}

}  // namespace

Story::Story(uint64_t seed, Faults faults)
    : seed_(seed), faults_(faults), scene_(seed), begins_with_(static_cast<int64_t>(1 + scene_.world.random.below(8))) {
  if (faults_ == Faults::two_leaders) begins_with_ = 2 + begins_with_ % 3;
  scene_.plan.job.cluster.audit = audited_part(seed, faults);
  if (faults == Faults::leaders) scene_.shard_seconds *= kSlowSteps;
  scene_.disk.before_write = [this](const std::string& path) { write_slowly(path); };
  scene_.disk.before_rename = [this](const std::string& path) { judge_lease(path); };
  scene_.disk.after_rename = [this](const std::string& from, const std::string& to) { judge_rename(from, to); };
  scene_.disk.after_write = [this](const std::vector<std::string>& names) { judge_write(names); };
  if (faults_ == Faults::two_leaders) scene_.disk.before_call = [this] { perhaps_stop(); };
}

// Returns the worker whose thread runs now, or null.
Worker* Story::running() const {
  const Fiber* const thread = Fiber::current();
  for (const auto& worker : run_.workers) {
    if (thread != nullptr && &thread->process() == &worker->process) return worker.get();
  }
  return nullptr;
}

// Lines are written in the step thread, so slow ones hold up the whole group.
void Story::write_slowly(const std::string& path) {
  if (Fiber::current() == nullptr || (faults_ != Faults::two_leaders && path.find(".jsonl") != std::string::npos))
    return;
  constexpr double kStall = 0.02;
  const bool stalls = scene_.world.chance(kStall);
  Fiber::current()->sleep(scene_.world.random.uniform(0, stalls ? 1.5 : 0.01));
}

// A story of two leaders may suspend the leader between the check of its lease and the rename. There, only the term of
// the lease is judged.
void Story::judge_lease(const std::string& path) {
  const Worker* const worker = running();
  if (worker == nullptr) return;
  const bool judged = faults_ != Faults::two_leaders;
  scene_.judge.effect(worker->pid, worker->leads() || !judged, judged ? worker->confirmed() : scene_.world.now(),
                      worker->lease_term(), path.substr(scene_.run_directory.size()));
}

void Story::judge_rename(const std::string& from, const std::string& to) {
  const Worker* const by = running();
  if (by == nullptr) return;
  int64_t newest = 0;
  for (const auto& worker : run_.workers) {
    if (worker->has_taken_over()) newest = std::max(newest, worker->number());
  }
  for (const std::string& path : {from, to}) {
    if (is_of_the_run(path)) scene_.judge.renames(by->number(), newest, path);
  }
}

void Story::judge_write(const std::vector<std::string>& names) {
  const Worker* const by = running();
  for (const std::string& path : names) {
    if (by != nullptr && is_of_the_run(path)) scene_.judge.appends(by->number(), path.substr(1));  // "/runs/..."
  }
}

// Suspends the leader before its call of the disk, once `calls_until_stop_` calls have passed.
void Story::perhaps_stop() {
  Worker* const worker = running();
  if (worker == nullptr || !worker->leads() || !calls_until_stop_ || (*calls_until_stop_)-- > 0) return;
  calls_until_stop_.reset();
  const double seconds = scene_.world.random.uniform(0.1, kLongestStop);
  scene_.world.say("-- process " + std::to_string(worker->pid) + " is stopped in a call of the disk for " +
                   std::to_string(seconds) + " s");
  worker->stop();
  // Others may lose their links to it for so long that the coordinator puts them out. These stories judge only the
  // writers.
  const auto disturb_all = [this] {
    for (const Worker* other : living()) scene_.judge.disturbed(other->pid);
  };
  disturb_all();
  scene_.world.after(seconds, [worker, disturb_all] {
    disturb_all();
    worker->go_on();
  });
  Fiber::current()->sleep(0);
}

void Story::begin_supervision() {
  supervisors_.push_back(std::make_unique<Supervisor>(scene_, run_, begins_with_));
}

double Story::disturb() {
  World& world = scene_.world;
  double end = 0;
  const bool leaders = faults_ == Faults::leaders;
  const double every = leaders ? kEverySecondsOfLeaders : kEverySeconds;
  for (const ChaosEvent& event : supervise::chaos_plan(seed_, begins_with_, kChaosEvents, every)) {
    end = 1 + event.at;
    const bool only_deaths = faults_ == Faults::changes || faults_ == Faults::lies || faults_ == Faults::two_leaders;
    if (only_deaths && event.kind != ChaosEvent::Kind::kill_worker) continue;
    world.after(1 + event.at, [this, event] { happens(event); });
  }
  if (faults_ == Faults::two_leaders) {
    for (int64_t i = 0; i < kStops; ++i)
      world.after(world.random.uniform(1, end), [this] { calls_until_stop_ = scene_.world.random.below(kMostCalls); });
    return end;
  }
  const bool changes = faults_ != Faults::without_changes && !leaders;
  for (uint64_t i = changes ? 1 + world.random.below(kMostChanges) : 0; i > 0; --i) {
    world.after(world.random.uniform(1, end), [this] {
      Worker* worker = anyone();
      if (worker != nullptr) faults_ == Faults::lies ? worker->lie() : worker->change_memory();
    });
  }
  if (faults_ == Faults::changes || faults_ == Faults::lies) return end;
  for (int64_t i = leaders ? kTroubles - kTroublesOfLeaders : 0; i < kTroubles; ++i) {
    using Kind = Trouble::Kind;
    // A kind with more entries is drawn more often. Faults that end all workers have one entry, so that they are rare.
    const Kind kinds[] = {Kind::cut_links,       Kind::cut_links,   Kind::cut_coordinator, Kind::cut_coordinator,
                          Kind::reset_link,      Kind::request,     Kind::request,         Kind::request,
                          Kind::all_workers_die, Kind::machine_dies};
    const Trouble trouble{world.random.uniform(1, end), kinds[world.random.below(std::size(kinds))]};
    world.after(trouble.at, [this, trouble] { happens(trouble); });
  }
  if (!leaders) return end;
  for (uint64_t i = 2 + world.random.below(3); i > 0; --i) {
    using Kind = Trouble::Kind;
    const Kind kinds[] = {Kind::lose_supervisor,    Kind::lose_supervisor,  Kind::lose_supervisor,
                          Kind::strand_coordinator, Kind::pause_supervisor, Kind::lose_lock,
                          Kind::lose_lock};
    const Trouble trouble{world.random.uniform(1, end / 3), kinds[world.random.below(std::size(kinds))]};
    world.after(trouble.at, [this, trouble] { happens(trouble); });
  }
  look_as_a_person();
  return end;
}

void Story::play() {
  World& world = scene_.world;
  make_directories_durably(scene_.disk, scene_.run_directory);
  begin_supervision();
  const double end = disturb();
  double alone = 0;
  for (int64_t collective = 0; collective < scene_.job.numbers.collectives(); ++collective)
    alone += static_cast<double>(scene_.job.numbers.shape(collective).shards) * scene_.shard_seconds * kMostPace *
             kMostOfUsual;
  world.run(end + alone + kPatienceSeconds * (faults_ == Faults::leaders ? 5 : 1));
  if (!world.stopped()) scene_.judge.complain("the run does not end");
  check_the_end();
}

void Story::check_the_end() {
  if (!scene_.judge.ended_well()) return;
  std::vector<std::pair<int64_t, Digest>> ledger;
  for (const nlohmann::json& line : lines_of(rundir::kLedgerFile)) {
    Digest digest;
    if (!from_hex(line.at("digest").get<std::string>(), digest)) scene_.judge.complain("no digest: " + line.dump());
    ledger.emplace_back(line.at("step"), digest);
  }
  std::vector<std::pair<int64_t, std::string>> metrics;
  for (const nlohmann::json& line : lines_of(rundir::kMetricsFile)) {
    std::string names;
    for (const auto& [name, value] : line.items()) names += name.starts_with("throughput/") ? "" : name + " ";
    metrics.emplace_back(line.at("step"), names);
  }
  const auto newest = checkpoint::load_newest(scene_.disk, rundir::file_in(scene_.run_directory, rundir::kCheckpoints));
  scene_.judge.ends_with(ledger, newest.loaded ? std::optional(newest.loaded->step) : std::nullopt, metrics);
}

std::vector<nlohmann::json> Story::lines_of(const char* name) {
  std::vector<nlohmann::json> lines;
  const std::string path = rundir::file_in(scene_.run_directory, name);
  std::istringstream text(scene_.disk.exists(path) ? read_text(scene_.disk, path) : "");
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<Worker*> Story::living() const {
  std::vector<Worker*> found;
  for (const auto& worker : run_.workers) {
    if (!worker->end() && worker->is_told()) found.push_back(worker.get());
  }
  return found;
}

Worker* Story::anyone() {
  const auto there = living();
  return there.empty() ? nullptr : there[scene_.world.random.below(there.size())];
}

// Carries out an event of the plan that `sinew chaos` makes from the same seed.
void Story::happens(const ChaosEvent& event) {
  const auto there = living();
  if (there.empty()) return;
  scene_.world.say("-- " + to_string(event));
  const auto picked = [&](uint64_t offset) { return there[(event.pick + offset) % there.size()]; };
  switch (event.kind) {
    case ChaosEvent::Kind::kill_worker: return picked(0)->kill();
    case ChaosEvent::Kind::kill_two: picked(0)->kill(); return picked(1)->kill();
    case ChaosEvent::Kind::pause_worker:
      picked(0)->stop();
      return scene_.world.after(event.seconds, [worker = picked(0)] { worker->go_on(); });
    case ChaosEvent::Kind::kill_coordinator: return kill_coordinator();
    case ChaosEvent::Kind::scale:
      return supervisors_.back()->post("/v2/scale", nlohmann::json({{"workers", event.workers}}).dump(),
                                       [](const auto&) {});
  }
}

void Story::happens(const Trouble& trouble) {
  switch (trouble.kind) {
    case Trouble::Kind::cut_links: return cut_links();
    case Trouble::Kind::reset_link: return reset_link();
    case Trouble::Kind::machine_dies: return machine_dies();
    case Trouble::Kind::request: return request();
    case Trouble::Kind::lose_supervisor:
    case Trouble::Kind::strand_coordinator:
    case Trouble::Kind::pause_supervisor:
    case Trouble::Kind::lose_lock: return lose(trouble.kind);
    case Trouble::Kind::all_workers_die:
      scene_.world.say("-- all workers die");
      for (Worker* worker : living()) worker->kill();
      return;
    case Trouble::Kind::cut_coordinator:
      if (Worker* worker = anyone()) {
        scene_.judge.disturbed(worker->pid);
        const double seconds = scene_.world.random.uniform(0.2, 4);
        scene_.world.say("-- process " + std::to_string(worker->pid) + " does not reach the coordinator for " +
                         std::to_string(seconds) + " s");
        scene_.post.cut(worker->pid, seconds);
      }
      return;
  }
}

// Cuts the links between one worker and some others: from the worker, to the worker, or both.
void Story::cut_links() {
  Worker* one = anyone();
  if (one == nullptr) return;
  RandomStream& random = scene_.world.random;
  const double seconds = random.uniform(0.1, 8);
  const uint64_t ways = 1 + random.below(3);
  for (Worker* other : living()) {
    if (other == one || random.below(2) == 0) continue;
    scene_.judge.disturbed(one->pid);
    scene_.judge.disturbed(other->pid);
    scene_.world.say("-- links between processes " + std::to_string(one->pid) + " and " + std::to_string(other->pid) +
                     " carry nothing " +
                     (ways == 1   ? "forth"
                      : ways == 2 ? "back"
                                  : "at all") +
                     " for " + std::to_string(seconds) + " s");
    if ((ways & 1) != 0) scene_.network.cut(one->address(), other->address(), seconds);
    if ((ways & 2) != 0) scene_.network.cut(other->address(), one->address(), seconds);
  }
}

void Story::reset_link() {
  Worker *one = anyone(), *other = anyone();
  if (one == other) return;
  scene_.judge.disturbed(one->pid);
  scene_.judge.disturbed(other->pid);
  scene_.world.say("-- the link between processes " + std::to_string(one->pid) + " and " + std::to_string(other->pid) +
                   " breaks");
  scene_.network.reset(one->address(), other->address());
}

// The machine loses power: all processes end, and the disk loses bytes that were not synced, except lines of the
// ledger, the metrics and the log. A little later, a new supervisor starts the run again.
void Story::machine_dies() {
  scene_.world.say("-- the machine dies");
  scene_.files.last_view.reset();
  for (const auto& supervisor : supervisors_) supervisor->die();
  for (const auto& worker : run_.workers) worker->kill();
  for (const auto& office : scene_.offices) office->die();
  scene_.post.office.reset();
  for (const char* name : {rundir::kLedgerFile, rundir::kMetricsFile, rundir::kLogFile}) {
    const std::string path = rundir::file_in(scene_.run_directory, name);
    if (scene_.disk.exists(path)) scene_.disk.settle(path);
  }
  scene_.disk.crash(RandomKey{scene_.world.random.bits64()});
  scene_.world.after(scene_.world.random.uniform(0.1, 1), [this] {
    if (!supervisors_.back()->process.alive() && scene_.files.lock_is_free(scene_.world.now())) begin_supervision();
  });
}

// A coordinator that was elected dies with the process of its member.
void Story::kill_coordinator() {
  for (const auto& worker : run_.workers) {
    if (worker->coordinates()) return worker->kill();
  }
  if (scene_.post.office) scene_.post.office->die();
}

void Story::lose(Trouble::Kind kind) {
  using Kind = Trouble::Kind;
  World& world = scene_.world;
  Supervisor* const supervisor = supervisors_.back().get();
  if (!supervisor->process.alive() || supervisor->process.stopped()) return;
  for (const auto& worker : run_.workers) scene_.judge.disturbed(worker->pid);
  const std::shared_ptr<Office> office = supervisor->office();
  if (kind == Kind::lose_supervisor) {
    world.say("-- the supervisor and its coordinator die");
    supervisor->die();
    if (office) office->die();
    for (Worker* worker : living()) {
      if (world.chance(0.25)) world.after(world.random.uniform(0, 0.3), [worker] { worker->kill(); });
    }
    return;
  }
  const double seconds = world.random.uniform(0.5, kind == Kind::strand_coordinator ? 60 : 40);
  const bool strands = kind == Kind::strand_coordinator;
  world.say(std::string("-- the supervisor ") + (strands ? "dies" : "is stopped") +
            ", and its coordinator is stopped for " + std::to_string(seconds) + " s" +
            (kind == Kind::lose_lock ? "; the lock is lost" : ""));
  if (kind == Kind::lose_lock) scene_.files.lock_holder = nullptr;
  if (strands) {
    supervisor->die();
  } else {
    supervisor->process.stop();
  }
  if (office) office->process.stop();
  world.after(seconds, [this, supervisor, office] {
    scene_.world.say("-- they go on");
    if (office && office->process.alive()) office->process.go_on();
    if (supervisor->process.alive()) supervisor->process.go_on();
  });
}

// A person resumes the run when no process leads it. The person does not know whether workers live.
void Story::look_as_a_person() {
  World& world = scene_.world;
  world.after(kPersonSeconds, [this] { look_as_a_person(); });
  if (scene_.files.exit_code || !scene_.files.lock_is_free(world.now())) return;
  const bool supervised = supervisors_.back()->process.alive();
  if (!world.chance(supervised || !living().empty() ? 0.03 : 1)) return;
  world.say("-- a person resumes the run");
  begin_supervision();
}

void Story::request() {
  RandomStream& random = scene_.world.random;
  nlohmann::json body;
  switch (random.below(4)) {
    case 0: body = {{"kind", "learning_rate"}, {"value", random.uniform(0.1, 2)}}; break;
    case 1: body = {{"kind", "batch_size"}, {"value", static_cast<double>(1 + random.below(100))}}; break;
    case 2: body = {{"kind", "evaluate"}}; break;
    default: body = {{"kind", "checkpoint"}};
  }
  scene_.world.say("-- a person asks for " + body.dump());
  supervisors_.back()->post("/v2/control", body.dump(), [](const auto&) {});
}

}  // namespace sinew::sim
