// Inside web/: declares the routes of Sinew's own API, under /api/v1. In requests and responses, ids and names are
// strings, times are milliseconds since 1970, and points are lists [step, time, value].
#pragma once

#include "web/args.h"
#include "web/context.h"

namespace sinew::web {

Json run_summary(const store::Record& run);
Json run_details(const store::Record& run);
Json event_json(const store::Event& event);

http::Response api_health(Context&, const Call&);
http::Response api_ready(Context&, const Call&);
http::Response api_version(Context&, const Call&);
http::Response api_openapi(Context&, const Call&);

http::Response api_experiments(Context&, const Call&);
http::Response api_runs(Context&, const Call&);
http::Response api_run(Context&, const Call&);
http::Response api_run_metric(Context&, const Call&);
http::Response api_add_points(Context&, const Call&);
http::Response api_overlay(Context&, const Call&);
http::Response api_control(Context&, const Call&);
http::Response api_run_files(Context&, const Call&);
http::Response api_run_file(Context&, const Call&);
http::Response api_put_run_file(Context&, const Call&);

http::Response api_models(Context&, const Call&);
http::Response api_model(Context&, const Call&);
http::Response api_model_version(Context&, const Call&);
http::Response api_lineage(Context&, const Call&);
http::Response api_promote(Context&, const Call&);
http::Response api_rollback(Context&, const Call&);
http::Response api_set_alias(Context&, const Call&);
http::Response api_freeze_version(Context&, const Call&);
http::Response api_version_file(Context&, const Call&);

http::Response api_events(Context&, const Call&);
http::Response prometheus(Context&, const Call&);

}  // namespace sinew::web
