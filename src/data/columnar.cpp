#include "data/columnar.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "base/lower_case.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/process.h"
#include "data/unpack.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

constexpr int kNoPyarrow = 3, kNotReadable = 4, kTooLarge = 5;  // exit codes of the script
constexpr int kNotStarted = 126, kNotFound = 127;               // exit codes of env(1)
constexpr double kShortest = 120;                               // seconds that a conversion may take, however small
constexpr double kBytesInASecond = 1e6;
constexpr size_t kLongestReason = 300;

// Writes the CSV of argv[1] to argv[2], with at most argv[3] bytes of CSV and argv[4] bytes of memory. A small file may
// hold a huge table. What is wrong with the file goes to standard output.
constexpr char kScript[] = R"(
import os, resource, sys
sys.path[:] = [folder for folder in sys.path if folder]  # not the files of the current directory
try:
    import pyarrow, pyarrow.csv, pyarrow.feather, pyarrow.ipc, pyarrow.parquet
except ImportError:
    raise SystemExit(3)
csv_bytes, memory = int(sys.argv[3]), int(sys.argv[4])
for limit, most in ((resource.RLIMIT_FSIZE, csv_bytes + 1), (resource.RLIMIT_DATA, memory)):
    hard = resource.getrlimit(limit)[1]
    if most > 0 and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(limit, (most, hard))
try:
    with open(sys.argv[1], "rb") as file:
        start = file.read(4)
        file.seek(0)
        if start == b"PAR1":
            table = pyarrow.parquet.ParquetFile(file).read()
        elif start in (b"ARRO", b"FEA1"):
            table = pyarrow.feather.read_table(file)
        else:
            table = pyarrow.ipc.open_stream(file).read_all()
    for i, field in enumerate(table.schema):
        if pyarrow.types.is_nested(field.type):
            raise ValueError(f"column '{field.name}' holds {field.type}; the cells of a table are numbers, words or dates")
        if pyarrow.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    pyarrow.csv.write_csv(table, sys.argv[2])
except Exception as error:
    if os.path.exists(sys.argv[2]) and os.path.getsize(sys.argv[2]) > csv_bytes:
        raise SystemExit(5)
    print(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
    raise SystemExit(4)
)";

class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& table) {
    std::error_code code;
    const fs::path where = fs::temp_directory_path(code);
    path_ = (where / "sinew-columnar-XXXXXX").string();
    if (code || ::mkdtemp(path_.data()) == nullptr)
      throw Error("DISK_FAILED",
                  table + ": cannot be converted, because no folder can be made in " +
                      (code ? own_variable("TMPDIR") : where.string()),
                  "set TMPDIR to a folder that can be written; in a sandbox no file can be converted: write it as CSV");
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Returns the first line of a file.
std::string first_line_of(const std::string& path) {
  if (!system_disk().exists(path)) return "";
  const std::vector<std::byte> bytes = system_disk().read(path);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\n'));
}

std::string format_of(const std::string& path) {
  return lower_case(fs::path(path).extension().string()) == ".parquet" ? "a Parquet file" : "a Parquet or Arrow file";
}

}  // namespace

bool is_columnar(std::string_view path) {
  static constexpr auto kEndings = std::to_array<std::string_view>({".parquet", ".feather", ".arrow"});
  const std::string lower = lower_case(path);
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return lower.ends_with(ending); });
}

std::vector<std::byte> columnar_as_csv(const std::string& path, uint64_t size, uint64_t limit) {
  const ScratchFolder scratch(path);
  const std::string csv = scratch.file("table.csv"), said = scratch.file("said");
  const std::string chosen = own_variable("SINEW_PYTHON"), python = chosen.empty() ? "python3" : chosen;
  Process process({.command = {"/usr/bin/env", python, "-c", kScript, fs::absolute(path).string(), csv,
                               std::to_string(limit), std::to_string(machine_memory())},
                   .environment = {},
                   .output = said,
                   .death_signal = SIGKILL});
  const auto end = process.wait(kShortest + static_cast<double>(size) / kBytesInASecond);
  if (!end)
    throw Error("DATA_UNREADABLE_FILE", path + ": pyarrow has not read it in time",
                "convert it to CSV, for example with pandas, or split it into several files");
  const bool no_python = end->code == kNotFound || end->code == kNotStarted;
  if (end->code == kNoPyarrow || no_python)
    throw Error(
        "DATA_WRONG_FORMAT",
        path + ": is " + format_of(path) + ", which Sinew reads with the Python package pyarrow, and " + python +
            (no_python ? " cannot be started" : " does not have it"),
        "install it: " + shell_quoted(python) + " -m pip install pyarrow; or name another Python in SINEW_PYTHON");
  if (end->code == kNotReadable)
    throw Error("DATA_WRONG_FORMAT",
                path + ": pyarrow cannot read it: " + printable_start(first_line_of(said), kLongestReason),
                "write the file again, or leave such columns out of it");
  if (end->code == kTooLarge) check_size(limit + 1, limit, path);
  if (*end != ProcessEnd{})
    throw Error("DATA_UNREADABLE_FILE", path + ": the Python that reads it with pyarrow " + to_string(*end),
                "try it: " + shell_quoted(python) + " -c 'import pyarrow'");
  check_size(system_disk().size(csv), limit, path);
  return system_disk().read(csv);
}

}  // namespace sinew::data
