// A simulated worker that stands by, and the coordinator of the one that was elected. The decisions are those of
// cluster/election.h; the lock and the files of the run directory are simulated.
#include "worker.h"

namespace sinew::sim {
namespace {

constexpr double kLookSeconds = 0.2, kEndSeconds = 10;  // as in cluster::Standby
// seconds between two turns of the coordinator's loop, as in run_coordinator
constexpr double kTurnSeconds = 0.05;

}  // namespace

void Worker::stand_by() {
  later(kLookSeconds, [this] { stand_by(); });
  const double now = scene_.world.now();
  if (seen_coordinators_ != scene_.files.coordinators) {
    seen_coordinators_ = scene_.files.coordinators;
    same_since_ = now;
  }
  if (coordinates()) return;
  cluster::Candidate candidate;
  candidate.me = membership_->id();
  candidate.view = newest_;
  candidate.out = membership_->over() || membership_->is_out();
  candidate.unled_seconds = membership_->unled_seconds(now);
  candidate.same_file_seconds = now - same_since_;
  const cluster::ElectionStep step = cluster::next_election_step(candidate);
  if (!step.stand || !scene_.files.lock_is_free(now)) return;
  cluster::RunRecord record{cluster::CoordinatorInfo(), scene_.files.last_view};
  record.info->pid = 1;
  record.info->exit_code = scene_.files.exit_code;
  if (cluster::why_not_elected(candidate, record).empty()) lead(step.why);
}

void Worker::lead(const std::string& why) {
  scene_.world.say("process " + std::to_string(pid) + " is elected: " + why);
  scene_.judge.elects();
  scene_.files.lock_holder = &process;
  const auto options = scene_.begin_coordinator(std::ssize(newest_->computing()));
  seen_coordinators_ = scene_.files.coordinators;
  same_since_ = scene_.world.now();
  later(scene_.world.random.uniform(0.01, 0.2), [this, options] {
    elected_ = scene_.listen(pid, options);
    if (elected_) {
      watch_own_coordinator();
    } else if (scene_.files.lock_holder == &process) {
      scene_.files.lock_holder = nullptr;
    }
  });
}

void Worker::watch_own_coordinator() {
  if (!coordinates()) return;
  scene_.world.after(kTurnSeconds, [this] { watch_own_coordinator(); });
  if (elected_->process.stopped()) return;
  if (elected_->superseded()) return end_coordinator({kRejoin, 0});
  if (const auto code = elected_->over()) {
    if (std::exchange(scene_.files.exit_code, *code)) return end_coordinator({0, 0});
    scene_.judge.ends(static_cast<int>(*code));
    scene_.world.after(kEndSeconds, [this] { scene_.world.stop(); });
    return end_coordinator({0, 0});
  }
}

// If the run is over, the coordinator first tells the other members, and outlives the member for a moment.
void Worker::end_coordinator(ProcessEnd end) {
  if (scene_.files.lock_holder == &process && !coordinates()) scene_.files.lock_holder = nullptr;
  if (!coordinates()) return;
  if (!process.alive() && finished_ && end.signal == 0 && !scene_.files.exit_code) {
    scene_.files.lock_free_at = scene_.world.now() + kEndSeconds;
    return scene_.world.after(kEndSeconds, [office = elected_.get()] { office->die(); });
  }
  elected_->die();
  if (scene_.post.office == elected_) scene_.post.office.reset();
  if (scene_.files.lock_holder == &process) scene_.files.lock_holder = nullptr;
}

}  // namespace sinew::sim
