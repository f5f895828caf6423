// Serves the events of the store after a given number: at once, as a long poll, or as a stream of server-sent events
// (WHATWG HTML 9.2). A client that reconnects sends the number of the last event that it has seen, so it misses none.
#include <memory>

#include "web/api_routes.h"

namespace sinew::web {
namespace {

constexpr double kMaxWaitSeconds = 60, kHeartbeatSeconds = 15;
constexpr int64_t kMaxEvents = 1000;  // the most events in one response

store::EventQuery query_of(const Args& args) {
  store::EventQuery query;
  query.after = args.integer("after", 0, 0, INT64_MAX);
  query.limit = args.integer("limit", kMaxEvents, 1, kMaxEvents);
  if (!args.has("kind") && !args.has("id")) return query;
  const std::string kind = args.text("kind"), id = args.text("id");
  std::string known;
  for (const store::Kind each :
       {store::Kind::kExperiment, store::Kind::kRun, store::Kind::kModel, store::Kind::kVersion, store::Kind::kStudy,
        store::Kind::kData, store::Kind::kLease, store::Kind::kContent}) {
    if (kind == store::to_string(each)) query.subject = store::Subject{each, id, 0};
    known += (known.empty() ? "" : ", ") + std::string(store::to_string(each));
  }
  if (!query.subject) refuse_invalid("there is no kind '" + kind + "'", "use one of " + known);
  return query;
}

std::string batch_text(const std::vector<store::Event>& events, int64_t after) {
  Json list = Json::array();
  for (const store::Event& event : events) list.push_back(event_json(event));
  return dump_json({{"events", list}, {"after", events.empty() ? after : events.back().seq}}) + "\n";
}

std::string stream_text(const std::vector<store::Event>& events) {
  if (events.empty()) return ": nothing new\n\n";  // a heartbeat, by which both sides notice a broken connection
  std::string text;
  for (const store::Event& event : events) {
    text += "id: " + std::to_string(event.seq) + "\nevent: " + event.what + "\ndata: " + dump_json(event_json(event)) +
            "\n\n";
  }
  return text;
}

// A client that waits for events. It gets no further events once its token is revoked.
struct Subscription {
  Context context;
  http::Request request;
  store::EventQuery query;

  bool may_read() const { return context.auth.still_allowed(request, Role::kRead); }
};

// Sends the header at once. Sends the body when there are events or `seconds` have passed.
http::Response long_poll(std::shared_ptr<const Subscription> subscription, double seconds) {
  http::Response response;
  response.body_at_shutdown = batch_text({}, subscription->query.after);
  response.source = [subscription, seconds, done = false](const http::Write& write) mutable {
    if (std::exchange(done, true)) return write("");
    subscription->context.watcher.wait(
        subscription->query, seconds, [subscription, write](const std::vector<store::Event>& events) {
          write(batch_text(subscription->may_read() ? events : std::vector<store::Event>(), subscription->query.after));
        });
  };
  return response;
}

http::Response stream(std::shared_ptr<Subscription> subscription) {
  http::Response response;
  response.content_type = "text/event-stream";
  response.source = [subscription](const http::Write& write) {
    subscription->context.watcher.wait(subscription->query, kHeartbeatSeconds,
                                       [subscription, write](const std::vector<store::Event>& events) {
                                         if (!events.empty()) subscription->query.after = events.back().seq;
                                         write(subscription->may_read() ? stream_text(events) : "");
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
  if (!event.actor.name.empty()) json["actor"] = event.actor.name;
  if (!event.actor.address.empty()) json["address"] = event.actor.address;
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
    return stream(std::make_shared<Subscription>(context, call.request, std::move(query)));
  }
  const double wait = args.has("wait") ? args.number("wait") : 0;
  if (!(wait >= 0 && wait <= kMaxWaitSeconds)) refuse_invalid("'wait' must be 0 to 60 seconds");
  if (wait > 0) return long_poll(std::make_shared<const Subscription>(context, call.request, std::move(query)), wait);
  http::Response response;
  response.body = batch_text(next_events(context.store, query), query.after);
  return response;
}

}  // namespace sinew::web
