#include "task/task.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/expected_error.h"

namespace sinew::task {
namespace {

const std::vector<Task> kExamples = {
    Train{"job.yaml",
          "name: x\n",
          {"a=1", "b= \"x\"\n"},
          "runs/x/1",
          true,
          true,
          false,
          true,
          "/proc/1/fd/3",
          std::nullopt},
    Train{"job.yaml",
          "",
          {},
          "runs/x/1",
          false,
          false,
          true,
          false,
          "",
          Group{"runs/x/1/coordinator.json", "10.0.0.1", "host-a", 12.5, 3},
          Sandbox{{"10.0.0.2"}, uint64_t{1} << 40}},
    Evaluate{"runs/x/1", "val", {"data.test.path=new.csv"}, true},
    Evaluate{"runs/x/1", "val", {}, false, Sandbox{}},
    Predict{"model", "new.csv", "out.jsonl", "jsonl"},
    Export{"model", "onnx", "out"},
    Predict{"model", "new.csv", "out.jsonl", "jsonl", Sandbox{{}, 1}},
    Predict{"model", "", "-", "csv", {}, Generation{"Once \"upon\"\n", 50, 40, 7, 0.75}},
    Inspect{"net.pt2", {}},
    Check{"job.yaml", {"optimizer.lr=3e-4"}, true, 7.25},
    Advise{"job.yaml", {"trainer.lanes=2"}, true, 5, true, true, "faster.yaml", Sandbox{}},
    FindRate{"job.yaml", {"trainer.lanes=2"}, true, 1e-7, 10, 200, "lr.svg", Sandbox{}},
    Plan{"job.yaml", {"trainer.lanes=2"}, true, 5, 0.25, 3600, 20, 86400, 1e6, "date: 1\n", Sandbox{}},
};

ErrorCode code_of(const std::string& text) {
  try {
    parse(text);
    return "NO_ERROR";
  } catch (const Error& error) {
    return error.code;
  }
}

TEST(Task, ReadsBackAsWritten) {
  for (const Task& task : kExamples) EXPECT_TRUE(parse(to_json(task)) == task) << to_json(task);
}

TEST(Task, AnotherVersionIsRefused) {
  std::string text = to_json(kExamples[0]);
  const std::string now = "\"version\":" + std::to_string(kVersion);
  text.replace(text.find(now), now.size(), "\"version\":99");
  EXPECT_EQ(code_of(text), ErrorCode("TASK_VERSION"));
}

TEST(Task, DamageIsRefused) {
  for (const Task& task : kExamples) {
    const std::string text = to_json(task);
    for (size_t length = 0; length + 2 < text.size(); ++length)
      EXPECT_EQ(code_of(text.substr(0, length)), ErrorCode("TASK_UNREADABLE")) << length;
  }
  EXPECT_EQ(code_of(R"({"version":6,"task":"paint"})"), ErrorCode("TASK_UNKNOWN"));
  EXPECT_EQ(code_of(R"({"version":6,"task":"check"})"), ErrorCode("TASK_UNREADABLE"));
  EXPECT_EQ(code_of(R"({"version":6,"task":"check","job":1,"overrides":[],"json":true,"seconds":1})"),
            ErrorCode("TASK_UNREADABLE"));
}

TEST(Task, AFileThatCannotBeOpenedIsNamed) {
  EXPECT_ERROR(error_of([] { read("/no/such/task"); }), "TASK_UNREADABLE", "/no/such/task: No such file or directory");
  EXPECT_ERROR(error_of([] { read("/"); }), "TASK_UNREADABLE", "/: Is a directory");
  EXPECT_ERROR(error_of([] { read("/dev/full"); }), "TASK_UNREADABLE", "/dev/full");
}

TEST(Task, AFileThatHoldsNoTaskIsNotAMissingTask) {
  EXPECT_ERROR(error_of([] { parse(""); }), "TASK_UNREADABLE", "started without a task");
  EXPECT_ERROR(error_of([] { parse("#!/bin/sh\n"); }), "TASK_UNREADABLE", "is not a task");
}

// The kernel writes up to the limit without an error. The next write gives the reason.
TEST(TaskFile, AShortWriteHasItsReason) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit few_bytes{20, 20};
    if (::setrlimit(RLIMIT_FSIZE, &few_bytes) != 0) ::_exit(2);
    const std::string text = error_of([] { TaskFile file(kExamples[0]); });
    ::_exit(is_error(text, "TASK_NO_MEMORY", std::strerror(EFBIG)) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(TaskFile, AFailedOneLeavesNoOpenFile) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit no_bytes{0, 0};
    if (::setrlimit(RLIMIT_FSIZE, &no_bytes) != 0) ::_exit(2);
    const int next = ::dup(0);
    ::close(next);
    if (error_of([] { TaskFile file(kExamples[0]); }).empty()) ::_exit(3);
    ::_exit(::dup(0) == next ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(TaskFile, AChildProcessReadsTheTask) {
  for (const Task& task : kExamples) {
    const TaskFile file(task);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(read(file.path()) == task ? 0 : 1);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(TaskFile, AProgramReadsTheTaskAfterExec) {
  const TaskFile file(kExamples[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string path = file.path_after_exec();
    ::execl("/bin/grep", "grep", "-q", "\"task\":\"train\"", path.c_str(), nullptr);
    ::_exit(9);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sinew::task
