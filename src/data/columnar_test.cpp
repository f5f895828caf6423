#include "data/columnar.h"

#include <sys/stat.h>

#include <cstdlib>

#include "data/fixtures.h"

namespace sinew::data {
namespace {

// Writes the same rows as table.parquet, table.feather and table.csv, and two files that are not tables.
constexpr char kWriter[] = R"(
import csv, datetime, sys
import pyarrow as pa, pyarrow.feather as feather, pyarrow.parquet as parquet
folder, count = sys.argv[1], 40
data = {
    "length": [i / 3 if i % 7 else None for i in range(count)],
    "whole": pa.array([i * 1000003 for i in range(count)], pa.int64()),
    "small": pa.array([i / 8 for i in range(count)], pa.float32()),
    "colour": pa.array([["red", "light, blue", 'a "b"'][i % 3] for i in range(count)]).dictionary_encode(),
    "tame": [i % 2 == 0 for i in range(count)],
    "seen": [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=7 * i) for i in range(count)],
    "kind": ["cat" if i % 3 else "dog" for i in range(count)],
}
table = pa.table(data)
parquet.write_table(table, folder + "/table.parquet")
feather.write_feather(table, folder + "/table.feather")
with open(folder + "/table.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(data)
    for row in zip(*[column.to_pylist() for column in table.columns]):
        out.writerow(["" if value is None else value for value in row])
parquet.write_table(pa.table({"x": [[1, 2], [3]]}), folder + "/nested.parquet")
)";

std::string content_of(const Array& array) {
  return {reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()};
}

class Columnar : public testing::Test {
 protected:
  spec::DataOptions options(const std::string& name) const {
    spec::DataOptions options;
    options.train.path = folder_.path(name);
    options.columns.target = "kind";
    return options;
  }
  std::string error(const std::string& name) const {
    return error_of([&] { open_dataset(options(name), 1); });
  }
  // Makes a program that ends with this exit code.
  std::string python_that_ends_with(int code) const {
    const std::string path = folder_.write("python" + std::to_string(code), "#!/bin/sh\nexit " + std::to_string(code));
    chmod(path.c_str(), 0755);
    return path;
  }

  Folder folder_;
};

TEST_F(Columnar, ParquetAndFeatherAreReadAsTheSameTableInCsv) {
  const char* python = std::getenv("SINEW_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SINEW_PYTHON is not set";
  const std::string script = folder_.write("write.py", kWriter);
  ASSERT_EQ(std::system((std::string(python) + " " + script + " " + folder_.path("")).c_str()), 0);
  const auto csv = open_dataset(options("table.csv"), 1);
  for (const char* name : {"table.parquet", "table.feather"}) {
    const auto table = open_dataset(options(name), 1);
    EXPECT_EQ(table->info().input_shape, csv->info().input_shape) << name;
    EXPECT_EQ(table->info().class_names, csv->info().class_names) << name;
    const Batch found = load_all(*table, Split::train), wanted = load_all(*csv, Split::train);
    EXPECT_TRUE(content_of(found.input) == content_of(wanted.input)) << name;
    EXPECT_TRUE(content_of(found.target) == content_of(wanted.target)) << name;
    EXPECT_HAS(table->info().notes.at(0), std::string(name) + " is read with pyarrow");
  }
  EXPECT_ERROR(error("nested.parquet"), "DATA_DAMAGED_FILE", "column 'x' holds list");
  folder_.write("cut.parquet", "PAR1\x15\x04");
  EXPECT_ERROR(error("cut.parquet"), "DATA_DAMAGED_FILE", "cut.parquet: pyarrow cannot read it");
  folder_.write("named.csv", "PAR1\x15\x04");
  EXPECT_ERROR(error("named.csv"), "DATA_DAMAGED_FILE", "named.csv: pyarrow cannot read it");
}

TEST_F(Columnar, APythonThatCannotReadItIsNamed) {
  const char* python = std::getenv("SINEW_PYTHON");
  const std::string before = python == nullptr ? "" : python;
  folder_.write("x.parquet", "PAR1\x15\x04");
  setenv("SINEW_PYTHON", python_that_ends_with(3).c_str(), 1);
  EXPECT_ERROR(error("x.parquet"), "DATA_WRONG_FORMAT", "python3 does not have it");
  setenv("SINEW_PYTHON", python_that_ends_with(1).c_str(), 1);
  EXPECT_ERROR(error("x.parquet"), "DATA_UNREADABLE_FILE", "ended with exit code 1");
  setenv("SINEW_PYTHON", folder_.path("none").c_str(), 1);
  EXPECT_ERROR(error("x.parquet"), "PROCESS_NOT_STARTED", "none");
  python == nullptr ? unsetenv("SINEW_PYTHON") : setenv("SINEW_PYTHON", before.c_str(), 1);
}

TEST(ColumnarName, EndsInTheNameOfAFormat) {
  for (const char* name : {"a.parquet", "B.PARQUET", "x/y.feather", "z.arrow"}) EXPECT_TRUE(is_columnar_name(name));
  for (const char* name : {"a.csv", "parquet", "a.parquet.csv"}) EXPECT_FALSE(is_columnar_name(name));
}

}  // namespace
}  // namespace sinew::data
