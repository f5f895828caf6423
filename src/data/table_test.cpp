#include "data/table.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "data/fixtures.h"

namespace sinew::data {
namespace {

struct Opened {
  Folder folder;
  spec::DataOptions options;
  explicit Opened(std::string_view text, const std::string& target, const std::string& name = "t.csv") {
    options.train.path = folder.write(name, text);
    options.columns.target = target;
  }
  std::unique_ptr<Dataset> open(uint64_t seed = 0) const { return open_dataset(options, seed); }
  std::string error() const {
    return error_of([&] { open(); });
  }
};

std::vector<float> row_of(const Batch& batch, int64_t i) {
  const int64_t width = batch.input.shape[1];
  return {batch.input.as<float>() + i * width, batch.input.as<float>() + (i + 1) * width};
}

TEST(Table, ColumnsBecomeNumbersAndOnes) {
  Opened t("age,sex,score,y\n10,m,1,no\n20,f,,yes\nNA,f,3,no\n30,,5,yes\n", "y");
  t.options.normalize = "none";
  const auto dataset = t.open();
  const DataInfo& info = dataset->info();
  EXPECT_EQ(info.format, "csv");
  EXPECT_EQ(info.task, Task::classification);
  EXPECT_EQ(info.class_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(info.input_names, (std::vector<std::string>{"age", "age=<missing>", "sex=f", "sex=m", "sex=<missing>",
                                                        "score", "score=<missing>"}));
  EXPECT_EQ(info.input_shape, (Shape{7}));
  const Batch batch = load_all(*dataset, Split::train);
  EXPECT_EQ(row_of(batch, 0), (std::vector<float>{10, 0, 0, 1, 0, 1, 0}));
  EXPECT_EQ(row_of(batch, 1), (std::vector<float>{20, 0, 1, 0, 0, 3, 1}));  // the median of 1, 3 and 5
  EXPECT_EQ(row_of(batch, 2), (std::vector<float>{20, 1, 1, 0, 0, 3, 0}));
  EXPECT_EQ(row_of(batch, 3), (std::vector<float>{30, 0, 0, 0, 1, 5, 0}));
  EXPECT_EQ(batch.target.as<int64_t>()[1], 1);
  EXPECT_EQ(dataset->describe(Split::train, 2), "t.csv:4");
}

// 100 customers with 4 rows each, one row a day; one in ten rows is of the class "yes".
std::string orders() {
  std::string text = "customer,day,size,bought\n";
  for (int i = 0; i < 400; ++i) {
    const int day = (i * 7) % 400;  // the rows are not in the order of time
    char date[16];
    std::snprintf(date, sizeof date, "20%02d-%02d-%02d", 10 + day / 336, 1 + day / 28 % 12, 1 + day % 28);
    text +=
        "c" + std::to_string(i % 100) + "," + date + "," + std::to_string(i % 13) + (i % 10 == 0 ? ",yes\n" : ",no\n");
  }
  return text;
}

// The values of one column in the rows of a split, by their places in the file.
std::set<std::string> values_in(const Dataset& dataset, Split split, const std::string& text, size_t column) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  std::set<std::string> values;
  for (int64_t i = 0; i < dataset.size(split); ++i) {
    const std::string place = dataset.describe(split, i);
    std::string line = lines[std::stoul(place.substr(place.rfind(':') + 1)) - 1];
    for (size_t c = 0; c < column; ++c) line.erase(0, line.find(',') + 1);
    values.insert(line.substr(0, line.find(',')));
  }
  return values;
}

TEST(Table, SplitsAreStratifiedOrFollowAColumn) {
  const std::string text = orders();
  Opened t(text, "bought");
  t.options.columns.ignore = {"customer", "day"};
  t.options.split_val = 0.1;
  t.options.split_test = 0.2;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto stratified = t.open(seed);
    const Batch test = load_all(*stratified, Split::test);
    EXPECT_EQ(std::count(test.target.as<int64_t>(), test.target.as<int64_t>() + test.count(), 1), 8);
    EXPECT_EQ(stratified->info().class_counts, (std::vector<int64_t>{252, 28}));
  }
  const Digest stratified = t.open()->info().digest;
  const Shape width = t.open()->info().input_shape;

  Opened by = Opened(text, "bought");
  by.options = t.options;
  by.options.split_by = "day";
  const auto latest = by.open();
  EXPECT_NE(latest->info().digest, stratified);
  EXPECT_EQ(latest->info().input_shape, width) << "an ignored column decides the splits, but is no input";
  EXPECT_LT(*values_in(*latest, Split::train, text, 1).rbegin(), *values_in(*latest, Split::val, text, 1).begin());
  EXPECT_LT(*values_in(*latest, Split::val, text, 1).rbegin(), *values_in(*latest, Split::test, text, 1).begin());
  EXPECT_THAT(latest->info().notes, testing::Contains(testing::HasSubstr("the splits follow 'day'")));

  by.options.split_by.clear();
  by.options.split_group = "customer";
  const auto grouped = by.open();
  EXPECT_EQ(grouped->info().input_shape, width);
  std::set<std::string> seen;
  for (const Split split : {Split::train, Split::val, Split::test}) {
    for (const std::string& customer : values_in(*grouped, split, text, 0)) EXPECT_TRUE(seen.insert(customer).second);
  }
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_THAT(grouped->info().notes, testing::Contains(testing::HasSubstr("the 100 groups of 'customer'")));
}

TEST(Table, FoldsFollowTheColumnsOfTheSplit) {
  std::string text = "customer,day,size,bought\n";
  for (int row = 0; row < 120; ++row) {
    text += "c" + std::to_string(row * 7 % 30) + ",2024-01-" + (row % 28 < 9 ? "0" : "") +
            std::to_string(row % 28 + 1) + ',' + std::to_string(row) + (row % 3 == 0 ? ",yes\n" : ",no\n");
  }
  Opened t(text, "bought");
  t.options.columns.ignore = {"customer", "day"};
  t.options.split_test = 0.2;
  const Digest whole = t.open()->info().digest;
  t.options.folds = 4;
  std::set<std::string> digests, validated;
  for (int64_t fold = 0; fold < 4; ++fold) {
    t.options.fold = fold;
    const auto dataset = t.open();
    EXPECT_EQ(dataset->size(Split::val), 24);
    EXPECT_EQ(dataset->size(Split::train), 72);
    digests.insert(to_hex(dataset->info().digest));
    for (const std::string& size : values_in(*dataset, Split::val, text, 2)) EXPECT_TRUE(validated.insert(size).second);
    EXPECT_THAT(dataset->info().notes, testing::Contains(testing::HasSubstr("fold " + std::to_string(fold) + " of 0")));
  }
  EXPECT_EQ(digests.size(), 4U) << "metrics of two folds are of different data";
  EXPECT_FALSE(digests.contains(to_hex(whole)));
  t.options.fold.reset();
  EXPECT_TRUE(digests.contains(to_hex(t.open()->info().digest))) << "a single training is one of the first fold";
  t.options.split_group = "customer";
  std::set<std::string> customers;
  for (int64_t fold = 0; fold < 4; ++fold) {
    t.options.fold = fold;
    for (const std::string& one : values_in(*t.open(), Split::val, text, 0)) EXPECT_TRUE(customers.insert(one).second);
  }
  t.options.split_group.clear();
  t.options.split_by = "day";
  const auto later = t.open();
  EXPECT_LE(*values_in(*later, Split::train, text, 1).rbegin(), *values_in(*later, Split::val, text, 1).begin());
  EXPECT_LE(*values_in(*later, Split::val, text, 1).rbegin(), *values_in(*later, Split::test, text, 1).begin());
  t.options.folds = 200;
  EXPECT_ERROR(t.error(), "DATA_BAD_SPLIT", "201 samples");
  t.options.val = t.options.train;
  EXPECT_ERROR(t.error(), "DATA_BAD_SPLIT", "folds");
}

TEST(Table, AColumnThatCannotSplitIsRefused) {
  Opened t("a,b,when,y\n1,x,2024-01-01,0\n2,z,,1\n3,x,2024-01-03,0\n4,z,2024-01-04,1\n", "y");
  t.options.split_val = 0.25;
  const auto error = [&](const std::string& by) {
    t.options.split_by = by;
    return t.error();
  };
  EXPECT_ERROR(error("when"), "DATA_BAD_CELL", "t.csv:3: 'when' is missing");
  EXPECT_ERROR(error("b"), "DATA_BAD_COLUMN", "neither dates nor numbers");
  EXPECT_ERROR(error("y"), "DATA_BAD_OPTION", "the column to predict");
  EXPECT_ERROR(error("wen"), "DATA_UNKNOWN_COLUMN", "did you mean 'when'");
  t.options.split_by.clear();
  t.options.split_group = "when";
  const auto dataset = t.open();
  EXPECT_THAT(dataset->info().notes, testing::Contains(testing::HasSubstr("1 rows have no 'when'")));
}

// Any search through all columns for each column would make these tables take minutes or hours.
TEST(Table, MayHaveManyColumns) {
  constexpr size_t kColumns = 20'000;
  const auto table = [](const auto& name_of) {
    std::string text = "y";
    for (size_t i = 0; i < kColumns; ++i) text += ',' + name_of(i);
    for (int row = 0; row < 2; ++row) {
      text += '\n' + std::to_string(row);
      for (size_t i = 0; i < kColumns; ++i) text += row == 0 ? ",1" : ",2";
    }
    return text + '\n';
  };
  for (const bool equal : {true, false}) {
    Opened t(table([&](size_t i) { return equal ? std::string("a") : "a" + std::to_string(i); }), "y");
    t.options.task = "classification";
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string name = !equal ? "a" + std::to_string(i) : i == 0 ? "a" : "a." + std::to_string(i);
      t.options.columns.features.push_back(name);
      t.options.columns.numeric.push_back(name);
    }
    t.options.val.path = t.options.train.path;
    const auto trained = t.open();
    EXPECT_EQ(trained->info().input_names.size(), kColumns);
    EXPECT_EQ(trained->info().columns.size(), kColumns + 1);
    const DataInfo known = info_from_json(info_json(trained->info()));
    EXPECT_EQ(open_inference_data(t.options, known, t.options.train, true)->info().test_size, 2);
  }
}

TEST(Table, RefusesTargetsThatAreAlikeIn32Bits) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 40; ++i) rows += std::to_string(i) + "," + std::to_string(1700000000 + 30 * i) + "\n";
  Opened t(rows, "y");
  t.options.task = "regression";
  EXPECT_ERROR(t.error(), "DATA_TARGET_ROUNDED", "'y'");
}

TEST(Table, NormalisesWithStatisticsOfTrainAndMissingBecomesTheMedian) {
  Opened t("x,c,y\n1,7,0.5\n2,7,1.5\n,7,2.5\n9,7,3.5\n", "y");
  const auto dataset = t.open();
  EXPECT_EQ(dataset->info().task, Task::regression);
  EXPECT_DOUBLE_EQ(dataset->info().target_mean.at(0), 2);
  const Batch batch = load_all(*dataset, Split::train);
  const double deviation = std::sqrt((9.0 + 4.0 + 25.0) / 3);  // the standard deviation of 1, 2, 9 around 4
  EXPECT_FLOAT_EQ(row_of(batch, 0)[0], static_cast<float>(-3 / deviation));
  EXPECT_EQ(dataset->info().input_names, (std::vector<std::string>{"x", "x=<missing>"})) << "c is constant";
  EXPECT_FLOAT_EQ(row_of(batch, 2)[0], static_cast<float>(-2 / deviation));
  EXPECT_EQ(row_of(batch, 2)[1], 1);
  EXPECT_EQ(batch.target.as<float>()[3], 3.5F);
}

// The content of val and test rows must not affect the statistics or the columns.
TEST(Table, OtherSplitsDoNotAffectStatisticsOrColumns) {
  std::string text = "x,w,y\n";
  for (int i = 0; i < 200; ++i)
    text += std::to_string(i % 17) + "," + (i % 3 == 0 ? "a" : "b") + "," + std::to_string(i % 2) + "\n";
  Opened t(text, "y");
  t.options.split_val = 0.2;
  t.options.split_test = 0.1;
  const auto before = t.open(3);
  std::set<std::string> held_out;
  for (const Split split : {Split::val, Split::test}) {
    for (int64_t i = 0; i < before->size(split); ++i) held_out.insert(before->describe(split, i));
  }
  EXPECT_EQ(held_out.size(), 60U);
  std::string changed = "x,w,y\n";
  for (int i = 0; i < 200; ++i) {
    const bool out = held_out.count("t.csv:" + std::to_string(i + 2)) > 0;
    changed += out ? (i % 2 == 0 ? ",new" : "999999,") : std::to_string(i % 17) + "," + (i % 3 == 0 ? "a" : "b");
    changed += "," + std::to_string(i % 2) + "\n";
  }
  t.folder.write("t.csv", changed);
  const auto after = t.open(3);
  EXPECT_EQ(after->info().input_names, before->info().input_names);
  const Batch first = load_all(*before, Split::train), second = load_all(*after, Split::train);
  ASSERT_EQ(first.input.bytes.size(), second.input.bytes.size());
  EXPECT_EQ(std::memcmp(first.input.bytes.data(), second.input.bytes.data(), first.input.bytes.size()), 0);
  EXPECT_NE(after->info().digest, before->info().digest);
  // An unseen word sets no indicator, and a missing number becomes the median.
  const Batch val = load_all(*after, Split::val);
  bool word = false, number = false;
  for (int64_t i = 0; i < val.count(); ++i) {
    const auto row = row_of(val, i);
    word = word || (row[1] == 0 && row[2] == 0);
    number = number || row[0] > 1000;
  }
  EXPECT_TRUE(word && number);
}

TEST(Table, OtherFilesUseTrainsColumnsInAnyOrder) {
  Opened t("x,w,y\n1,a,p\n2,b,q\n3,,p\n", "y");
  t.options.normalize = "none";
  t.options.val.path = t.folder.write("v.csv", "y,extra,w,x\nq,9,b,5\np,9,zebra,\n");
  const auto dataset = t.open();
  const Batch batch = load_all(*dataset, Split::val);
  EXPECT_EQ(row_of(batch, 0), (std::vector<float>{5, 0, 1, 0}));
  EXPECT_EQ(row_of(batch, 1),
            (std::vector<float>{2, 0, 0, 1}));  // an unseen word counts as missing where train has missing values
  EXPECT_EQ(batch.target.as<int64_t>()[0], 1);
  t.folder.write("v.csv", "y,w\nq,b\n");
  EXPECT_ERROR(t.error(), "DATA_UNKNOWN_COLUMN", "'x'");
  t.folder.write("v.csv", "y,w,x\nq,b,5\nr,b,6\n");
  EXPECT_ERROR(t.error(), "DATA_UNKNOWN_CLASS", "v.csv:3: the target 'y' is 'r'");
  t.folder.write("v.csv", "y,w,x\nq,b,5\nq,b,six\n");
  EXPECT_ERROR(t.error(), "DATA_BAD_CELL", "v.csv:3:5: column 'x' holds 'six'");
  t.options.on_corrupt = "skip";
  EXPECT_EQ(t.open()->info().val_size, 1);
}

TEST(Table, TheTargetDecidesTheTask) {
  const auto task_of = [](const std::function<std::string(int)>& value, const std::string& task = "auto") {
    std::string text = "x,y\n";
    for (int i = 0; i < 100; ++i) text += std::to_string(i) + "," + value(i) + "\n";
    Opened t(text, "y");
    t.options.task = task;
    const auto dataset = t.open();
    EXPECT_EQ(dataset->info().reasons.count("data.task"), task == "auto" ? 1U : 0U);
    return std::pair(dataset->info().task, dataset->info().class_names);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(task_of([](int i) { return std::to_string(i % 3 * 5 - 5); }),
            (std::pair{Task::classification, Names{"-5", "0", "5"}}));
  EXPECT_EQ(task_of([](int i) { return i % 2 == 0 ? "1" : "1.0"; }, "regression").first, Task::regression);
  EXPECT_EQ(task_of([](int i) { return std::to_string(i); }).first, Task::regression);
  EXPECT_EQ(task_of([](int i) { return std::to_string(i % 2) + ".5"; }).first, Task::regression);
  EXPECT_EQ(task_of([](int i) { return std::to_string(i % 2) + ".5"; }, "classification").second,
            (Names{"0.5", "1.5"}));
  EXPECT_EQ(task_of([](int i) { return i % 2 == 0 ? "True" : "False"; }).second, (Names{"False", "True"}));
}

TEST(Table, ColumnsMayBeChosenIgnoredAndDeclared) {
  Opened t("id,zip,x,y\na,007,1,p\nb,008,2,q\nc,007,3,p\n", "y");
  t.options.columns.ignore = {"id"};
  t.options.columns.categorical = {"zip"};
  EXPECT_EQ(t.open()->info().input_names, (std::vector<std::string>{"zip=007", "zip=008", "x"}));
  t.options.columns = {"y", {"x"}, {}, {}};
  EXPECT_EQ(t.open()->info().input_names, (std::vector<std::string>{"x"}));
  t.options.columns.features = {"x", "nope"};
  EXPECT_ERROR(t.error(), "DATA_UNKNOWN_COLUMN", "'nope'");
  t.options.columns = {"Y", {}, {}, {}};
  EXPECT_ERROR(t.error(), "DATA_UNKNOWN_COLUMN", "'Y'");
  t.options.columns = {"", {}, {}, {}};
  EXPECT_ERROR(t.error(), "DATA_BAD_OPTION", "data.columns.target");
  t.options.columns = {"y", {"y"}, {}, {}};
  EXPECT_ERROR(t.error(), "DATA_BAD_OPTION", "'y'");
}

TEST(Table, OneWordAmongThousandsOfNumbersIsABadCell) {
  std::string text = "x,y\n";
  for (int i = 0; i < 5000; ++i)
    text += (i == 4321 ? "word" : std::to_string(i % 5)) + "," + std::to_string(i % 2) + "\n";
  Opened t(text, "y");
  EXPECT_ERROR(t.error(), "DATA_BAD_CELL", "t.csv:4323:1: column 'x' holds 'word', which is not a number");
  t.options.columns.on_bad_cell = "missing";
  const DataInfo info = t.open()->info();
  EXPECT_EQ(info.input_names, (std::vector<std::string>{"x", "x=<missing>"}));
  EXPECT_EQ(info.train_size, 5000);
  ASSERT_EQ(info.notes.size(), 1U);
  EXPECT_HAS(info.notes[0], "column 'x': 1 cell that does not fit counts as missing, the first: ");
  EXPECT_HAS(info.notes[0], "t.csv:4323:1: holds 'word'");
  t.options.columns.on_bad_cell = "error";
  t.options.columns.categorical = {"x"};
  EXPECT_EQ(t.open()->info().input_names, (std::vector<std::string>{"x=0", "x=1", "x=2", "x=3", "x=4", "x=<other>"}));
}

// ---- hints ---------------------------------------------------------------------------------------------------------

std::string hint_of(const std::string& error) {
  return error.substr(std::min(error.find(" | "), error.size()));
}
bool says(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

// What a hint tells to do must have an effect, in the place where the error appears.
TEST(TableHints, ABadCellOfAnInput) {
  std::string text = "x,y\n";
  for (int i = 0; i < 40; ++i) text += (i == 9 ? "word" : std::to_string(i % 5)) + "," + std::to_string(i % 2) + "\n";
  Opened t(text, "y");
  const std::string hint = hint_of(t.error());
  for (const char* cure : {"data.columns.on_bad_cell: missing", "data.on_corrupt: skip", "data.columns.categorical"})
    EXPECT_HAS(hint, cure);
  Opened missing(text, "y"), skip(text, "y"), categorical(text, "y");
  missing.options.columns.on_bad_cell = "missing";
  skip.options.on_corrupt = "skip";
  categorical.options.columns.categorical = {"x"};
  for (const Opened* one : {&missing, &skip, &categorical}) EXPECT_EQ(one->error(), "");
}

TEST(TableHints, ABadCellOfTheTarget) {
  std::string text = "x,y\n";
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + "," + (i == 9 ? "two" : std::to_string(i % 2)) + "\n";
  Opened t(text, "y");
  std::string hint = hint_of(t.error());
  EXPECT_FALSE(says(hint, "on_bad_cell")) << "a row needs a target, so this would not help: " << hint;
  EXPECT_HAS(hint, "data.on_corrupt: skip");
  EXPECT_HAS(hint, "data.columns.categorical");
  t.options.columns.on_bad_cell = "missing";
  EXPECT_ERROR(t.error(), "DATA_BAD_TARGET", "t.csv:11");
  t.options.on_corrupt = "skip";
  EXPECT_EQ(t.error(), "");
  t.options.on_corrupt = "fail";
  t.options.columns.categorical = {"y"};
  EXPECT_EQ(t.error(), "");
  t.options.columns = {"y"};
  t.options.task = "regression";
  hint = hint_of(t.error());
  EXPECT_HAS(hint, "data.on_corrupt: skip");
  EXPECT_FALSE(says(hint, "categorical")) << "a regression predicts numbers: " << hint;
}

TEST(TableHints, AFileForATrainedModel) {
  Opened t("x,y\n1,a\n2,b\n4,a\n", "y");
  const DataInfo trained = t.open()->info();
  spec::DataSource source;
  const auto error = [&](const spec::DataOptions& options, std::string_view text, bool labelled) {
    source.path = t.folder.write("new.csv", text);
    return error_of([&] { open_inference_data(options, trained, source, labelled); });
  };
  const char *cell = "x,y\n1,a\nten,b\n", *line = "x,y\n1,a\n2\n";
  for (const char* text : {cell, line}) {
    const std::string hint = hint_of(error({}, text, false));
    EXPECT_HAS(hint, "delete");
    for (const char* option : {"on_corrupt", "categorical", "job file"})
      EXPECT_FALSE(says(hint, option)) << "sinew predict takes no options: " << hint;
  }
  spec::DataOptions skip, missing;
  skip.on_corrupt = "skip";
  missing.columns.on_bad_cell = "missing";
  EXPECT_HAS(hint_of(error({}, cell, true)), "data.on_corrupt=skip");
  EXPECT_HAS(hint_of(error({}, cell, true)), "data.columns.on_bad_cell=missing");
  EXPECT_FALSE(says(hint_of(error({}, cell, true)), "categorical")) << "the model keeps the kinds of its columns";
  EXPECT_HAS(hint_of(error({}, line, true)), "data.on_corrupt=skip");
  EXPECT_EQ(error(skip, cell, true) + error(missing, cell, true) + error(skip, line, true), "");
}

TEST(TableHints, ADateThatFitsTheOtherOrder) {
  std::string text = "when,y\n";
  for (int i = 0; i < 1100; ++i)
    text += std::to_string(i < 1050 ? i % 12 + 1 : 25) + "/" + std::to_string(i % 11 + 1) + "/2024," +
            std::to_string(i % 2) + "\n";
  Opened t(text, "y");
  EXPECT_ERROR(t.error(), "DATA_BAD_CELL", "t.csv:1052:1: column 'when' holds '25/6/2024'");
  EXPECT_HAS(hint_of(t.error()), "data.table.dates: day_first");
  t.options.table.dates = "day_first";
  EXPECT_EQ(t.error(), "");
}

TEST(TableHints, NoColumnIsLeft) {
  EXPECT_FALSE(says(Opened("x,y\n1,a\n1,b\n1,a\n", "y").error(), "categorical")) << "a constant stays one";
  std::string ids = "x,z,y\n";
  for (int i = 0; i < 30; ++i) ids += "name" + std::to_string(i) + ",1," + std::to_string(i % 2) + "\n";
  Opened t(ids, "y");
  EXPECT_HAS(hint_of(t.error()), "data.columns.categorical: ['x']");
  t.options.columns.categorical = {"x"};
  EXPECT_EQ(t.error(), "");
}

TEST(TableHints, TooManyClasses) {
  std::string words = "x,y\n", numbers = "x,y\n";
  for (int i = 0; i < 1200; ++i) {
    words += std::to_string(i % 7) + ",name" + std::to_string(i) + "\n";
    numbers += std::to_string(i % 7) + "," + std::to_string(i) + "\n";
  }
  EXPECT_ERROR(Opened(words, "y").error(), "DATA_TOO_MANY_CLASSES", "1,200 different values");
  EXPECT_FALSE(says(Opened(words, "y").error(), "regression")) << "words are no numbers";
  Opened t(numbers, "y");
  t.options.task = "classification";
  EXPECT_ERROR(t.error(), "DATA_TOO_MANY_CLASSES", "regression");
}

// --------------------------------------------------------------------------------------------------------------------

TEST(Table, ErrorsNameFileAndLine) {
  EXPECT_ERROR(Opened("x,y\n1,a\n2,\n3,b\n", "y").error(), "DATA_BAD_TARGET", "t.csv:3: the target 'y'");
  EXPECT_ERROR(Opened("x,y\n1,a\n2\n3,b\n", "y").error(), "DATA_BAD_ROW", "t.csv:3: has 1 field");
  EXPECT_ERROR(Opened("x,y\n1,a\ninf,b\n3,b\n", "y").error(), "DATA_BAD_CELL", "t.csv:3:1: column 'x' holds inf");
  EXPECT_ERROR(Opened("x,y\n", "y").error(), "DATA_EMPTY", "t.csv");
  EXPECT_ERROR(Opened("y\n1\n", "y").error(), "DATA_BAD_COLUMN", "t.csv");
  EXPECT_ERROR(Opened("x,y\n1,a\n2,a\n", "y").error(), "DATA_BAD_COLUMN", "'y' is 'a'");
  EXPECT_ERROR(Opened("x,y\nNA,a\n,b\n", "y").error(), "DATA_BAD_COLUMN", "column 'x'");
  Opened bytes("x,y\na\xFF,a\nb,b\n", "y");
  EXPECT_EQ(bytes.open()->info().input_names[0], "x=a\xC3\xBF");  // as windows-1252
  bytes.options.table.encoding = "utf-8";
  EXPECT_ERROR(bytes.error(), "DATA_NOT_UTF8", "t.csv:2:2: byte 0xFF");
  std::string ids = "x,y\n";
  for (int i = 0; i < 30; ++i) ids += "name" + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  EXPECT_ERROR(Opened(ids, "y").error(), "DATA_BAD_COLUMN", "column 'x' is identifier");
  Opened regression("x,y\n1,2\n2,three\n", "y");
  regression.options.task = "regression";
  EXPECT_ERROR(regression.error(), "DATA_BAD_CELL", "t.csv:3:3: column 'y' holds 'three'");
}

// Every line has a few keys of its own. Such a file must not make (rows * columns) grow without bound.
TEST(Table, LinesThatShareNoKeysAreRefusedBeforeTheyFillTheMemory) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "{\"k" + std::to_string(i) + "\":1,\"y\":" + std::to_string(i % 2) + "}\n";
  EXPECT_ERROR(Opened(text, "y", "t.jsonl").error(), "DATA_TOO_MANY_COLUMNS", "data.columns.features");
}

// If the job names the columns, every other column must cost only its name and have no cells.
TEST(Table, KeysThatTheJobDoesNotNameCostNothing) {
  std::string text;
  for (int i = 0; i < 200'000; ++i)
    text +=
        "{\"k" + std::to_string(i) + "\":1,\"x\":" + std::to_string(i % 7) + ",\"y\":" + std::to_string(i % 2) + "}\n";
  Opened t(text, "y", "t.jsonl");
  t.options.columns.features = {"x"};
  const auto dataset = t.open();
  EXPECT_EQ(dataset->info().train_size, 200'000);
  EXPECT_EQ(dataset->info().input_names, std::vector<std::string>{"x"});
}

// "nan" parses as a number, but it cannot be ordered among numbers.
TEST(Table, ClassNamesDoNotDependOnTheOrderOfRows) {
  const auto class_names = [](const std::vector<std::string>& labels) {
    std::string text;
    for (int i = 0; i < 3; ++i) {
      for (const std::string& label : labels)
        text += "{\"x\":1,\"z\":" + std::to_string(i) + ",\"y\":\"" + label + "\"}\n";
    }
    return Opened(text, "y", "t.jsonl").open()->info().class_names;
  };
  const std::vector<std::string> expected = {"-nan", "10", "2", "9", "nan"};
  EXPECT_EQ(class_names({"10", "9", "nan", "2", "-nan"}), expected);
  EXPECT_EQ(class_names({"2", "-nan", "9", "nan", "10"}), expected);
  EXPECT_EQ(class_names({"10", "9", "inf", "2"}), (std::vector<std::string>{"2", "9", "10", "inf"}));
  EXPECT_EQ(class_names({"inf", "2", "10", "9"}), (std::vector<std::string>{"2", "9", "10", "inf"}));
}

TEST(Table, StringsOfJsonAreNumbersWhereTheJobSaysSo) {
  const std::string text = R"({"x":"1.5","y":1}
{"x":"2","y":2}
{"x":4,"y":3}
)";
  Opened t(text, "y", "t.jsonl");
  t.options.columns.numeric = {"x"};
  const auto dataset = t.open();
  EXPECT_EQ(dataset->info().input_names, std::vector<std::string>{"x"});
  const Batch batch = load_all(*dataset, Split::train);
  EXPECT_LT(row_of(batch, 0)[0], row_of(batch, 1)[0]);
  EXPECT_LT(row_of(batch, 1)[0], row_of(batch, 2)[0]);
  Opened wrong("{\"x\":\"1\",\"y\":1}\n{\"x\":\"12 kg\",\"y\":2}\n", "y", "t.jsonl");
  wrong.options.columns.numeric = {"x"};
  EXPECT_ERROR(wrong.error(), "DATA_BAD_CELL", "12 kg");
}

TEST(Table, SkipLeavesOutBrokenRowsAndReportsThem) {
  Opened t("x,y\n1,a\n2\n3,\n4,b\n5,a,9\n6,b\n", "y");
  t.options.on_corrupt = "skip";
  const auto dataset = t.open();
  EXPECT_EQ(dataset->info().train_size, 3);
  EXPECT_EQ(dataset->describe(Split::train, 1), "t.csv:5");
  const std::string reason = dataset->info().reasons.at("data.on_corrupt");
  EXPECT_HAS(reason, "3 rows");
  EXPECT_HAS(reason, "t.csv:3: has 1 field");
}

TEST(Table, ReadsTheSameContentInThreeFormats) {
  const auto batch_of = [](std::string_view text, const std::string& name) {
    Opened t(text, "y", name);
    const auto dataset = t.open();
    const Batch batch = load_all(*dataset, Split::train);
    return std::tuple(dataset->info().input_names, row_of(batch, 0), row_of(batch, 1), row_of(batch, 2));
  };
  const auto csv = batch_of("x,w,y\n1.5,a b,p\n2,,q\n,c,p\n", "t.csv");
  EXPECT_EQ(csv, batch_of("x\tw\ty\n1.5\ta b\tp\n2\t\tq\n\tc\tp\n", "t.tsv"));
  EXPECT_EQ(
      csv,
      batch_of("{\"x\":1.5,\"w\":\"a b\",\"y\":\"p\"}\n{\"x\":2,\"y\":\"q\"}\n{\"y\":\"p\",\"w\":\"c\",\"x\":null}\n",
               "t.jsonl"));
  EXPECT_EQ(csv, batch_of(gzipped("x,w,y\n1.5,a b,p\n2,,q\n,c,p\n"), "t.csv.gz"));
}

// Returns the path of a real table, or "" if SINEW_DATA, the folder that holds them, is not set.
std::string real(const std::string& name) {
  const char* root = std::getenv("SINEW_DATA");
  return root == nullptr ? "" : std::string(root) + "/tabular/" + name;
}

TEST(RealTables, Diamonds) {
  if (real("diamonds.csv").empty()) GTEST_SKIP() << "SINEW_DATA is not set";
  spec::DataOptions options;
  options.train.path = real("diamonds.csv");
  options.columns.target = "price";
  options.split_test = 0.1;
  const auto dataset = open_dataset(options, 1);
  EXPECT_EQ(dataset->info().task, Task::regression);
  EXPECT_EQ(dataset->info().train_size + dataset->info().test_size, 53940);
  EXPECT_EQ(dataset->info().input_shape, (Shape{6 + 5 + 7 + 8}));
  EXPECT_NEAR(dataset->info().target_mean.at(0), 3932.8, 40);
  const Batch batch = load_all(*dataset, Split::train);
  for (int64_t c = 0; c < 26; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < batch.count(); ++i) {
      const double value = batch.input.as<float>()[i * 26 + c];
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(batch.count());
    const bool number = dataset->info().input_names[static_cast<size_t>(c)].find('=') == std::string::npos;
    EXPECT_NEAR(number ? sum / count : 0, 0, 1e-4);
    EXPECT_NEAR(number ? squares / count : 1, 1, 1e-4);
    EXPECT_TRUE(number || sum == squares);
  }
}

TEST(RealTables, TitanicPenguinsMpg) {
  if (real("titanic.csv").empty()) GTEST_SKIP() << "SINEW_DATA is not set";
  spec::DataOptions options;
  options.train.path = real("titanic.csv");
  options.columns.target = "survived";
  auto dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().classes, 2);
  EXPECT_EQ(dataset->info().train_size, 891);
  options.train.path = real("penguins.csv");
  options.columns.target = "species";
  dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"Adelie", "Chinstrap", "Gentoo"}));
  options.train.path = real("mpg.csv");
  options.columns.target = "mpg";
  dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().columns.back().name, "name");
  EXPECT_EQ(dataset->info().columns.back().kind, "identifier");
  EXPECT_EQ(dataset->info().task, Task::regression);
  EXPECT_EQ(dataset->info().train_size, 398);
}

}  // namespace
}  // namespace sinew::data
