// Tests the artifact_location of an experiment: the server accepts a location only if it can read the paths that a
// client builds from it.
#include <gtest/gtest.h>

#include "web/testing.h"

namespace sinew::web {
namespace {

Reply make(TestServer& test, const std::string& name, const std::string& location) {
  const PlainJson body{{"name", name}, {"artifact_location", location}};
  return test.call("POST", kMlflow + "/experiments/create", body.dump());
}

TEST(ArtifactLocation, IsRefusedIfItsPathsWouldBeMisread) {
  TestServer test;
  for (const char* location :
       {"mlflow-artifacts:/team/models", "mlflow-artifacts:/versions/a", "mlflow-artifacts:/versions",
        "mlflow-artifacts:/team/artifacts", "mlflow-artifacts:/team/artifacts/x", "mlflow-artifacts:/team/",
        "mlflow-artifacts:/", "mlflow-artifacts:", "mlflow-artifacts:/a/../b", "mlflow-artifacts:/a?b",
        "mlflow-artifacts:/a#b", "mlflow-artifacts:a"}) {
    const Reply reply = make(test, location, location);
    EXPECT_EQ(reply.status, 400) << location;
    EXPECT_EQ(reply.json.value("error_code", ""), "INVALID_PARAMETER_VALUE") << location;
    EXPECT_NE(reply.json.value("error", "").find("artifact_location"), std::string::npos) << reply.response.body;
  }
}

TEST(ArtifactLocation, IsKeptIfFilesCanBeUploadedBelowIt) {
  TestServer test;
  for (const char* location : {"mlflow-artifacts:/team", "mlflow-artifacts:/team/a b/c", "mlflow-artifacts:/models"}) {
    const Reply made = make(test, location, location);
    ASSERT_EQ(made.status, 200) << made.response.body;
    const PlainJson run =
        test.call("POST", kMlflow + "/runs/create", PlainJson{{"experiment_id", made.json["experiment_id"]}}.dump())
            .json;
    const std::string uri = run["run"]["info"]["artifact_uri"];
    EXPECT_TRUE(uri.starts_with(location)) << uri;
    std::string path = uri.substr(std::string("mlflow-artifacts:/").size());
    for (size_t at; (at = path.find(' ')) != std::string::npos;) path.replace(at, 1, "%20");
    EXPECT_EQ(test.call("PUT", kArtifacts + path + "/f", "text").status, 200) << path;
    EXPECT_EQ(test.call("GET", kArtifacts + path + "/f").response.body, "text") << path;
  }
}

TEST(ArtifactLocation, ElsewhereIsKeptOnlyAtAPlaceFromWhichVersionsMayCome) {
  TestServer test;
  for (const char* location : {"file:///etc", "/etc", "etc", "http://192.0.2.1/x", "https://example.com/x", "ftp://x/y",
                               "runs:/r/p", "models:/m/1", "mlflow-artifacts://host/models", "MLFLOW-ARTIFACTS:/team",
                               "dbfs:/x", "s3", ":s3://x", " s3://x", "../s3://x"}) {
    const Reply reply = make(test, location, location);
    EXPECT_EQ(reply.status, 400) << location;
    EXPECT_EQ(reply.json.value("error_code", ""), "INVALID_PARAMETER_VALUE") << location;
    for (const char* word : {"Invalid artifact_location", "mlflow-artifacts:/NAME", "gs://", "s3://"})
      EXPECT_NE(reply.response.body.find(word), std::string::npos) << word << " in " << reply.response.body;
  }
  for (const char* location : {"s3://bucket/models", "S3://bucket", "gs://b/k", "hdfs://h/p"}) {
    const Reply made = make(test, location, location);
    ASSERT_EQ(made.status, 200) << made.response.body;
    const PlainJson run =
        test.call("POST", kMlflow + "/runs/create", PlainJson{{"experiment_id", made.json["experiment_id"]}}.dump())
            .json;
    const std::string uri = run["run"]["info"]["artifact_uri"];
    EXPECT_TRUE(uri.starts_with(std::string(location) + "/")) << uri;
  }
  const Reply none = make(test, "empty", "");
  ASSERT_EQ(none.status, 200) << none.response.body;
}

}  // namespace
}  // namespace sinew::web
