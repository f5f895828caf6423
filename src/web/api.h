// The own API, under /api/v1. Ids and names are texts, times milliseconds since 1970, points lists [step, time, value].
#pragma once

#include "web/args.h"
#include "web/desk.h"

namespace sinew::web {

Json run_summary(const store::Record& run);
Json run_details(const store::Record& run);
Json event_json(const store::Event& event);

http::Response api_health(Desk&, const Call&);
http::Response api_ready(Desk&, const Call&);
http::Response api_version(Desk&, const Call&);
http::Response api_openapi(Desk&, const Call&);

http::Response api_experiments(Desk&, const Call&);
http::Response api_runs(Desk&, const Call&);
http::Response api_run(Desk&, const Call&);
http::Response api_run_metric(Desk&, const Call&);
http::Response api_add_points(Desk&, const Call&);
http::Response api_overlay(Desk&, const Call&);
http::Response api_control(Desk&, const Call&);
http::Response api_run_files(Desk&, const Call&);
http::Response api_run_file(Desk&, const Call&);
http::Response api_put_run_file(Desk&, const Call&);

http::Response api_models(Desk&, const Call&);
http::Response api_model(Desk&, const Call&);
http::Response api_model_version(Desk&, const Call&);
http::Response api_lineage(Desk&, const Call&);
http::Response api_promote(Desk&, const Call&);
http::Response api_rollback(Desk&, const Call&);
http::Response api_set_alias(Desk&, const Call&);
http::Response api_version_file(Desk&, const Call&);

http::Response api_events(Desk&, const Call&);
http::Response prometheus(Desk&, const Call&);

}  // namespace sinew::web
