// What is asked of the server itself.
#include "web/api.h"

namespace sinew::web {

http::Response api_health(Context&, const Call&) {
  return {200, "OK", "text/plain"};
}

// The store answers.
http::Response api_ready(Context& context, const Call&) {
  context.store.lease("server");
  return json_response({{"status", "ready"}});
}

http::Response api_version(Context& context, const Call&) {
  return {200, context.options.version, "text/plain"};
}

http::Response api_openapi(Context&, const Call&) {
  return {200, openapi_text(), "application/json"};
}

}  // namespace sinew::web
