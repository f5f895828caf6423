#include "data/columnar.h"

#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "data/fixtures.h"
#include "data/inference.h"

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
parquet.write_table(pa.table({"length": [1.234, 2.5]}), folder + "/length.parquet")
parquet.write_table(pa.table({"country": ["NA", "US"] * 20, "code": ["1", "2"] * 20, "__index_level_0__": list(range(40)),
                              "kind": ["cat", "dog"] * 20}), folder + "/words.parquet")
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
  EXPECT_ERROR(error("nested.parquet"), "DATA_WRONG_FORMAT", "column 'x' holds list");
  folder_.write("cut.parquet", "PAR1\x15\x04");
  EXPECT_ERROR(error("cut.parquet"), "DATA_WRONG_FORMAT", "cut.parquet: pyarrow cannot read it");
  folder_.write("named.csv", "PAR1\x15\x04");
  EXPECT_ERROR(error("named.csv"), "DATA_WRONG_FORMAT", "named.csv: is a Parquet file");
  folder_.write("both/1.parquet", "PAR1");
  folder_.write("both/2.csv", "a,b\n1,2\n");
  EXPECT_ERROR(error("both"), "DATA_WRONG_FORMAT", "several formats");
  // Words that look like numbers or like missing values are words, and an index of pandas is no input.
  const DataInfo words = open_dataset(options("words.parquet"), 1)->info();
  std::map<std::string, std::string> kinds;
  for (const ColumnFacts& column : words.columns) kinds[column.name] = column.kind;
  EXPECT_EQ(kinds["country"], "category");
  EXPECT_EQ(kinds["code"], "category");
  EXPECT_EQ(kinds["__index_level_0__"], "ignored");
  // A model that was trained on numbers with decimal commas reads those of a Parquet file as they are.
  folder_.write("commas.csv", "length;kind\n1.234,5;cat\n2,25;dog\n3,5;cat\n0,125;dog\n");
  const DataInfo trained = info_from_json(info_json(open_dataset(options("commas.csv"), 1)->info()));
  spec::DataSource source;
  source.path = folder_.path("length.parquet");
  const Batch exact = load_all(*open_inference_data(options("commas.csv"), trained, source, false), Split::test);
  EXPECT_LT(exact.input.as<float>()[0], exact.input.as<float>()[1]) << "1.234 and 2.5";
}

// A few bytes of Parquet may be a table of any size.
TEST_F(Columnar, ATableThatIsTooLargeIsNotWrittenToItsEnd) {
  const char* python = std::getenv("SINEW_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SINEW_PYTHON is not set";
  const std::string script = folder_.write(
      "write.py",
      "import sys, pyarrow as pa, pyarrow.parquet as parquet\n"
      "parquet.write_table(pa.table({'x': pa.array([123456789] * 1000000)}), sys.argv[1] + '/bomb.parquet')\n");
  ASSERT_EQ(std::system((std::string(python) + " " + script + " " + folder_.path("")).c_str()), 0);
  const std::string path = folder_.path("bomb.parquet");
  EXPECT_GT(columnar_as_csv(path, 1000, 20'000'000).size(), 9'000'000U);
  EXPECT_ERROR(error_of([&] { columnar_as_csv(path, 1000, 1'000'000); }), "DATA_FILE_TOO_LARGE", "bomb.parquet");
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
  EXPECT_ERROR(error("x.parquet"), "DATA_WRONG_FORMAT", "none cannot be started");
  python == nullptr ? unsetenv("SINEW_PYTHON") : setenv("SINEW_PYTHON", before.c_str(), 1);
}

TEST(ColumnarName, EndsInTheNameOfAFormat) {
  for (const char* name : {"a.parquet", "B.PARQUET", "x/y.feather", "z.arrow"}) EXPECT_TRUE(is_columnar(name));
  for (const char* name : {"a.csv", "parquet", "a.parquet.csv"}) EXPECT_FALSE(is_columnar(name));
}

}  // namespace
}  // namespace sinew::data
