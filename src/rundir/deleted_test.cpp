// Tests that deleted runs can be restored, and which are refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <thread>

#include "base/expected_error.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

class Deleted : public testing::Test {
 protected:
  Deleted() { run("job/20261101T000000Z-aaaa"); }
  ~Deleted() override { std::filesystem::remove_all(folder_); }
  std::string run(const std::string& name) {
    std::filesystem::create_directories(root_ + "/" + name);
    write_durably(system_disk(), root_ + "/" + name + "/resolved.yaml", "name: job\n");
    return root_ + "/" + name;
  }
  size_t count() const { return run_directories(root_).size(); }

  std::string folder_ = testing::TempDir() + "/deleted", root_ = folder_ + "/runs";
};

TEST_F(Deleted, ARunComesBackToItsPlace) {
  const std::string second = run("job/20261101T000000Z-bbbb");
  EXPECT_EQ(delete_run(root_, second), root_ + "/.deleted/job/20261101T000000Z-bbbb");
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(run_directories(deleted_root(root_)).size(), 1U);
  EXPECT_EQ(restore_run(root_, "bbbb"), second);
  EXPECT_EQ(count(), 2U);
  EXPECT_ERROR(error_of([&] { restore_run(root_, "bbbb"); }), "RUN_NOT_FOUND", "no runs");
}

TEST_F(Deleted, ALinkMeansTheRunToWhichItLeads) {
  std::filesystem::create_directory_symlink(root_ + "/job/20261101T000000Z-aaaa", folder_ + "/link");
  std::filesystem::create_directory_symlink(root_ + "/job/20261101T000000Z-aaaa", root_ + "/latest");
  EXPECT_EQ(delete_run(root_, root_ + "/latest"), root_ + "/.deleted/job/20261101T000000Z-aaaa");
  EXPECT_EQ(count(), 0U);
  EXPECT_EQ(restore_run(root_, "aaaa"), root_ + "/job/20261101T000000Z-aaaa");
  delete_run(root_, folder_ + "/link");
  EXPECT_EQ(run_directories(deleted_root(root_)).size(), 1U);
}

TEST_F(Deleted, ForGoodMeansForGood) {
  delete_run(root_, find_run(root_, "aaaa"));
  remove_deleted_run(root_, "aaaa");
  EXPECT_EQ(run_directories(deleted_root(root_)).size(), 0U);
  EXPECT_ERROR(error_of([&] { remove_deleted_run(root_, "aaaa"); }), "RUN_NOT_FOUND", "");
}

// A leader holds the lock of its study only for instants, for example while it appends to the record.
TEST_F(Deleted, AStudyThatIsLedStaysWheneverItsLockIsFree) {
  const std::string study = root_ + "/job/20261101T000000Z-aaaa", leader = file_in(study, kLeaders) + "/one";
  std::filesystem::create_directories(leader);
  {
    const auto alive = RunLock::take(leader);
    EXPECT_ERROR(error_of([&] { delete_run(root_, study); }), "RUN_IN_USE", "leads now");
    std::promise<void> held;
    std::thread appends([&] {
      const auto lock = RunLock::take(study);
      held.set_value();
      system_clock().sleep_seconds(RunLock::kPatienceSeconds / 4);
    });
    held.get_future().wait();
    EXPECT_ERROR(error_of([&] { delete_run(root_, study); }), "RUN_IN_USE", "");
    appends.join();
    EXPECT_EQ(count(), 1U);
  }
  delete_run(root_, study);
  EXPECT_EQ(count(), 0U);
}

TEST_F(Deleted, AFoldStaysWithItsCrossValidation) {
  const std::string fold = run("job/20261101T000000Z-aaaa/trials/00001");
  EXPECT_ERROR(error_of([&] { delete_run(root_, fold); }), "RUN_IN_USE", "is a fold");
  delete_run(root_, root_ + "/job/20261101T000000Z-aaaa");
  EXPECT_EQ(count(), 0U);
  const std::string trial = run("search/trials/00001");
  delete_run(root_, trial);
  EXPECT_FALSE(std::filesystem::exists(trial));
}

TEST_F(Deleted, WhatMustStayStays) {
  const std::string here = root_ + "/job/20261101T000000Z-aaaa";
  {
    const auto lock = RunLock::take(here);
    ASSERT_TRUE(lock);
    EXPECT_ERROR(error_of([&] { delete_run(root_, here); }), "RUN_IN_USE", "pid");
  }
  const std::string outside = folder_ + "/outside";
  std::filesystem::create_directories(outside);
  write_durably(system_disk(), outside + "/resolved.yaml", "name: job\n");
  EXPECT_ERROR(error_of([&] { delete_run(root_, outside); }), "RUN_NOT_FOUND", "is not below");
  EXPECT_ERROR(error_of([&] { delete_run(root_, root_); }), "RUN_NOT_FOUND", "is not below");
  // A deleted run, too, is only removed if it is one.
  EXPECT_ERROR(error_of([&] { remove_deleted_run(root_, here); }), "RUN_NOT_FOUND", "is not below");
  delete_run(root_, here);
  run("job/20261101T000000Z-aaaa");
  EXPECT_ERROR(error_of([&] { restore_run(root_, "aaaa"); }), "RUN_EXISTS", "already holds a run");
  EXPECT_ERROR(error_of([&] { delete_run(root_, here); }), "RUN_EXISTS", "already holds a run");
  EXPECT_EQ(count(), 1U);
}

}  // namespace
}  // namespace sinew::rundir
