#include "cluster/membership_client.h"

#include "base/error.h"
#include "cluster/coordinator_connection.h"
#include "cluster/messages.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

// Returns whether other members wait for this change.
bool is_urgent(const MemberReport& before, const MemberReport& after) {
  const auto generation = [](const MemberReport& report) {
    return report.view ? report.view->generation : Generation();
  };
  return before.phase != after.phase || generation(before) != generation(after) || before.lost != after.lost ||
         before.wrong != after.wrong || before.finished != after.finished ||
         before.taken_requests != after.taken_requests || before.dissolve != after.dissolve;
}

Introduction introduction_of(const ClientOptions& options, const std::string& proof) {
  return {options.address, options.host, options.pid, options.identity, proof};
}

}  // namespace

std::string MembershipClient::join_request() const {
  return to_json(JoinRequest{introduction_of(options_, ""), incarnation_, options_.key});
}

bool MembershipClient::joined(const http::Response& response, double now) {
  if (response.status >= 500) return false;
  if (response.status != 200) {
    const Error refusal = error_in(response);
    // The coordinator had admitted this member and fenced it, before the answer to an earlier try came. The member has
    // computed nothing yet, so it joins as another incarnation.
    if (refusal.code == kMemberFenced) {
      incarnation_ = name_ + "-" + std::to_string(++fenced_joins_);
      return false;
    }
    // Another try with the same token is in vain, so the program ends as after a mistake on its command line.
    if (refusal.code == kTokenExpired || refusal.code == kTokenRevoked)
      throw UsageError(refusal.code, refusal.what(), refusal.hint);
    throw refusal;
  }
  const auto reply = join_reply_of(response.body);
  if (!reply || reply->term < term_ || (options_.key && !reply->certificate)) return false;
  term_ = reply->term;
  id_ = reply->id;
  certificate_ = reply->certificate.value_or(Signature{});
  proof_ = reply->proof;
  reached_ = now;
  return true;
}

std::string MembershipClient::heartbeat() const {
  Heartbeat heartbeat;
  heartbeat.id = id_;
  heartbeat.incarnation = incarnation_;
  heartbeat.known_view = known_view_;
  heartbeat.requests_key = requests_key_;
  heartbeat.knows_end = knows_end_;
  heartbeat.term = term_;
  heartbeat.report = report_;
  heartbeat.acting_view = report_.view ? report_.view->generation : Generation();
  if (introducing_) {
    heartbeat.introduction = introduction_of(options_, proof_);
    heartbeat.requests = requests_;
  }
  return to_json(heartbeat);
}

std::string MembershipClient::updates_target() const {
  return "/v2/updates?id=" + std::to_string(id_.value) + "&incarnation=" + incarnation_ +
         "&known_view=" + std::to_string(known_view_.value) + "&requests_key=" + requests_key_ +
         "&knows_end=" + (knows_end_ ? "1" : "0") + "&term=" + std::to_string(term_);
}

bool MembershipClient::report(const std::function<void(MemberReport&)>& change) {
  const MemberReport before = report_;
  change(report_);
  return is_urgent(before, report_);
}

ReplyActions MembershipClient::receive(const http::Response& response, double sent, double now) {
  if (over_) return {.understood = true};
  const auto reply =
      response.status == 200 ? heartbeat_reply_of(response.body) : std::unexpected(std::string("an error"));
  if (!reply || reply->term < term_) return {};
  term_ = reply->term;
  ReplyActions actions{.understood = true};
  reached_ = now;
  introducing_ = reply->introduce;
  if (reply->introduce) {
    actions.send_heartbeat = true;
    return actions;
  }
  if (reply->fenced) {
    end();
    told_ = true;
    actions.fenced = reply->fenced;
    return actions;
  }
  if (reply->lease) confirmed_ = std::max(confirmed_, sent);
  if (reply->view && reply->view->generation > known_view_) {
    known_view_ = reply->view->generation;
    const auto is_gone = [&](const auto& peer) { return reply->view->find(peer.first) == nullptr; };
    std::erase_if(report_.lost, is_gone);
    std::erase_if(report_.wrong, is_gone);
    actions.view = reply->view;
  }
  if (reply->requests && reply->requests_key != requests_key_) {
    requests_key_ = reply->requests_key;
    requests_ = *reply->requests;
    actions.requests = requests_;
  }
  if (reply->finished && !knows_end_) {
    knows_end_ = actions.send_heartbeat = true;
    actions.finished = reply->finished;
  }
  return actions;
}

std::optional<std::string> MembershipClient::failed(const std::string& why, double now) {
  const double patience = options_.standby ? kStandbyPatienceSeconds : options_.patience_seconds;
  if (over_ || now - reached_ <= patience) return std::nullopt;
  end();
  return "no coordinator has answered for so long that this member gives up: " + why;
}

void MembershipClient::end() {
  over_ = true;
  confirmed_ = -std::numeric_limits<double>::infinity();
}

}  // namespace sinew::cluster
