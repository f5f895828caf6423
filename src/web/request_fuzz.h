// For tests and fuzzing: makes requests from choices and gives them to an Api in this process, without a socket. Every
// answer must be one that openapi.json documents for the route. An error must have a code and a sentence. Errors of the
// server (500) are documented, too, but no request here may get one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json_text.h"
#include "http/http.h"
#include "registry/registry.h"
#include "store/store.h"
#include "web/context.h"
#include "web/documented.h"
#include "web/fields.h"
#include "web/likely_fields.h"
#include "web/mlflow_registry.h"
#include "web/route_fields.h"
#include "web/router.h"
#include "web/web.h"

namespace sinew::web {

// Makes requests, mostly to routes that exist, with fields that they take. In half of them, the values of all fields
// are likely to be valid, so that requests get beyond the checks of their fields.
class RequestMaker {
 public:
  using Choose = LikelyFields::Choose;
  explicit RequestMaker(const Choose& choose) : choose_(choose) {}

  const Route& route() { return routes()[below(static_cast<uint32_t>(routes().size()))]; }
  http::Request request(const Route& route) {
    http::Request request;
    request.method = below(20) == 0 ? pick({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"}) : route.method;
    likely_ = below(2) == 0;
    request.path = path_of(route.path);
    request.target = request.path;
    request.headers = {{"host", "localhost"}};
    request.peer = "127.0.0.1";
    add_input(route, request);
    return request;
  }
  // Returns an id that exists, an id that does not, or another text that some route understands.
  std::string text() {
    static const std::vector<std::string> kTexts{"r0",
                                                 "r1",
                                                 "e0",
                                                 "e1",
                                                 "0",
                                                 "m",
                                                 "1",
                                                 "2",
                                                 "loss",
                                                 "none",
                                                 "f",
                                                 "a/f",
                                                 "..",
                                                 "../../etc/passwd",
                                                 "a//b",
                                                 "",
                                                 " ",
                                                 "metrics.loss < 1",
                                                 "metrics.loss > 'a' AND",
                                                 "params.`a b` LIKE '%_a%'",
                                                 "tags.k IS NOT NULL",
                                                 "metrics.loss DESC",
                                                 "name LIKE '%%%'",
                                                 "ACTIVE_ONLY",
                                                 "ALL",
                                                 "FINISHED",
                                                 "RUNNING",
                                                 "kind",
                                                 "run",
                                                 "stop",
                                                 "scale",
                                                 "None",
                                                 "champion",
                                                 "mlflow-artifacts:/0",
                                                 "runs:/r0/a",
                                                 "models:/m/1",
                                                 "models:/m@champion",
                                                 "0/r0/artifacts/f",
                                                 "versions/m/1/artifacts/f",
                                                 "file:///etc",
                                                 "99999999999999999999",
                                                 "-1",
                                                 "0.5",
                                                 "NaN",
                                                 "Infinity",
                                                 "null",
                                                 "true",
                                                 "\xff\xfe",
                                                 "\xf0\x9f\xa7\xa0",
                                                 std::string("a\0b", 3),
                                                 std::string(600, 'x'),
                                                 std::string(300, '%'),
                                                 "{\"a\":[1]}",
                                                 "[[[[",
                                                 "sinew.run",
                                                 "mlflow.runName"};
    return pick(kTexts);
  }

 private:
  using Json = nlohmann::ordered_json;

  uint32_t below(uint32_t count) { return choose_(count); }
  std::string pick(const std::vector<std::string>& from) { return from[below(static_cast<uint32_t>(from.size()))]; }

  Json value(int depth = 0) {
    switch (below(depth < 3 ? 12 : 9)) {
      case 0: return nullptr;
      case 1: return below(2) == 0;
      case 2: return static_cast<int64_t>(below(2000)) - 5;
      case 3: return INT64_MAX;
      case 4: return 1e300;
      case 5: return 0.5;
      case 9: {
        Json list = Json::array();
        for (uint32_t left = below(4); left > 0; --left) list.push_back(value(depth + 1));
        return list;
      }
      case 10:
      case 11: return object(depth + 1);
      default: return dumpable(text());
    }
  }
  Json object(int depth) {
    static const std::vector<std::string> kNames{
        "key",    "value", "timestamp",    "step",           "model_id",   "dataset",   "name",
        "digest", "tags",  "dataset_name", "dataset_digest", "field_name", "ascending", "source"};
    Json made = Json::object();
    for (uint32_t left = below(5); left > 0; --left) made[pick(kNames)] = value(depth);
    return made;
  }
  // Makes the text valid UTF-8, as a JSON text must be.
  static std::string dumpable(std::string text) { return text.starts_with("\xff") ? "\xc3\xbc" : std::move(text); }
  std::string path_of(std::string path) {
    for (size_t at; (at = path.find('{')) != std::string::npos;) {
      const std::string name = path.substr(at + 1, path.find('}', at) - at - 1);
      std::string part = below(3) == 0 ? text() : pick({"r0", "m", "1", "loss", "f", "0/r0/artifacts/f", "champion"});
      if (likely_) part = LikelyFields::path_part(name, std::move(part));
      std::erase_if(part, [](char c) { return c == '{'; });
      path.replace(at, path.find('}', at) - at + 1, part);
    }
    return path;
  }
  // Returns a field that the route takes or, rarely, a field of another route.
  std::string field_of(const Route& route, const char* declared) {
    const Route& from = below(20) == 0 ? routes()[below(static_cast<uint32_t>(routes().size()))] : route;
    const auto fields = parse_fields(&from == &route && declared[0] != '\0' ? declared : fields_of(from).takes);
    return fields.empty() ? "" : fields[below(static_cast<uint32_t>(fields.size()))].name;
  }
  void add_input(const Route& route, http::Request& request) {
    const bool in_query = request.method == "GET" || request.method == "HEAD" || std::string_view(route.body) == kFile;
    if (likely_) {
      LikelyFields fields(choose_);
      if (in_query) return fields.add_query(route, request);
      request.body = dump_json(fields.body(route));
      return;
    }
    for (uint32_t left = below(6); in_query && left > 0; --left) {
      const std::string name = field_of(route, route.query);
      if (name.empty()) continue;
      request.query[name] = below(3) == 0 ? dump_json(value()) : text();
      if (below(8) == 0) request.repeated[name] = {text(), text()};
    }
    if (below(10) == 0) request.headers["range"] = pick({"bytes=0-0", "bytes=5-", "bytes=-1", "bytes=9-1", "x"});
    if (below(20) == 0) request.headers["if-none-match"] = pick({"*", "\"x\"", text()});
    if (in_query) return;
    if (below(15) == 0) {
      request.body = pick({"", "{", "[]", "3", "null", "\xff", "{\"a\":", std::string(70, '[')});
      return;
    }
    Json body = Json::object();
    for (uint32_t left = below(8); left > 0; --left) {
      const std::string name = field_of(route, std::string_view(route.body) == kFile ? "" : route.body);
      if (!name.empty()) body[name] = below(2) == 0 ? Json(dumpable(text())) : value();
    }
    request.body = dump_json(body);
  }

  const Choose& choose_;
  bool likely_ = false;  // whether the request that is being made shall be valid
};

class RequestFuzzer {
 public:
  using Choose = RequestMaker::Choose;
  using Answers = std::map<std::string, std::map<int, uint64_t>>;

  RequestFuzzer() {
    Options options;
    options.store = store_.get();
    options.artifacts = artifacts_.get();
    options.runs_root = folder_;
    options.version = "1";
    options.requests_per_second = 0;
    options.threads = 4;
    options.request_seconds = 20;
    api_ = std::make_unique<Api>(options);
    handler_ = api_->handler();
    admission_ = api_->admission();
    for (const char* experiment : {"e0", "e1"})
      SINEW_CHECK(store_->write(store::Create{{store::Kind::kExperiment, experiment}}).has_value());
    for (const char* run : {"r0", "r1"}) {
      SINEW_CHECK(store_->write(store::Create{{store::Kind::kRun, run}, "e0"}).has_value());
      SINEW_CHECK(store_->write(store::AddPoints{run, "loss", {{1, 1, 0.5}, {2, 2, 0.25}}}).has_value());
    }
    SINEW_CHECK(store_->write(store::Create{{store::Kind::kModel, "m"}}).has_value());
    // A logged model, as mlflow_models.cpp creates one. Its id is known, so that requests can name it.
    const store::Subject logged{store::Kind::kModel, "l0"};
    store::Create create{logged, "", "", R"({"name": "n", "status": "LOGGED_MODEL_PENDING"})"};
    create.tags = {{kLoggedModelTag, "e0"}};
    SINEW_CHECK(store_->write(store::Batch{{create, store::Update{logged, {}, {}, true}}}).has_value());
  }
  ~RequestFuzzer() {
    api_.reset();
    artifacts_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Sends one request and checks its answer. Returns the answer's status.
  int step(const Choose& choose) {
    RequestMaker maker(choose);
    const Route& route = maker.route();
    http::Request request = maker.request(route);
    const std::string text = text_of(request);
    // The choices may make a request of another route, or of none.
    const Route* match = router_.find(request.method, request.path).route;
    const http::Response response = send(std::move(request), std::string_view(route.body) == kFile ? maker.text() : "");
    check(response, match, text);
    if (match != nullptr) ++answers_[Documented::operation_of(*match)][response.status];
    return response.status;
  }
  // Returns the number of answers of each operation of openapi.json, by status.
  const Answers& answers() const { return answers_; }

 private:
  using Json = nlohmann::ordered_json;

  http::Response send(http::Request request, const std::string& file) {
    const http::Decision decision = admission_(request);
    if (decision.refusal) return *decision.refusal;
    request.sink = decision.sink;
    if (request.sink) {
      if (auto early = request.sink->take(file)) return *std::move(early);
    }
    struct Waiter {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<http::Response> response;
    };
    const auto waiter = std::make_shared<Waiter>();
    handler_(request, [waiter](http::Response response) {
      const std::lock_guard lock(waiter->mutex);
      waiter->response = std::move(response);
      waiter->changed.notify_all();
    });
    std::unique_lock lock(waiter->mutex);
    const bool answered =
        waiter->changed.wait_for(lock, std::chrono::seconds(60), [&] { return waiter->response.has_value(); });
    SINEW_CHECK(answered, request.method, request.target);
    return *std::move(waiter->response);
  }

  // Describes the request for the message of a failure.
  static std::string text_of(const http::Request& request) {
    std::string text = request.method + " " + request.path;
    for (const auto& [name, value] : request.query) text += " " + name + "=" + value;
    for (const auto& [name, value] : request.headers) text += " " + name + ": " + value;
    return text + " " + request.body;
  }

  void check(const http::Response& response, const Route* route, const std::string& request) const {
    if (route == nullptr) {
      SINEW_CHECK(response.status == 404 || response.status == 405, request, response.status, response.body);
    } else {
      const std::string objection = documented_.objection(*route, response);
      SINEW_CHECK(objection.empty(), objection, request, response.body);
      SINEW_CHECK(response.status < 500 || response.status == 501, request, response.status, response.body);
    }
    if (response.status < 400) return;
    const Json body = Json::parse(response.body, nullptr, false);
    if (response.status == 409 && body.is_object() && body.contains("done")) return;  // a promotion that was refused
    SINEW_CHECK(body.is_object() && body.contains("code") && body.contains("hint"), request, response.body);
    SINEW_CHECK(!body.value("error", "").empty() && body.value("code", "").find('_') != std::string::npos,
                response.body);
    SINEW_CHECK((response.status == 501) == (body["code"] == "API_NOT_OFFERED"), request, response.body);
  }

  static std::string new_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sinew-requests-XXXXXX").string();
    SINEW_CHECK(::mkdtemp(name.data()) != nullptr);
    return name;
  }

  const std::string folder_ = new_folder();
  std::unique_ptr<store::Store> store_ = std::make_unique<store::Store>(folder_ + "/store.db");
  std::unique_ptr<registry::Artifacts> artifacts_ = std::make_unique<registry::Artifacts>(folder_ + "/artifacts");
  std::unique_ptr<Api> api_;
  http::Handler handler_;
  http::Admission admission_;
  const Router router_{routes()};
  const Documented documented_;
  Answers answers_;
};

}  // namespace sinew::web
