// Implements the routes that report on the server itself.
#include "web/api_routes.h"

namespace sinew::web {

// The server answers the routes without a role on a thread of the HTTP server. So they answer even if every other
// thread waits.
http::Response api_health(Context& context, const Call&) {
  const store::Condition condition = context.health.condition();
  if (!condition.problem.empty())
    throw Refused(kStoreAway, condition.problem, "look at the store and at its disk or server");
  return {200, "OK", "text/plain"};
}

http::Response api_ready(Context& context, const Call& call) {
  api_health(context, call);
  return json_response({{"status", "ready"}});
}

http::Response api_version(Context& context, const Call&) {
  return {200, context.options.version, "text/plain"};
}

http::Response api_openapi(Context&, const Call&) {
  static const std::string text = openapi_text();
  return {200, text, "application/json"};
}

}  // namespace sinew::web
