#include "cluster/election.h"

#include <algorithm>

#include "cluster/membership.h"

namespace sinew::cluster {

ElectionStep next_election_step(const Candidate& candidate, const ElectionOptions& options) {
  if (candidate.out) return {false, "this member's part in the run is over"};
  const ViewMember* const entry = candidate.view ? candidate.view->find(candidate.me) : nullptr;
  if (entry == nullptr || entry->joining) return {false, "this member does not compute in the newest view it knows"};
  const auto computing = candidate.view->computing();
  const bool leads = candidate.view->leader() == candidate.me;
  const auto place = leads ? 0 : std::ranges::find(computing, candidate.me) - computing.begin();
  const double delay = std::min(options.most_delay_seconds, options.delay_seconds * static_cast<double>(place));
  const double waited = std::min(candidate.unled_seconds, candidate.same_file_seconds);
  const double left = options.wait_seconds + delay - waited;
  if (left > 0) return {false, "it waits " + seconds_text(left) + " more for a coordinator"};
  return {true, "no coordinator has answered for " + seconds_text(candidate.unled_seconds)};
}

std::string why_not_last(const RunRecord& record, MemberId me) {
  if (record.info && record.info->exit_code)
    return "the run has ended with exit code " + std::to_string(*record.info->exit_code);
  if (record.info && joined_by_url(*record.info)) return "";  // the directory is this worker's own
  if (!record.view) return "the run directory has no view.json: another attempt of the run has begun";
  if (record.view->dissolved) return "the group was ended: " + record.view->going_back.why;
  const ViewMember* const found = record.view->find(me);
  if (found != nullptr && !found->joining) return "";
  return "by view.json the run went on without this worker";
}

std::string why_not_elected(const Candidate& candidate, const RunRecord& record) {
  if (!record.info) return "coordinator.json is missing or cannot be read";
  if (joined_by_url(*record.info)) return "this worker joined by a URL: its directory is not the run's directory";
  if (record.info->secret != candidate.secret) return "coordinator.json has the secret of another run";
  return why_not_last(record, candidate.me);
}

}  // namespace sinew::cluster
