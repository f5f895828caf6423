#include "cluster/conversation.h"

#include "base/error.h"
#include "cluster/line.h"
#include "cluster/words.h"

namespace sinew::cluster {
namespace {

// What others wait for goes out at once; the rest travels with the next pulse.
bool matters(const Told& before, const Told& after) {
  const auto generation = [](const Told& told) { return told.view ? told.view->generation : Generation(); };
  return before.phase != after.phase || generation(before) != generation(after) || before.lost != after.lost ||
         before.finished != after.finished || before.taken_requests != after.taken_requests;
}

Introduction introduction_of(const ClientOptions& options) {
  return {options.address, options.host, options.pid, options.identity};
}

}  // namespace

std::string Conversation::join_call() const {
  return to_json(JoinCall{introduction_of(options_), life_});
}

bool Conversation::joined(const http::Response& response, double now) {
  if (response.status >= 500) return false;
  if (response.status != 200) {
    const Trouble refused = trouble_of(response);
    throw Error(refused.error, refused.hint);
  }
  const auto json = parse_json(response.body);
  const auto given = json ? whole_of(*json, "id", 1) : std::nullopt;
  if (!given) return false;
  id_ = MemberId(*given);
  reached_ = now;
  return true;
}

std::string Conversation::word() const {
  Word word;
  word.id = id_;
  word.life = life_;
  word.have = have_;
  word.key = key_;
  word.knows_end = knows_end_;
  word.told = told_;
  word.acts = told_.view ? told_.view->generation : Generation();
  if (introducing_) {
    word.introduction = introduction_of(options_);
    word.requests = requests_;
  }
  return to_json(word);
}

std::string Conversation::news_target() const {
  return "/v1/news?id=" + std::to_string(id_.value) + "&life=" + life_ + "&have=" + std::to_string(have_.value) +
         "&key=" + key_ + "&knows_end=" + (knows_end_ ? "1" : "0");
}

bool Conversation::tell(const std::function<void(Told&)>& change) {
  const Told before = told_;
  change(told_);
  return matters(before, told_);
}

Heard Conversation::hear(const http::Response& response, double sent, double now) {
  if (over_) return {.understood = true};
  const auto news = response.status == 200 ? news_of(response.body) : std::unexpected(std::string("no news"));
  if (!news) return {};
  Heard heard{.understood = true};
  reached_ = now;
  introducing_ = news->who;
  if (news->who) {
    heard.speak = true;
    return heard;
  }
  if (news->out) {
    end();
    heard.out = news->out;
    return heard;
  }
  if (news->seated) confirmed_ = std::max(confirmed_, sent);
  if (news->view && news->view->generation > have_) {
    have_ = news->view->generation;
    std::erase_if(told_.lost, [&](const auto& peer) { return news->view->find(peer.first) == nullptr; });
    heard.view = news->view;
  }
  if (news->requests && news->key != key_) {
    key_ = news->key;
    requests_ = *news->requests;
    heard.requests = requests_;
  }
  if (news->finished && !knows_end_) {
    knows_end_ = heard.speak = true;
    heard.finished = news->finished;
  }
  return heard;
}

std::optional<std::string> Conversation::failed(const std::string& why, double now) {
  if (over_ || now - reached_ <= options_.patience_seconds) return std::nullopt;
  end();
  return "no coordinator for so long that this member gives up: " + why;
}

void Conversation::end() {
  over_ = true;
  confirmed_ = -std::numeric_limits<double>::infinity();
}

}  // namespace sinew::cluster
