// What is asked of the server itself.
#include "web/api.h"

namespace sinew::web {

http::Response api_health(Desk&, const Call&) {
  return {200, "OK", "text/plain"};
}

// The store answers.
http::Response api_ready(Desk& desk, const Call&) {
  desk.store.lease("server");
  return json_response({{"status", "ready"}});
}

http::Response api_version(Desk& desk, const Call&) {
  return {200, desk.options.version, "text/plain"};
}

http::Response api_openapi(Desk&, const Call&) {
  return {200, openapi_text(), "application/json"};
}

}  // namespace sinew::web
