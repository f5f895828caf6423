// Calls of members: joining, words, news. A member this coordinator does not know is asked who it is; what it then
// tells makes a successor know what its predecessor knew.
#include <algorithm>

#include "cluster/desk.h"
#include "cluster/membership.h"
#include "cluster/view_json.h"

namespace sinew::cluster {
namespace {

// How far a successor stays away from numbers its predecessor may have given without anybody left to tell.
constexpr int64_t kJump = 1000;

Member member_of(MemberId id, const Introduction& introduction, double now) {
  Member member;
  member.id = id;
  member.address = introduction.address;
  member.host = introduction.host;
  member.pid = introduction.pid;
  member.identity = introduction.identity;
  member.heard = member.since = now;
  return member;
}

Reply said(const News& news) {
  return {200, to_json(news)};
}

Reply said_out(const std::string& why) {
  News news;
  news.out = why;
  return said(news);
}

Reply asked_who() {
  News news;
  news.who = true;
  return said(news);
}

int64_t number_in(const std::map<std::string, std::string>& query, const char* key) {
  const auto found = query.find(key);
  if (found == query.end() || found->second.empty() || found->second.size() > 15) return -1;
  int64_t number = 0;
  for (const char c : found->second) {
    if (c < '0' || c > '9') return -1;
    number = 10 * number + (c - '0');
  }
  return number;
}

std::string word_in(const std::map<std::string, std::string>& query, const char* key) {
  const auto found = query.find(key);
  return found == query.end() ? "" : found->second;
}

}  // namespace

std::expected<Poll, Reply> poll_of(const std::map<std::string, std::string>& query) {
  const int64_t id = number_in(query, "id"), have = number_in(query, "have");
  if (id < 1 || have < 0) {
    return std::unexpected(refuse(400, "\"id\" and \"have\" must be whole numbers", "/v1/news?id=1&life=...&have=0"));
  }
  return Poll{MemberId(id), word_in(query, "life"), Generation(have), word_in(query, "key"),
              number_in(query, "knows_end") == 1};
}

Reply Desk::join(const std::string& body, Moment at) {
  notice(at);
  const auto call = join_call_of(body);
  if (!call) return refuse(400, call.error(), "docs/formats/coordinator.md says what a call looks like");
  if (state_.finished) return refuse(409, "the run is over", "");
  for (const auto& [id, life] : lives_) {  // the answer to its first try was lost on the way
    if (life.life == call->life) return {200, dump({{"id", id.value}})};
  }
  if (out_.contains(call->life)) return refuse(409, "this life is over: " + out_[call->life], "begin another");
  if (state_.members.size() >= kMostMembers) {
    return refuse(429, "there are " + std::to_string(kMostMembers) + " members already", "");
  }
  Member member = member_of(MemberId(next_id_), call->introduction, at.now);
  if (const std::string why = refusal(member, state_); !why.empty()) {
    say(at, "a worker on " + member.host + " is refused: " + why);
    return refuse(403, "refused: " + why, "start it with the same job, data and programs, on the same kind of machine");
  }
  ++next_id_;
  lives_[member.id] = {call->life, false};
  state_.members[member.id] = member;
  decide(at);
  return {200, dump({{"id", member.id.value}})};
}

Reply Desk::word(const std::string& body, Moment at) {
  notice(at);
  const auto word = word_of(body);
  if (!word) return refuse(400, word.error(), "docs/formats/coordinator.md says what a call looks like");
  if (const auto answer = admit(*word, at)) return *answer;
  take_in(*word, at);
  decide(at);
  look_at_recovery(at);
  if (const auto out = out_.find(word->life); out != out_.end()) return said_out(out->second);
  return said(news_for(word->id, word->have, word->key, word->knows_end, at.now));
}

std::optional<Reply> Desk::admit(const Word& word, Moment at) {
  if (const auto out = out_.find(word.life); out != out_.end()) return said_out(out->second);
  const auto life = lives_.find(word.id);
  const bool known = life != lives_.end() && life->second.life == word.life;
  const Generation newest = std::max(state_.view ? state_.view->generation : Generation(), buried_);
  if (!word.introduction) return known && word.acts <= newest ? std::nullopt : std::optional(asked_who());
  if (word.acts.value > 0 && (!word.told.view || word.told.view->generation < word.acts)) {
    return refuse(400, "it acts by view " + std::to_string(word.acts.value) + " and does not tell it", "");
  }
  if (!known) {
    if (auto answer = introduce(word, at)) return answer;
  }
  if (word.told.view) learn_view(*word.told.view, at);
  learn_requests(word.requests);
  return std::nullopt;
}

std::optional<Reply> Desk::introduce(const Word& word, Moment at) {
  const auto other = lives_.find(word.id);
  if (other != lives_.end()) {  // two with one id: who has a seat keeps it
    const bool mine_has_seat = state_.view && state_.view->find(word.id) != nullptr;
    const std::string& loser = mine_has_seat || !word.told.view ? word.life : other->second.life;
    const std::string why = "another has id " + std::to_string(word.id.value);
    const bool newcomer_goes = loser == word.life;
    put_out(loser, why);
    if (newcomer_goes) return said_out(why);
    state_.members.erase(word.id);
  }
  Member member = member_of(word.id, *word.introduction, at.now);
  if (const std::string why = refusal(member, state_); !why.empty()) {
    put_out(word.life, why);
    return said_out(why);
  }
  next_id_ = std::max(next_id_, word.id.value + kJump);
  state_.members[word.id] = member;
  lives_[word.id] = {word.life, false};
  return std::nullopt;
}

// A view of a predecessor, if it is newer than what is known. The next one stays well away from its number: there may
// have been later ones.
void Desk::learn_view(const View& view, Moment at) {
  const Generation known = std::max(state_.view ? state_.view->generation : Generation(), buried_);
  if (view.generation <= std::max(known, given_)) return;
  state_.view = view;
  state_.at_least = std::max(state_.at_least, Generation(view.generation.value + kJump - 1));
  state_.listens_until = std::max(state_.listens_until, at.now + options_.cluster.settle_seconds);
  say(at, "took over view " + std::to_string(view.generation.value));
}

void Desk::learn_requests(const std::vector<ControlRequest>& requests) {
  for (const ControlRequest& request : requests) {
    last_request_ = std::max(last_request_, request.number);
    if (request.number <= taken_ || requests_.size() >= kMostRequests) continue;
    const auto place = std::lower_bound(requests_.begin(), requests_.end(), request,
                                        [](const auto& a, const auto& b) { return a.number < b.number; });
    if (place == requests_.end() || place->number != request.number) requests_.insert(place, request);
  }
}

void Desk::take_in(const Word& word, Moment at) {
  Member& member = state_.members.at(word.id);
  const Told& told = word.told;
  member.heard = at.now;
  member.phase = told.phase;
  member.view = std::max(member.view, word.acts);
  member.step = told.step;
  member.durable_step = told.durable_step;
  member.speed = told.speed;
  member.facts = told.facts;
  lives_[word.id].knows_end = word.knows_end;
  for (const auto& [peer, why] : told.lost) {
    const auto lost = state_.members.find(peer);
    if (lost == state_.members.end() || peer == word.id) continue;
    const bool fresh = lost->second.reports.emplace(word.id, Member::Report{at.now, why}).second;
    if (fresh) due_ = at.now + options_.cluster.report_seconds;
  }
  const Seat* seat = state_.view ? state_.view->find(word.id) : nullptr;
  if (seat == nullptr || seat->joining) return;
  if (told.finished && !state_.finished) {
    state_.finished = told.finished;
    say(at, "the run is over: member " + std::to_string(word.id.value) + " says exit code " +
                std::to_string(*told.finished));
  }
  taken_ = std::max(taken_, told.taken_requests);
  last_request_ = std::max(last_request_, taken_);
  std::erase_if(requests_, [&](const ControlRequest& request) { return request.number <= taken_; });
}

std::string Desk::requests_key() const {
  std::string key;
  if (!requests_.empty()) {
    key = std::to_string(requests_.front().number) + "-" + std::to_string(requests_.back().number) + "-" +
          std::to_string(requests_.size());
  }
  return key;
}

News Desk::news_for(MemberId id, Generation have, const std::string& key, bool knows_end, double now) const {
  News news;
  news.key = requests_key();
  if (news.key != key) news.requests = requests_;
  if (state_.finished && !knows_end) news.finished = state_.finished;
  if (!state_.view) return news;
  news.newest = state_.view->generation;
  const bool here = state_.view->find(id) != nullptr;
  news.seated = here && !listening(now);
  if (here && state_.view->generation > have) news.view = state_.view;
  return news;
}

std::optional<Reply> Desk::news(const Poll& poll, Moment at) const {
  if (const auto out = out_.find(poll.life); out != out_.end()) return said_out(out->second);
  const auto life = lives_.find(poll.id);
  if (life == lives_.end() || life->second.life != poll.life) return asked_who();
  const News news = news_for(poll.id, poll.have, poll.key, poll.knows_end, at.now);
  if (!news.view && !news.requests && !news.finished) return std::nullopt;
  return said(news);
}

Reply Desk::nothing_new(const Poll& poll, Moment at) const {
  return said(news_for(poll.id, poll.have, poll.key, poll.knows_end, at.now));
}

}  // namespace sinew::cluster
