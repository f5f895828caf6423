// What a command is told, whether its metrics say that it may end, where its groups are, who its family is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "jobs/cgroup.h"
#include "jobs/environment.h"
#include "jobs/family.h"
#include "jobs/metric_watch.h"

namespace sinew::jobs {
namespace {

spec::Job job_of(const std::string& yaml) {
  const spec::Reading reading = spec::read_job("command: [a, '{params.lr}', '{x}']\n" + yaml, "job");
  EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  return reading.job;
}

TEST(Told, ParametersAreFilledIn) {
  EXPECT_EQ(command_of(job_of("params: {lr: 1e-3}")), (std::vector<std::string>{"a", "1e-3", "{x}"}));
}

TEST(Told, LaterWordsGoBeforeEarlierOnes) {
  const spec::Job job = job_of(
      "params: {lr: 1e-3, who: me}\nenv: {A: 'for {params.who}', MASTER_PORT: 5}\nresources: {nproc: 2, cpus: 8}");
  const Seat seat = {1, 2, "/runs/x", "mark", "/runs/x/checkpoints/1", "/m", 1234, "", ""};
  const auto told =
      environment_of(job, seat, {{"A", "old"}, {"RANK", "7"}, {"SINEW_RESUME_FROM", "old"}, {"HOME", "/h"}});
  EXPECT_EQ(told.at("A"), "for me");
  EXPECT_EQ(told.at("RANK"), "1");
  EXPECT_EQ(told.at("WORLD_SIZE"), "2");
  EXPECT_EQ(told.at("MASTER_PORT"), "5");
  EXPECT_EQ(told.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(told.at("HOME"), "/h");
  EXPECT_EQ(told.at("SINEW_PARAM_LR"), "1e-3");
  EXPECT_EQ(told.at("SINEW_RESUME_FROM"), "/runs/x/checkpoints/1");
  EXPECT_FALSE(told.contains("MLFLOW_RUN_ID"));
}

TEST(MetricWatch, EndsWhenTheObjectiveIsMet) {
  MetricWatch watch(job_of("params: {lr: 1}\nobjective: val/accuracy >= 0.9"));
  EXPECT_FALSE(watch.take(1, {{"val/accuracy", 0.8}, {"train/accuracy", 1}}));
  EXPECT_FALSE(watch.take(2, {{"val/accuracy", NAN}}));
  const auto verdict = watch.take(3, {{"val/accuracy", 0.9}});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->cause, Cause::objective);
  EXPECT_TRUE(watch.objective()->met);
  EXPECT_EQ(watch.best()->step, 3);
  watch.take(4, {{"val/accuracy", 0.89}});  // of the epoch that it finishes
  EXPECT_TRUE(watch.objective()->met);
  EXPECT_EQ(watch.objective()->value, 0.9);
}

TEST(MetricWatch, CountsReportsWithoutImprovement) {
  MetricWatch watch(job_of("params: {lr: 1}\nearly_stopping: {monitor: val/loss, patience: 2, min_delta: 0.1}"));
  EXPECT_FALSE(watch.take(1, {{"val/loss", 1.0}}));
  EXPECT_FALSE(watch.take(2, {{"val/loss", 0.95}}));  // too little
  EXPECT_FALSE(watch.take(3, {{"val/loss", 0.8}}));
  EXPECT_FALSE(watch.take(4, {{"train/loss", 5}}));
  EXPECT_FALSE(watch.take(5, {{"val/loss", NAN}}));
  const auto verdict = watch.take(6, {{"val/loss", 0.75}});
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->cause, Cause::early_stop);
  EXPECT_EQ(watch.best()->value, 0.8);
}

constexpr const char* kMounts =
    "24 1 0:22 / /proc rw shared:5 - proc proc rw\n"
    "30 24 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
    "31 24 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(Cgroups, AreFoundInBothVersions) {
  const CgroupPlaces places =
      cgroup_places("12:memory:/user.slice\n3:cpu,cpuacct:/docker/abc/x\n1:name=systemd:/\n0::/a/b\n", kMounts);
  EXPECT_EQ(places.unified, "/sys/fs/cgroup/unified/a/b");
  EXPECT_EQ(places.by_controller, (std::map<std::string, std::string>{{"cpu", "/sys/fs/cgroup/cpu,cpuacct/x"},
                                                                      {"cpuacct", "/sys/fs/cgroup/cpu,cpuacct/x"},
                                                                      {"memory", "/sys/fs/cgroup/memory/user.slice"}}));
  EXPECT_EQ(cgroup_places("0::/\n", kMounts).unified, "/sys/fs/cgroup/unified");
  EXPECT_EQ(cgroup_places("", ""), CgroupPlaces{});
  EXPECT_EQ(cgroup_places("::\n:\n0:\n\n12:memory", "- - -\n1 2 3 - cgroup\n"), CgroupPlaces{});
}

TEST(Cgroups, ThatCanNotBeMadeAreSaidSo) {
  CgroupPlaces places;
  places.unified = "/no/such/place";
  places.by_controller["memory"] = "/no/such/place";
  spec::ResourceOptions resources;
  EXPECT_TRUE(make_groups(places, "m", resources).why_not.empty());
  resources.memory = 1 << 20;
  resources.cpus = 1;
  const Limits limits = make_groups(places, "m", resources);
  EXPECT_TRUE(limits.groups.empty());
  EXPECT_TRUE(limits.enforced.empty());
  EXPECT_NE(limits.why_not.find("resources.memory: "), std::string::npos) << limits.why_not;
  EXPECT_NE(limits.why_not.find("resources.cpus: "), std::string::npos) << limits.why_not;
}

TEST(Family, FindsThisProcess) {
  const std::vector<ProcessRow> all = all_processes();
  const auto self = std::ranges::find(all, ::getpid(), &ProcessRow::pid);
  ASSERT_NE(self, all.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_GT(self->memory_bytes, 0);
  EXPECT_TRUE(marked(all, "no process has this mark").empty());
}

}  // namespace
}  // namespace sinew::jobs
