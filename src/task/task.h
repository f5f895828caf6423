// Defines the document in which `sinew` tells `sinew-worker` what to do. Only this folder writes and reads it.
//
// `sinew` and `sinew-worker` may come from different builds during an upgrade. So the document names its version, and
// the worker refuses a document of another version with an Error. The worker gets the path of the document as its only
// argument. The document is a file in memory (TaskFile), not in the run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sinew::task {

inline constexpr int kVersion = 6;

// Makes the worker a member of a group of workers that train one run.
struct Group {
  std::string coordinator_file;  // coordinator.json of the run
  std::string link_listen;       // address that the worker's links listen on
  std::string link_advertise;    // address at which other members reach the worker's links; empty: link_listen
  double hang_seconds = 60;   // the supervisor kills a worker that hangs longer; the other members wait twice as long
  int64_t local_workers = 1;  // how many workers of this group share the cores that this worker may use
  // true: once the worker is a member, it stays alive when the process that started it dies, and may lead the run
  bool outlives_parent = false;
  bool operator==(const Group&) const = default;
};

// Confines the worker before it runs the code of a model (sandbox/sandbox.h).
struct Sandbox {
  std::vector<std::string> hosts;  // addresses of the other machines of the run
  uint64_t memory_bytes = 0;       // most memory of the worker; 0: no limit
  bool operator==(const Sandbox&) const = default;
};

struct Train {
  std::string job;       // path of the job file, or its name in messages if `job_text` is given
  std::string job_text;  // the checked text of the job file; empty: the worker reads the file
  std::vector<std::string> overrides;
  std::string run_directory;
  bool resume = false, ledger = false, json_log = false;
  bool decide = false;  // only make the decisions that the workers of a group do not make one by one; see train::decide
  std::string activity_board;  // path of the board that the worker posts on (base/activity_board.h); empty: no board
  std::optional<Group> group;  // nullopt: this worker trains alone
  std::optional<Sandbox> sandbox;  // nullopt: the worker is not confined
  bool operator==(const Train&) const = default;
};

struct Evaluate {
  std::string model;           // a run directory, a model directory or a checkpoint
  std::string split = "test";  // train | val | test
  std::vector<std::string> overrides;
  bool json = false;
  std::optional<Sandbox> sandbox;
  bool operator==(const Evaluate&) const = default;
};

struct Generation {
  std::string prompt;
  int64_t max_tokens = 200, top_k = 0, seed = 0;
  double temperature = 1;
  bool operator==(const Generation&) const = default;
};

struct Predict {
  std::string model, data;
  std::string output = "-";  // a file; "-": standard output
  std::string format;        // csv | jsonl
  std::optional<Sandbox> sandbox;
  std::optional<Generation> generation;  // a text model continues a prompt; `data` is empty
  bool operator==(const Predict&) const = default;
};

struct Export {
  std::string model;   // as in Predict
  std::string format;  // onnx | torchscript | safetensors | pt2
  std::string output;  // a directory that does not exist yet; empty: named after the job and the format
  bool operator==(const Export&) const = default;
};

struct Inspect {
  std::string file;  // a model file or a job file
  std::vector<std::string> overrides;
  bool operator==(const Inspect&) const = default;
};

struct Check {
  std::string job;
  std::vector<std::string> overrides;
  bool json = false;
  double seconds = 25;
  bool operator==(const Check&) const = default;
};

struct Plan {
  std::string job;
  std::vector<std::string> overrides;
  bool json = false;
  double seconds = 10;  // of the short run that measures
  double price = 0;     // of an hour of this machine; 0: not given
  double within_seconds = 0, spend = 0, retrain_seconds = 0, samples_per_day = 0;  // 0: not asked
  std::string machines;  // the text of a table of machine types; empty: no other machine is planned
  std::optional<Sandbox> sandbox;
  bool operator==(const Plan&) const = default;
};

struct Advise {
  std::string job;
  std::vector<std::string> overrides;
  bool json = false;
  double seconds = 10;         // of each short run that measures
  bool apply = false;          // change the options of the job, and measure it again
  bool change_result = false;  // also options that change the trained model
  std::string output;          // the changed job file
  std::optional<Sandbox> sandbox;
  bool operator==(const Advise&) const = default;
};

struct FindRate {
  std::string job;
  std::vector<std::string> overrides;
  bool json = false;
  double lowest = 1e-8, highest = 1;  // learning rates of the range test
  int64_t steps = 100;
  std::string plot;  // a file that ends in .png or .svg; empty: none
  std::optional<Sandbox> sandbox;
  bool operator==(const FindRate&) const = default;
};

using Task = std::variant<Train, Evaluate, Predict, Inspect, Check, Export, Plan, Advise, FindRate>;

std::string to_json(const Task& task);
// Throws Error if the text is not a task, or is a task of another version.
Task parse(const std::string& json);
// Reads the document at `path`. Throws Error if it cannot be read, or like parse().
Task read(const std::string& path);

// A task in memory that a child process can open.
class TaskFile {
 public:
  // Throws Error if the kernel cannot provide the memory.
  explicit TaskFile(const Task& task);
  ~TaskFile();
  TaskFile(TaskFile&& other) noexcept;
  TaskFile& operator=(TaskFile&&) = delete;

  // Returns the path to give to a child process. The path is valid while this object lives.
  std::string path() const;
  // Returns the path to give to a program that replaces this process (execv). From this call on, the kernel keeps the
  // file open across execv.
  std::string path_after_exec() const;

 private:
  int file_ = -1;
};

}  // namespace sinew::task
