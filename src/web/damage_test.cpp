// Tests that the server refuses damaged content instead of serving or registering it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "base/sha256.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

namespace fs = std::filesystem;
std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void flip_a_bit(const fs::path& path) {
  std::string bytes = text_of(path);
  ASSERT_FALSE(bytes.empty()) << path;
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(Damage, ADamagedBlobIsNotServed) {
  TestServer test;
  const std::string id = new_run(test), file = kArtifacts + "0/" + id + "/artifacts/weights", text(300'000, 'w');
  ASSERT_EQ(test.call("PUT", file, text, "a").status, 200);
  EXPECT_EQ(test.call("GET", file).response.body, text);
  const std::string digest = sha256_hex(text);
  flip_a_bit(fs::path(test.artifacts.directory()) / digest.substr(0, 2) / digest);
  for (const http::Headers& headers : {http::Headers{}, http::Headers{{"range", "bytes=0-9"}}}) {
    const Reply reply = test.call("GET", file, "", "a", headers);
    EXPECT_EQ(reply.status, 409);
    EXPECT_EQ(reply.json["code"], "ARTIFACT_DAMAGED");
  }
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})", "s").status, 200);
  const PlainJson body{{"name", "m"}, {"source", "runs:/" + id + "/"}, {"run_id", id}};
  EXPECT_EQ(test.call("POST", kMlflow + "/model-versions/create", body.dump(), "s").status, 409);
  ASSERT_EQ(test.call("PUT", file, text, "a").status, 200);  // uploading the same bytes again repairs the blob
  EXPECT_EQ(test.call("GET", file).response.body, text);
}

// Returns a list of digests (docs/formats/model.md) of these files, as another program would write it.
std::string list_of(const std::map<std::string, std::string>& files) {
  std::string text = "{\n \"format\": \"sinew-model-digests\",\n \"version\": 1,\n \"files\": {\n";
  for (const auto& [name, content] : files) {
    text += (text.ends_with("{\n") ? "  \"" : ",\n  \"") + name + "\": {\"bytes\": " + std::to_string(content.size()) +
            ", \"sha256\": \"" + sha256_hex(content) + "\"}";
  }
  text += "\n },\n \"checksum\": \"";
  return text + to_hex(digest_of(std::string_view(text))) + "\"\n}\n";
}

TEST(Damage, ADamagedModelOfARunIsNeitherServedNorRegistered) {
  TestServer test;
  const fs::path directory = run_with_files(test, {"model/model.safetensors", "model/model.json", "report.json"}, "x");
  const std::string list = list_of({{"model.json", "x"}, {"model.safetensors", "x"}});
  std::ofstream(directory / "model/model.digests.json") << list;
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})", "s").status, 200);
  const auto served = [&] { return test.call("GET", "/api/v1/runs/d/files/model/model.safetensors").status; };
  const auto registered = [&] {
    const PlainJson body{{"name", "m"}, {"source", "runs:/d/model"}, {"run_id", "d"}};
    return test.call("POST", kMlflow + "/model-versions/create", body.dump(), "s");
  };
  EXPECT_EQ(served(), 200);
  EXPECT_EQ(registered().status, 200);
  std::ofstream(directory / "model/model.safetensors") << "y";
  EXPECT_EQ(served(), 409);
  const Reply refused = registered();
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.response.body.find("WEIGHTS_DAMAGED"), std::string::npos) << refused.response.body;
  EXPECT_EQ(test.call("GET", "/api/v1/runs/d/files/report.json").status, 200);
  std::ofstream(directory / "model/model.safetensors") << "x";
  EXPECT_EQ(served(), 200);
}

}  // namespace
}  // namespace sinew::web
