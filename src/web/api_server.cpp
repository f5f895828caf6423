// The routes that report on the server itself.
#include "web/api_routes.h"

namespace sinew::web {

http::Response api_health(Context&, const Call&) {
  return {200, "OK", "text/plain"};
}

// Reads from the store, so the request fails when the store cannot be read.
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
