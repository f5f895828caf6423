// Compares our safetensors files with those of the stock library (tests/clients/safetensors_check.py). Runs only if
// SINEW_PYTHON names a Python that has the library.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Client : public testing::Test {
 protected:
  void SetUp() override {
    python_ = ::getenv("SINEW_PYTHON");
    if (python_ == nullptr) GTEST_SKIP() << "SINEW_PYTHON is not set to a Python with safetensors";
    std::string name = (fs::temp_directory_path() / "sinew-client-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  std::vector<std::string> run(const std::string& words) {
    const std::string command =
        std::string(python_) + " " + SINEW_SOURCE_DIR + "/tests/clients/safetensors_check.py " + words;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    char piece[4096];
    while (const size_t got = std::fread(piece, 1, sizeof piece, pipe)) text.append(piece, got);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  const char* python_ = nullptr;
  std::string folder_;
};

std::multiset<std::string> lines_of(const std::string& file, const TensorFile& tensors) {
  std::multiset<std::string> lines;
  for (const auto& [name, array] : tensors.tensors) {
    const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(array.bytes.data()), array.bytes.size());
    lines.insert(Json{
        {"file", file},
        {"name", name},
        {"dtype", safetensors_name(array.dtype)},
        {"shape", array.shape},
        {"crc32",
         crc}}.dump());
  }
  return lines;
}

std::multiset<std::string> parsed(const std::vector<std::string>& lines) {
  std::multiset<std::string> result;
  for (const std::string& line : lines) result.insert(Json::parse(line).dump());
  return result;
}

TEST_F(Client, TheStockLibraryReadsWhatSinewSaved) {
  const Sample sample(1000, 100'000);
  const std::string directory = save(system_disk(), folder_, sample.snapshot(), 1.0);
  const auto loaded = load(system_disk(), directory);
  ASSERT_TRUE(loaded);
  std::multiset<std::string> expected;
  for (const auto& [part, file] : loaded->parts) expected.merge(lines_of(part + ".safetensors", file));
  EXPECT_EQ(expected.size(), 2 * 13U);
  EXPECT_EQ(parsed(run("read " + directory)), expected);
}

TEST_F(Client, SinewReadsWhatTheStockLibraryWrote) {
  const std::string path = folder_ + "/theirs.safetensors";
  const auto theirs = parsed(run("write " + path));
  EXPECT_EQ(theirs.size(), 45U);
  const auto file = read_safetensors(system_disk(), path);
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(lines_of("theirs.safetensors", *file), theirs);
  EXPECT_EQ(file->metadata, (Metadata{{"format", "pt"}, {"note", "\xc3\xa9"}}));
  // Sinew writes the same file, except for the order of the metadata, which is random in the library.
  std::vector<TensorBytes> tensors;
  for (const auto& [name, array] : file->tensors)
    tensors.push_back({name, array.dtype, array.shape, {array.bytes.data(), array.bytes.size()}});
  write_safetensors(system_disk(), folder_ + "/ours.safetensors", tensors, file->metadata);
  auto ours = system_disk().read(folder_ + "/ours.safetensors"), stock = system_disk().read(path);
  ASSERT_EQ(ours.size(), stock.size());
  const auto same_from = [&](const std::vector<std::byte>& bytes) {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.substr(text.find("},") + 2);
  };
  EXPECT_EQ(same_from(ours), same_from(stock));
}

// Makes small random changes to valid headers. The library must accept every file that Sinew accepts. Sinew may refuse
// a file that the library accepts only for a reason that docs/formats/checkpoint.md lists.
TEST_F(Client, BothReadersAgreeOnAThousandMutatedFiles) {
  RandomStream random(random_key({99}));
  const char* pieces[] = {"0",  "1",     "4",    "8",   "-",     "{", "}",    "[",   "]",    ",",
                          ":",  "\"",    " ",    "\n",  "\\",    "a", "b",    "U8",  "BOOL", "F",
                          "__", "dtype", "null", "1e1", "\\u00", ".", "\xff", "true"};
  const std::string headers[] = {
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]}})",
      R"({"x":{"dtype":"U8","shape":[0,2],"data_offsets":[0,0]},"a":{"dtype":"BOOL","shape":[8],"data_offsets":[0,8]}})"};
  std::string paths;
  std::vector<std::vector<std::byte>> files;
  for (int i = 0; i < 1000; ++i) {
    std::string header = headers[random.below(3)];
    for (uint64_t n = random.below(3); n > 0; --n) {
      const size_t at = random.below(header.size()), cut = std::min<size_t>(random.below(3), header.size() - at);
      header.replace(at, cut, pieces[random.below(std::size(pieces))]);
    }
    header.resize(header.size() + random.below(3), ' ');
    std::vector<std::byte> file(8 + header.size() + 8 - (random.below(10) == 0 ? 1 : 0));
    const uint64_t size = header.size();
    std::memcpy(file.data(), &size, 8);
    std::memcpy(file.data() + 8, header.data(), header.size());
    const std::string path = folder_ + "/" + std::to_string(i);
    const auto out = system_disk().create(path);
    out->write(file);
    out->close();
    files.push_back(std::move(file));
    paths += " " + path;
  }
  const auto verdicts = run("judge" + paths);
  ASSERT_EQ(verdicts.size(), files.size());
  int both = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string text(reinterpret_cast<const char*>(files[i].data()) + 8, files[i].size() - 8);
    const auto ours = parse_safetensors(files[i]);
    if (ours) {
      ASSERT_EQ(verdicts[i], "accept") << text;
      ++both;
    } else if (verdicts[i] == "accept") {
      const std::string& why = ours.error();
      const bool listed =
          why.find("twice") != std::string::npos || why.find("does not start with {") != std::string::npos ||
          why.find("unknown field") != std::string::npos || why.find("does not support") != std::string::npos;
      ASSERT_TRUE(listed) << why << " in " << text;
    }
  }
  EXPECT_GT(both, 200);
}

}  // namespace
}  // namespace sinew::checkpoint
