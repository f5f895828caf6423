// News: the store's log of events from a number on, waited for in one answer (a long poll) or as a stream that goes on
// (server-sent events, WHATWG HTML 9.2): a client that comes back says the last number it knows and misses nothing.
#include <memory>

#include "web/api.h"

namespace sinew::web {
namespace {

constexpr double kLongestWait = 60, kBeatSeconds = 15;
constexpr int64_t kMostAtOnce = 1000;

store::EventQuery query_of(const Args& args) {
  store::EventQuery query{
      args.integer("after", 0, 0, INT64_MAX), args.integer("limit", kMostAtOnce, 1, kMostAtOnce), {}};
  if (!args.has("kind") && !args.has("id")) return query;
  const std::string kind = args.text("kind");
  for (const store::Kind each :
       {store::Kind::kExperiment, store::Kind::kRun, store::Kind::kModel, store::Kind::kVersion, store::Kind::kStudy,
        store::Kind::kData, store::Kind::kLease, store::Kind::kContent}) {
    if (kind == store::to_string(each)) query.subject = store::Subject{each, args.text("id"), 0};
  }
  if (!query.subject) refuse_invalid("there is no kind '" + kind + "'", "experiment, run, model, version, study ...");
  return query;
}

std::string batch_text(const std::vector<store::Event>& events, int64_t after) {
  Json list = Json::array();
  for (const store::Event& event : events) list.push_back(event_json(event));
  return dump({{"events", list}, {"after", events.empty() ? after : events.back().seq}}) + "\n";
}

std::string stream_text(const std::vector<store::Event>& events) {
  if (events.empty()) return ": nothing new\n\n";  // so that both ends know the other is there
  std::string text;
  for (const store::Event& event : events) {
    text +=
        "id: " + std::to_string(event.seq) + "\nevent: " + event.what + "\ndata: " + dump(event_json(event)) + "\n\n";
  }
  return text;
}

// Who waits, and for what. A token that was taken away meanwhile hears nothing of what happens after that.
struct Listener {
  Context& context;
  http::Request request;
  store::EventQuery query;

  bool may_hear() const { return context.auth.still_may(request, Role::kRead); }
};

// One answer; its header is sent at once and its body when there is news or the time is over.
http::Response long_poll(std::shared_ptr<const Listener> listener, double seconds) {
  http::Response response;
  response.if_ended = batch_text({}, listener->query.after);
  response.source = [listener, seconds, given = false](const http::Give& give) mutable {
    if (std::exchange(given, true)) return give("");
    listener->context.watcher.wait(listener->query, seconds, [listener, give](const std::vector<store::Event>& events) {
      give(batch_text(listener->may_hear() ? events : std::vector<store::Event>(), listener->query.after));
    });
  };
  return response;
}

http::Response stream(std::shared_ptr<Listener> listener) {
  http::Response response;
  response.content_type = "text/event-stream";
  response.source = [listener](const http::Give& give) {
    listener->context.watcher.wait(listener->query, kBeatSeconds,
                                   [listener, give](const std::vector<store::Event>& events) {
                                     if (!events.empty()) listener->query.after = events.back().seq;
                                     give(listener->may_hear() ? stream_text(events) : "");
                                   });
  };
  return response;
}

}  // namespace

Json event_json(const store::Event& event) {
  Json json{{"seq", event.seq},
            {"at_ms", event.at_ms},
            {"what", event.what},
            {"kind", store::to_string(event.subject.kind)},
            {"id", event.subject.id}};
  if (event.subject.number != 0) json["number"] = event.subject.number;
  const Json body = Json::parse(event.body, nullptr, false);
  json["body"] = body.is_discarded() ? Json(event.body) : body;
  return json;
}

http::Response api_events(Context& context, const Call& call) {
  const Args args(call);
  store::EventQuery query = query_of(args);
  const auto accept = call.request.headers.find("accept"), last = call.request.headers.find("last-event-id");
  if (accept != call.request.headers.end() && accept->second.find("text/event-stream") != std::string::npos) {
    if (last != call.request.headers.end()) {
      query.after = Args(Json{{"last-event-id", last->second}}).integer("last-event-id", 0, 0, INT64_MAX);
    }
    return stream(std::make_shared<Listener>(context, call.request, std::move(query)));
  }
  const double wait = args.has("wait") ? args.number("wait") : 0;
  if (!(wait >= 0 && wait <= kLongestWait)) refuse_invalid("'wait' is seconds, from 0 to 60");
  if (wait > 0) return long_poll(std::make_shared<const Listener>(context, call.request, std::move(query)), wait);
  http::Response response;
  response.body = batch_text(next_events(context.store, query), query.after);
  return response;
}

}  // namespace sinew::web
