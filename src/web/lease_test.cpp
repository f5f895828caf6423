// Tests that a server that has lost its lease to another server cannot write through any route.
#include <gtest/gtest.h>

#include "web/api_routes.h"
#include "web/mlflow.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

using store::Kind;

class Leased : public testing::Test {
 protected:
  Leased() : store(folder / "s.db"), artifacts(folder / "artifacts") {
    const auto taken = store.write(store::Acquire{"server", "one", 60});
    Options options;
    options.store = &store;
    options.artifacts = &artifacts;
    options.lease = store::HeldLease{"server", taken->answers.at(0).fence};
    shared = std::make_unique<Shared>(options);
    context = std::make_unique<Context>(*shared, Caller{Role::kAdmin, "a", "127.0.0.1"});
    EXPECT_TRUE(store.write(store::Create{{Kind::kModel, "m"}}));
    for (int64_t version = 1; version <= 2; ++version) {
      EXPECT_TRUE(store.write(store::Create{{Kind::kVersion, "m"}}));
      EXPECT_TRUE(store.write(store::SetAlias{"m", registry::kChampion, version, {}}));
    }
  }
  void lose_the_lease() {
    ASSERT_TRUE(store.write(store::Release{"server", context->options.lease->fence}));
    ASSERT_TRUE(store.write(store::Acquire{"server", "another", 60}));
  }
  http::Response ask(Handle handle, const std::string& body) {
    http::Request request;
    request.method = "POST";
    request.body = body;
    return handle(*context, Call{request, {{"model", "m"}}});
  }
  int64_t champion() { return store.find({Kind::kModel, "m"})->aliases.at(0).version; }

  Folder folder;
  store::Store store;
  registry::Artifacts artifacts;
  std::unique_ptr<Shared> shared;
  std::unique_ptr<Context> context;
};

TEST_F(Leased, AliasesMoveOnlyWhileTheLeaseIsHeld) {
  EXPECT_EQ(ask(api_rollback, "{}").status, 200);
  EXPECT_EQ(champion(), 1);
  EXPECT_EQ(ask(api_promote, R"({"version": 2, "force": true})").status, 200);
  EXPECT_EQ(champion(), 2);
  lose_the_lease();
  EXPECT_ANY_THROW(ask(api_rollback, "{}"));
  EXPECT_ANY_THROW(ask(api_promote, R"({"version": 1, "force": true})"));
  EXPECT_ANY_THROW(ask(api_set_alias, R"({"alias": "champion", "version": 1})"));
  EXPECT_EQ(champion(), 2);
}

TEST_F(Leased, AWriteThatLostItsLeaseIsNotTriedAgain) {
  int tries = 0;
  const auto change = [&] {
    change_record(*context, {Kind::kModel, "m"}, [&](const store::Record& record) {
      ++tries;
      return store::Batch{{store::SetTags{record.subject, {{"tried", std::to_string(tries)}}}}};
    });
  };
  change();
  EXPECT_EQ(tries, 1);
  lose_the_lease();
  try {
    change();
    ADD_FAILURE() << "the lease is lost";
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.kind.code, kLeaseLost.code);
  }
  EXPECT_EQ(tries, 2);
}

TEST_F(Leased, AWriteBesideAnotherOneIsTriedAgain) {
  int tries = 0;
  change_record(*context, {Kind::kModel, "m"}, [&](const store::Record& record) {
    if (++tries < 3) {
      EXPECT_TRUE(store.write(store::SetTags{record.subject, {{"other", std::to_string(tries)}}}));
    }
    return store::Batch{{store::SetTags{record.subject, {{"mine", "x"}}}}};
  });
  EXPECT_EQ(tries, 3);
}

// The client repeats a request that gets status 503, but gives up after a conflict (409).
TEST_F(Leased, AWriteThatNeverSucceedsBesideOthersIsToBeSentAgain) {
  int tries = 0;
  try {
    change_record(*context, {Kind::kModel, "m"}, [&](const store::Record& record) {
      EXPECT_TRUE(store.write(store::SetTags{record.subject, {{"other", std::to_string(++tries)}}}));
      return store::Batch{{store::SetTags{record.subject, {{"mine", "x"}}}}};
    });
    ADD_FAILURE() << "the record changed before each write";
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.kind.status, 503);
    EXPECT_STREQ(refused.kind.mlflow_code, "TEMPORARILY_UNAVAILABLE");
  }
  EXPECT_GT(tries, 3);
  EXPECT_FALSE(store.find({Kind::kModel, "m"})->tags.contains("mine"));
}

}  // namespace
}  // namespace sinew::web
