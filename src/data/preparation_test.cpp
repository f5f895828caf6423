#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "data/data.h"
#include "data/rows.h"
#include "data/scratch_folder.h"

namespace sinew::data {
namespace {

TEST(Preparation, TheListOfMissingWordsIsTheOneOfTheReader) {
  for (const std::string& word : missing_words()) EXPECT_TRUE(is_missing(word)) << word;
  EXPECT_FALSE(is_missing("no"));
  EXPECT_EQ(missing_words().size(), 22U);
}

class PreparedTable : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ostringstream file;
    file << "size,colour,seen,answer\n";
    for (int i = 0; i < 60; ++i) {
      file << (i % 7 == 0 ? "" : std::to_string(i * 1.5)) << ',' << (i % 3 == 0 ? "red" : "green") << ",2024-0"
           << 1 + i % 9 << "-15 1" << i % 10 << ":30," << (i % 2 == 0 ? "a" : "b") << '\n';
    }
    options_.format = "csv";
    options_.train.path = folder_.write("train.csv", file.str());
    options_.split_val = 0.2;
    options_.split_test = 0;
    options_.columns.target = "answer";
  }
  Folder folder_;
  spec::DataOptions options_;
};

TEST_F(PreparedTable, MadeUpCellsAreEncodedAsThoseOfAFile) {
  const auto trained = open_dataset(options_, 1);
  const DataInfo info = info_from_json(info_json(trained->info()));
  const Preparation preparation = preparation_of(info);
  ASSERT_EQ(preparation.columns.size(), 3U);
  EXPECT_EQ(preparation.columns[0].kind, PreparedColumn::Kind::number);
  EXPECT_GE(preparation.columns[0].missing_at, 0);
  EXPECT_EQ(preparation.columns[1].kind, PreparedColumn::Kind::value);
  EXPECT_EQ(preparation.columns[1].places.size(), 2U);
  EXPECT_EQ(preparation.columns[2].kind, PreparedColumn::Kind::date);
  EXPECT_TRUE(preparation.columns[2].hours);

  spec::DataSource source;
  source.path = folder_.write("new.csv", "size,colour,seen\n12.5,red,2021-03-04 05:06\n,blue,\n-3,,1999-12-31\n");
  const auto read = open_inference_data(options_, info, source, false);
  const std::vector<int64_t> every = {0, 1, 2};
  const Batch wanted = read->load(Split::test, every, {});

  const double none = std::numeric_limits<double>::quiet_NaN();
  const Array made =
      encode_columns(info, {{{12.5, none, -3}, {}}, {{}, {"red", "blue", ""}}, {{1614834360, none, 946598400}, {}}});
  ASSERT_EQ(made.shape, wanted.input.shape);
  for (int64_t i = 0; i < made.count(); ++i) EXPECT_EQ(made.as<float>()[i], wanted.input.as<float>()[i]) << i;
}

}  // namespace
}  // namespace sinew::data
