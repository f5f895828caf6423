// Tests the digest of a state. Tests that a checkpoint is refused if its tensors do not have the digest that it states.
#include "checkpoint/state_digest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/expected_error.h"
#include "base/faulty_disk.h"
#include "checkpoint/changed_tensor.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

constexpr size_t kMiB = 1 << 20;

// The definition, in a few lines.
Digest expected_digest(Digest text, const std::vector<std::vector<std::byte>>& tensors) {
  std::vector<Digest> parts{text};
  for (const auto& tensor : tensors) {
    for (size_t at = 0; at < tensor.size(); at += kMiB)
      parts.push_back(digest_of(std::span(tensor).subspan(at, std::min(kMiB, tensor.size() - at))));
  }
  return digest_of(parts);
}

TEST(StateDigest, IsThatOfTheTextAndTheBlocksInOrder) {
  const std::vector<std::vector<std::byte>> tensors{random_bytes(random_key({1}), 2 * kMiB + 5),
                                                    std::vector<std::byte>(kMiB + 7), random_bytes(random_key({2}), 3)};
  const Digest text = digest_of(std::string_view("counts"));
  StateDigest digest;
  std::vector<std::byte> copy(tensors[0].size());
  digest.add(tensors[0], copy.data());
  digest.compute();
  digest.add_zeros(tensors[1].size());
  digest.add(tensors[2]);
  const Digest found = digest.finish(text, [](const auto& work) {
    std::thread other(work);
    work();
    other.join();
  });
  EXPECT_EQ(found, expected_digest(text, tensors));
  EXPECT_EQ(copy, tensors[0]);
}

// A sample whose state document says how the digest was made.
class DescribedSample {
 public:
  explicit DescribedSample(int64_t step, const std::function<void(nlohmann::json&)>& change = nullptr, int64_t big = 0)
      : sample_(step, big), snapshot_(sample_.snapshot()) {
    StateDigest digest;
    std::vector<DigestedTensor> order;
    for (const auto& [part, tensors] : snapshot_.parts) {
      for (const TensorBytes& tensor : tensors) {
        digest.add(tensor.bytes);
        order.push_back({part, tensor.name, 0});
      }
    }
    digest.add_zeros(100);
    order.push_back({"", "", 100});
    const Digest text = digest_of(std::string_view("text"));
    snapshot_.digest = digest.finish(text);
    nlohmann::json document = {{kStateDigestKey, state_digest_json(text, order)}};
    if (change) change(document[kStateDigestKey]);
    snapshot_.state_json = document.dump();
  }
  const Snapshot& snapshot() const { return snapshot_; }
  OwnedSnapshot owned() const {
    OwnedSnapshot owned = sample_.owned();
    owned.state_json = snapshot_.state_json;
    owned.digest = snapshot_.digest;
    return owned;
  }

 private:
  Sample sample_;
  Snapshot snapshot_;
};

TEST(StateDigestOfCheckpoint, OfAnotherStateIsDamage) {
  FaultyDisk disk;
  const std::string older = save(disk, kRoot, DescribedSample(1).snapshot(), 0);
  const std::string newer = save(disk, kRoot, DescribedSample(2).snapshot(), 0);
  EXPECT_TRUE(load(disk, newer));
  EXPECT_TRUE(verify(disk, newer));
  for (const char* part : {"model", "optimizer"}) {
    disk.remove_all(newer);
    save(disk, kRoot, DescribedSample(2).snapshot(), 0);
    change_a_tensor(disk, newer, part);
    const auto loaded = load(disk, newer);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().file, "state.json");
    EXPECT_NE(loaded.error().what.find("state digest"), std::string::npos) << loaded.error().what;
    const auto verified = verify(disk, newer);
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().what, loaded.error().what);
  }
  const Newest newest = load_newest(disk, kRoot);
  ASSERT_TRUE(newest.loaded);
  EXPECT_EQ(newest.loaded->directory, older);
  ASSERT_EQ(newest.damaged.size(), 1U);
  EXPECT_EQ(newest.damaged[0].directory, newer);
}

// A reader computes the digests of the blocks from the pieces in which it reads a file.
TEST(StateDigestOfCheckpoint, HasBlocksOfOneTensorEach) {
  for (const int64_t big : {int64_t{1}, int64_t{kMiB}, int64_t{2 * kMiB + 5}}) {
    FaultyDisk disk;
    const std::string directory = save(disk, kRoot, DescribedSample(1, nullptr, big).snapshot(), 0);
    EXPECT_TRUE(verify(disk, directory)) << big;
    EXPECT_TRUE(load(disk, directory)) << big;
  }
}

// The run reaches the same step again. It must not keep the directory only because its files fit its manifest.
TEST(StateDigestOfCheckpoint, ASaveReplacesACheckpointOfAnotherState) {
  FaultyDisk disk;
  const std::string directory = save(disk, kRoot, DescribedSample(1).snapshot(), 0);
  change_a_tensor(disk, directory);
  ASSERT_FALSE(load(disk, directory));
  EXPECT_EQ(save(disk, kRoot, DescribedSample(1).snapshot(), 0), directory);
  EXPECT_TRUE(load(disk, directory));
}

// Memory of the copy changes before the copy is written.
TEST(StateDigestOfCheckpoint, TheWriterDoesNotCountACheckpointOfAnotherState) {
  FaultyDisk disk;
  Writer writer(disk, {kRoot, "", 1, 0});
  const auto save_and_wait = [&](OwnedSnapshot owned) {
    ASSERT_TRUE(writer.submit(std::move(owned)));
    ASSERT_TRUE(writer.wait(kLong));
  };
  save_and_wait(DescribedSample(10).owned());
  EXPECT_EQ(writer.status().durable, Step(10));
  OwnedSnapshot changed = DescribedSample(20).owned();
  changed.parts.at("model").front().second.data()[0] ^= std::byte{1};
  save_and_wait(std::move(changed));
  EXPECT_EQ(writer.status().durable, Step(10));
  EXPECT_NE(writer.status().trouble.find("[CHECKPOINT_NOT_READ_BACK]"), std::string::npos) << writer.status().trouble;
  EXPECT_EQ(load_newest(disk, kRoot).loaded->step, Step(10)) << "the one before it must stay";
}

TEST(StateDigestOfCheckpoint, AStepOfAnotherStateDoesNotCountAsKept) {
  FaultyDisk disk;
  std::vector<std::string> kept;
  for (const int64_t step : {10, 20, 30}) kept.push_back(save(disk, kRoot, DescribedSample(step).snapshot(), 0));
  change_a_tensor(disk, kept.back());
  kept.erase(kept.begin());  // the writer keeps two intact ones, and does not delete the damaged one
  Writer writer(disk, {kRoot, "", 2, 0});
  ASSERT_TRUE(writer.submit(DescribedSample(40).owned()));
  ASSERT_TRUE(writer.wait(kLong));
  kept.push_back(kRoot + "/step-00000040");
  EXPECT_EQ(list(disk, kRoot), kept);
}

TEST(StateDigestOfCheckpoint, TheMirrorRefusesACopyOfAnotherState) {
  FaultyDisk disk;
  const std::string directory = save(disk, kRoot, DescribedSample(10).snapshot(), 0);
  mirror(disk, directory, "intact");
  change_a_tensor(disk, directory);
  EXPECT_EQ(code_of([&] { mirror(disk, directory, "mirror"); }), "CHECKPOINT_NOT_READ_BACK");
}

TEST(StateDigestOfCheckpoint, ADescriptionThatDoesNotFitIsDamageAndNeverACrash) {
  using Json = nlohmann::json;
  const std::vector<std::function<void(Json&)>> changes{
      [](Json& of) { of = 3; },
      [](Json& of) { of.erase("text"); },
      [](Json& of) { of["text"] = "00"; },
      [](Json& of) { of["tensors"] = "model/scalar"; },
      [](Json& of) { of["tensors"].push_back("model"); },
      [](Json& of) { of["tensors"].push_back("/scalar"); },
      [](Json& of) { of["tensors"].push_back(-1); },
      [](Json& of) { of["tensors"].push_back(uint64_t{1} << 63); },
      [](Json& of) { of["tensors"].push_back("ema/scalar"); },
      [](Json& of) { of["tensors"].push_back("model/none"); },
      [](Json& of) { of["tensors"].push_back("model/scalar"); },  // the part comes twice
      [](Json& of) { of["tensors"].erase(0); },
  };
  for (const auto& change : changes) {
    FaultyDisk disk;
    const DescribedSample sample(1, change);
    const std::string directory = save(disk, kRoot, sample.snapshot(), 0);
    const auto loaded = load(disk, directory);
    EXPECT_FALSE(loaded) << sample.snapshot().state_json;
    EXPECT_FALSE(verify(disk, directory)) << sample.snapshot().state_json;
    EXPECT_EQ(loaded ? "" : loaded.error().file, "state.json");
  }
}

}  // namespace
}  // namespace sinew::checkpoint
