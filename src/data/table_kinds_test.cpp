// Tests how the kinds of columns become input, in training files and in new files for a trained model.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/number_text.h"
#include "data/encoding.h"
#include "data/fixtures.h"

namespace sinew::data {
namespace {

struct Job {
  Folder folder;
  spec::DataOptions options;
  explicit Job(std::string_view text, const std::string& target = "y", const std::string& name = "t.csv") {
    options.train.path = folder.write(name, text);
    options.columns.target = target;
    options.normalize = "none";
  }
  std::unique_ptr<Dataset> open() const { return open_dataset(options, 3); }
  DataInfo info() const { return open()->info(); }
  std::string error() const {
    return error_of([&] { open(); });
  }
  ColumnFacts column(const std::string& name) const {
    const DataInfo found = info();
    for (const ColumnFacts& facts : found.columns) {
      if (facts.name == name) return facts;
    }
    ADD_FAILURE() << "no column " << name;
    return {};
  }
  // The new file as the trained model sees it.
  std::unique_ptr<Dataset> predict(std::string_view text, const std::string& name = "new.csv") const {
    spec::DataSource source;
    source.path = folder.write(name, text);
    return open_inference_data(options, info_from_json(info_json(info())), source, false);
  }
};

// The values of the inputs of one row, by their names.
std::map<std::string, float> row(const Dataset& dataset, Split split, int64_t i) {
  const Batch batch = load_all(dataset, split);
  const std::vector<std::string>& names = dataset.info().input_names;
  std::map<std::string, float> values;
  for (size_t c = 0; c < names.size(); ++c)
    values[names[c]] = batch.input.as<float>()[i * batch.input.shape[1] + static_cast<int64_t>(c)];
  return values;
}

std::string any_note(const DataInfo& info, const std::string& word) {
  for (const std::string& note : info.notes) {
    if (note.find(word) != std::string::npos) return note;
  }
  return "";
}

TEST(TableKinds, DatesBecomeNumbersAndPointsOfCircles) {
  Job job("when,y\n2024-01-01,a\n2024-07-02,b\n2025-01-01,a\n");
  const auto data = job.open();
  EXPECT_EQ(job.column("when").kind, "date");
  auto first = row(*data, Split::train, 0), second = row(*data, Split::train, 1), third = row(*data, Split::train, 2);
  EXPECT_EQ(first.size(), 6U) << "no time of day, so no hour";
  EXPECT_EQ(first["when.year"], 2024);
  EXPECT_EQ(third["when.days"] - first["when.days"], 366);
  EXPECT_EQ(first["when.month_cos"], 1);
  EXPECT_EQ(second["when.month_cos"], -1) << "July is opposite to January";
  EXPECT_EQ(first["when.month_sin"], third["when.month_sin"]);
  EXPECT_FLOAT_EQ(first["when.weekday_sin"], static_cast<float>(std::sin(2 * M_PI * 1 / 7))) << "a Monday";
  EXPECT_FLOAT_EQ(third["when.weekday_cos"], static_cast<float>(std::cos(2 * M_PI * 3 / 7))) << "a Wednesday";
  // Every point of the circles agrees with libm.
  Feature feature;
  feature.kind = ColumnKind::date;
  feature.hours = true;
  for (int hour = 0; hour < 24 * 400; ++hour) {
    float parts[8];
    encode_date(feature, hour * 3600.0, parts);
    ASSERT_NEAR(parts[6], std::sin(2 * M_PI * (hour % 24) / 24), 1e-7) << hour;
    ASSERT_NEAR(parts[7], std::cos(2 * M_PI * (hour % 24) / 24), 1e-7);
    ASSERT_NEAR(parts[4], std::sin(2 * M_PI * ((hour / 24 + 4) % 7) / 7), 1e-7) << "1970-01-01 was a Thursday";
    ASSERT_NEAR(parts[5], std::cos(2 * M_PI * ((hour / 24 + 4) % 7) / 7), 1e-7);
    ASSERT_NEAR(parts[2] * parts[2] + parts[3] * parts[3], 1, 1e-6);
  }
}

// The few days above 12 that contradict the others are bad cells: they are named, or counted.
TEST(TableKinds, DatesInTheOtherOrderAreBadCells) {
  std::string text = "when,y\n";
  for (int i = 0; i < 40; ++i)
    text += (i == 7 ? "3/25/2024" : std::to_string(13 + i % 15) + "/3/2024") + "," + std::to_string(i % 2) + "\n";
  Job job(text);
  EXPECT_ERROR(job.error(), "DATA_BAD_CELL",
               "t.csv:9:1: column 'when' holds '3/25/2024', which is not a date like 31/5/2024");
  job.options.columns.on_bad_cell = "missing";
  EXPECT_HAS(any_note(job.info(), "when"), "column 'when': 1 cell that does not fit counts as missing");
  job.options.table.dates = "month_first";
  EXPECT_EQ(job.column("when").kind, "category");
  EXPECT_HAS(job.column("when").reason,
             "data.table.dates is month_first, but 39 of 40 values can only have the day first, such as '13/3/2024'");
  job.options.columns.on_bad_cell = "error";
  job.options.columns.date = {"when"};
  EXPECT_ERROR(job.error(), "DATA_BAD_CELL", "column 'when' holds '13/3/2024'");
}

// A guess is said, also if the job declares the column, and also if its first value comes late.
TEST(TableKinds, AnUnclearOrderOfDayAndMonthIsSaid) {
  std::string text = "when,late,y\n";
  for (int i = 0; i < 1200; ++i)
    text += std::to_string(i % 12 + 1) + "/" + std::to_string(i % 11 + 1) + "/2024," +
            (i < 1100 ? "" : std::to_string(i % 12 + 1) + ".1.2024") + "," + std::to_string(i % 2) + "\n";
  Job job(text);
  EXPECT_HAS(job.column("when").reason, "is a guess: the month is first, data.table.dates decides it");
  EXPECT_HAS(job.column("late").reason, "is a guess: the day is first, as usual with points");
  job.options.columns.date = {"when"};
  EXPECT_HAS(job.column("when").reason, "data.columns.date; no day is above 12");
  job.options.table.dates = "day_first";
  EXPECT_EQ(job.column("when").reason, "data.columns.date");
}

TEST(TableKinds, AMissingDateIsTheMedian) {
  Job job("when,y\n2024-01-01 10:00,a\n2024-01-03 22:30,b\n,a\n2024-01-05 00:00,b\n");
  const auto data = job.open();
  auto missing = row(*data, Split::train, 2), median = row(*data, Split::train, 1);
  EXPECT_EQ(missing["when=<missing>"], 1);
  EXPECT_EQ(median["when=<missing>"], 0);
  EXPECT_EQ(missing["when.days"], median["when.days"]);
  EXPECT_EQ(missing["when.hour_sin"], median["when.hour_sin"]);
  EXPECT_FLOAT_EQ(median["when.hour_cos"], static_cast<float>(std::cos(2 * M_PI * 22 / 24)));
}

TEST(TableKinds, BooleansCodesAndIdentifiers) {
  std::string text = "id,ok,store_id,zip,age,y\n";
  for (int i = 0; i < 100; ++i)
    text += std::to_string(1000 + i * 7 % 100) + "," + (i % 3 == 0 ? "Yes" : "no") + "," + std::to_string(i % 4 * 10) +
            "," + (i % 2 == 0 ? "01067" : "80331") + "," + std::to_string(20 + i % 50) + "," + std::to_string(i % 2) +
            "\n";
  Job job(text);
  EXPECT_EQ(job.info().input_names, (std::vector<std::string>{"ok", "store_id=0", "store_id=10", "store_id=20",
                                                              "store_id=30", "zip=01067", "zip=80331", "age"}));
  EXPECT_EQ(job.column("id").kind, "identifier");
  EXPECT_EQ(job.column("ok").kind, "boolean");
  EXPECT_EQ(job.column("store_id").kind, "code");
  EXPECT_HAS(job.column("zip").reason, "2 different words");
  EXPECT_EQ(job.column("y").kind, "target");
  auto third = row(*job.open(), Split::train, 2);
  EXPECT_EQ(third["ok"], 0);
  EXPECT_EQ(third["store_id=20"], 1);
  EXPECT_EQ(third["store_id=10"], 0);
  job.options.columns.numeric = {"id", "store_id"};
  job.options.columns.ignore = {"zip"};
  EXPECT_EQ(job.info().input_names, (std::vector<std::string>{"id", "ok", "store_id", "age"}));
  EXPECT_EQ(job.column("zip").kind, "ignored");
}

TEST(TableKinds, RareValuesShareOneInput) {
  std::string text = "town,y\n";
  for (int i = 0; i < 1000; ++i)
    text += (i < 3        ? "tiny" + std::to_string(i)
             : i % 2 == 0 ? std::string("rome")
                          : std::string("oslo")) +
            "," + std::to_string(i % 2) + "\n";
  Job job(text);
  EXPECT_EQ(job.info().input_names, (std::vector<std::string>{"town=oslo", "town=rome", "town=<other>"}));
  EXPECT_HAS(job.column("town").reason, "3 rare ones, of 3 rows, share <other>");
  EXPECT_EQ(row(*job.open(), Split::train, 1)["town=<other>"], 1);
  EXPECT_EQ(any_note(job.info(), "rare"), "") << "the facts about the column say it already";
  // An unknown value of a new file has the same place, and is counted.
  const auto fresh = job.predict("town\nrome\nparis\nlima\n");
  EXPECT_EQ(row(*fresh, Split::test, 0)["town=<other>"], 0);
  EXPECT_EQ(row(*fresh, Split::test, 1)["town=<other>"], 1);
  EXPECT_HAS(any_note(fresh->info(), "town"),
             "2 values are rare in the training rows or new, the first: 'paris'; such values count as <other>");
}

TEST(TableKinds, ManyValuesShareOneInput) {
  std::string text = "town,y\n";
  for (int i = 0; i < 6000; ++i) text += "t" + std::to_string(i % 300) + "," + std::to_string(i % 2) + "\n";
  Job job(text);
  EXPECT_EQ(job.info().input_names.size(), 101U);
  job.options.columns.categorical = {"town"};
  EXPECT_EQ(job.info().input_names.size(), 300U) << "the user wants an input for each";
}

TEST(TableKinds, TextsAreCountsOfTheirWords) {
  std::string text = "note,y\n";
  for (int i = 0; i < 40; ++i)
    text += "\"the answer number " + std::to_string(i) + ", " + (i % 2 == 0 ? "Good" : "bad") + "\"," +
            std::to_string(i % 2) + "\n";
  Job job(text);
  EXPECT_EQ(job.column("note").kind, "text");
  const auto data = job.open();
  EXPECT_EQ(data->info().input_shape, (Shape{kTextInputs}));
  const auto values = row(*data, Split::train, 0);
  float words = 0;
  for (const auto& [name, value] : values) words += value;
  EXPECT_EQ(words, 5);
  EXPECT_EQ(text_inputs("GOOD good, Good!"), std::vector<uint8_t>(3, text_inputs("good")[0])) << "case does not matter";
  EXPECT_NE(text_inputs("good"), text_inputs("bad"));
  EXPECT_EQ(count_words("a, b-c  été"), 4);
}

TEST(TableKinds, ARowIndexOfPandasIsLeftOutAndSaid) {
  for (const char* name : {"", "Unnamed: 0"}) {
    Job job(std::string(name) + ",x,y\n0,1.5,a\n1,2.5,b\n2,3.5,a\n");
    EXPECT_EQ(job.info().input_names, (std::vector<std::string>{"x"}));
    EXPECT_HAS(any_note(job.info(), "pandas"), "t.csv:1: the first column has no name and counts the rows");
  }
  Job job(",x,y\n5,1.5,a\n1,2.5,b\n9,3.5,a\n");
  EXPECT_EQ(job.info().input_names, (std::vector<std::string>{"column_1", "x"})) << "it does not count rows";
  EXPECT_HAS(any_note(job.info(), "column 1"), "has no name; it is called 'column_1'");
}

TEST(TableKinds, RolesMustNotContradict) {
  Job job("a,b,y\n1,2,0\n3,4,1\n5,6,0\n");
  job.options.columns.numeric = {"a"};
  job.options.columns.text = {"a"};
  EXPECT_ERROR(job.error(), "DATA_BAD_OPTION", "'a' is in 'numeric' and in 'text'");
  job.options.columns.text = {};
  job.options.columns.ignore = {"a"};
  EXPECT_ERROR(job.error(), "DATA_BAD_OPTION", "'a' is in 'ignore' and in 'numeric'");
  job.options.columns = {"y"};
  job.options.columns.date = {"y"};
  EXPECT_ERROR(job.error(), "DATA_BAD_OPTION", "'y'");
  job.options.columns = {"y"};
  job.options.columns.date = {"a"};
  EXPECT_ERROR(job.error(), "DATA_BAD_COLUMN", "column 'a': no value is a date");
  job.options.columns = {"y"};
  job.options.columns.boolean = {"c"};
  EXPECT_ERROR(job.error(), "DATA_UNKNOWN_COLUMN", "data.columns.boolean");
}

// ---- files ---------------------------------------------------------------------------------------------------------

TEST(TableKinds, NumbersBeyondFloat32AreBadCells) {
  Job job("x,y\n1,0\n3e38,1\n-3e38,0\n2,1\n", "y");
  EXPECT_EQ(job.error(), "");
  EXPECT_ERROR(Job("x,y\n1,0\n1e160,1\n3,0\n", "y").error(), "DATA_BAD_CELL", "3:1: column 'x' holds 1e160");
  EXPECT_ERROR(Job("x,y\n1,0.5\n2,4e38\n3,0.25\n", "y").error(), "DATA_BAD_CELL", "32-bit numbers (3.4e38)");
}

TEST(TableFiles, SeveralFilesAreOneTable) {
  Job job("x,w,y\n1,a,0\n2,b,1\n", "y", "parts/1.csv");
  job.folder.write("parts/2.csv", "y;w;x\n0;a;3,5\n1;b;4\n");
  job.folder.write("parts/README.txt", "not a table");
  job.options.train.path = job.folder.path("parts");
  // The first file decides the number style of all files: decimal points.
  EXPECT_ERROR(job.error(), "DATA_BAD_CELL", "2.csv:2:5: column 'x' holds '3,5'");
  job.folder.write("parts/2.csv", "y;w;x\n0;a;3.5\n1;b;4\n");
  const auto data = job.open();
  EXPECT_EQ(data->info().train_size, 4);
  EXPECT_EQ(data->describe(Split::train, 1), "1.csv:3");
  EXPECT_EQ(data->describe(Split::train, 2), "2.csv:2");
  EXPECT_EQ(row(*data, Split::train, 2)["x"], 3.5F);
  EXPECT_EQ(row(*data, Split::train, 3)["w=b"], 1);
  EXPECT_HAS(any_note(data->info(), "semicolons"), "2.csv");
  job.options.train.path = job.folder.path("parts/?.csv");
  EXPECT_EQ(job.info().train_size, 4);
  EXPECT_EQ(job.info().digest, data->info().digest);
  job.folder.write("parts/3.csv", "x,v,y\n1,a,0\n");
  EXPECT_ERROR(job.error(), "DATA_COLUMNS_DIFFER", "3.csv:1: has no column 'w'");
  job.folder.write("parts/3.csv", "x,w,y,z\n1,a,0,9\n");
  EXPECT_ERROR(job.error(), "DATA_COLUMNS_DIFFER", "3.csv:1: has the column 'z'");
  job.options.train.path = job.folder.path("parts/*.tsv");
  EXPECT_ERROR(job.error(), "DATA_MISSING_FILES", "*.tsv");
}

// The rows of the earlier files move only when the memory doubles, not with each file.
TEST(TableFiles, ManyFilesRarelyMoveTheirRows) {
  const Folder folder;
  const TableRequest request;
  std::set<size_t> rooms, cells;
  constexpr size_t kFiles = 64;
  for (size_t files = 1; files <= kFiles; ++files) {
    folder.write("parts/" + std::to_string(1000 + files) + ".csv", "x,w\n1,a\n2,b\n3,c\n4,d\n5,e\n");
    const Table table = read_table(folder.path("parts"), request, [](const std::string&) { return CellWish{}; });
    ASSERT_EQ(table.rows(), static_cast<int64_t>(5 * files));
    rooms.insert(table.lines.capacity());
    cells.insert(table.find("x")->numbers.capacity());
  }
  EXPECT_LE(rooms.size(), 9U) << "each number of files had memory of another size";
  EXPECT_LE(cells.size(), 9U);
}

// `sinew init` and a job without a format recognise the same folders. A name that begins with a point is not read.
TEST(TableFiles, AHiddenFileDoesNotDecideTheFormatOfAFolder) {
  Job job("x,y\n1,a\n2,b\n", "y", "parts/1.csv");
  job.folder.write("parts/.old.tsv", "x\ty\n1\ta\n");
  job.options.train.path = job.folder.path("parts");
  EXPECT_EQ(job.info().format, "csv");
  EXPECT_EQ(tables_of_folder(job.options.train.path).format, "csv");
  EXPECT_EQ(tables_of_folder(job.options.train.path).count, 1);
  job.folder.write("parts/2.tsv", "x\ty\n1\ta\n");
  EXPECT_ERROR(error_of([&] { tables_of_folder(job.options.train.path); }), "DATA_WRONG_FORMAT", "several formats");
  EXPECT_ERROR(job.error(), "DATA_WRONG_FORMAT", "several formats");
}

TEST(TableKinds, AHintNamesWhatIsSpecialAboutACell) {
  std::string text = "x,y\n";
  for (int i = 0; i < 20; ++i) text += std::to_string(i) + ".5,a\n" + std::to_string(i) + ".25,b\n";
  EXPECT_HAS(Job(text + "\"3,5\",a\n").error(), "this one has a decimal comma");
  EXPECT_HAS(Job(text + "1e300,a\n").error(), "in a larger unit");
  std::string units = "x,y\n";
  for (int i = 0; i < 20; ++i) units += std::to_string(i) + " kg," + (i % 2 ? "a\n" : "b\n");
  EXPECT_HAS(Job(units).error(), "look like numbers, such as '10 kg'");
  EXPECT_HAS(Job("x,y\n1,\"a,\n2,a\n3,a\n4,a\"\n5,b\n6,b\n").info().notes.at(0), "t.csv:2: a cell in quotes goes on");
}

TEST(TableFiles, FilesOfOtherSplitsAreReadInTheStyleOfTrain) {
  Job job("x;y\n1.234,5;a\n2,5;b\n");
  job.options.val.path = job.folder.write("v.csv", "x;y\n1.000;a\n");
  EXPECT_EQ(row(*job.open(), Split::val, 0)["x"], 1000) << "alone, the file says nothing about 1.000";
}

// ---- new files for a trained model ---------------------------------------------------------------------------------

TEST(TableInference, GivesTheBitsOfTheTraining) {
  std::string text = "when;ok;price;town;store_id;note;y\n";
  for (int i = 0; i < 300; ++i)
    text += std::to_string(1 + i % 28) + "." + std::to_string(1 + i % 12) + ".2024 " + std::to_string(i % 24) + ":00;" +
            (i % 3 == 0 ? "ja" : "nein") + ";" + (i % 50 == 0 ? "" : std::to_string(i % 90) + ",5 €") + ";" +
            (i % 7 == 0   ? ""
             : i % 2 == 0 ? "Köln"
                          : "Bonn") +
            ";" + std::to_string(i % 5) + ";\"sehr guter Text " + std::to_string(i) + "\";" + std::to_string(i % 2) +
            "\n";
  Job job(text);
  job.options.normalize = "auto";
  job.options.columns.text = {"note"};
  const auto trained = job.open();
  EXPECT_EQ(job.column("when").kind, "date");
  EXPECT_EQ(job.column("price").kind, "number");
  EXPECT_HAS(job.column("price").reason, "€");
  const auto fresh = job.predict(text);
  const Batch before = load_all(*trained, Split::train), after = load_all(*fresh, Split::test);
  ASSERT_EQ(before.input.bytes.size(), after.input.bytes.size());
  EXPECT_EQ(std::memcmp(before.input.bytes.data(), after.input.bytes.data(), before.input.bytes.size()), 0);
  EXPECT_ERROR(error_of([&] { job.predict("when;ok;price;town;store_id;note\n1.1.2024;ja;5;Bonn;1;x\n"); }),
               "DATA_BAD_CELL", "new.csv:2:13: column 'price' holds '5', which is not a number with €");
  const std::string line =
      "{\"when\": \"1.1.2024\", \"ok\": \"ja\", \"price\": 5.5, \"town\": null, \"store_id\": 1, \"note\": \"x\"}\n";
  EXPECT_EQ(job.predict(line, "new.jsonl")->info().test_size, 1) << "JSON writes numbers in its own way";
}

// A model of the first version: a missing number is the mean, and an unknown word counts as missing.
TEST(TableInference, ReadsModelsOfTheFirstVersion) {
  DataInfo info;
  info.format = "csv";
  info.input_shape = {4};
  info.input_names = {"x", "x=<missing>", "w=a", "w=<missing>"};
  info.classes = 2;
  info.class_names = {"no", "yes"};
  info.preparation = R"({"features": [
    {"name": "x", "categorical": false, "mean": 4.0, "std": 2.0, "center": 3.0, "number_at": 0, "places": {}, "missing_at": 1},
    {"name": "w", "categorical": true, "mean": 0.0, "std": 1.0, "center": 0.0, "number_at": -1, "places": {"a": 2}, "missing_at": 3}],
    "target": "y", "target_is_words": true, "target_numbers": []})";
  const Folder folder;
  spec::DataSource source;
  source.path = folder.write("new.csv", "w,x\na,7\nb,\n");
  const auto data = open_inference_data({}, info, source, false);
  EXPECT_EQ(row(*data, Split::test, 0),
            (std::map<std::string, float>{{"x", 2}, {"x=<missing>", 0}, {"w=a", 1}, {"w=<missing>", 0}}));
  EXPECT_EQ(row(*data, Split::test, 1),
            (std::map<std::string, float>{{"x", 0.5F}, {"x=<missing>", 1}, {"w=a", 0}, {"w=<missing>", 1}}));
}

TEST(TableInference, RefusesDamagedDescriptions) {
  Job job("when,note,town,y\n2024-01-01,a b c,rome,0\n2024-01-02,d e f,oslo,1\n2024-01-03,g h i,rome,0\n");
  job.options.columns.text = {"note"};
  const std::string good = info_json(job.info());
  spec::DataSource source;
  source.path = job.folder.write("new.csv", "when,note,town\n2024-01-01,a b c,rome\n");
  const auto open = [&](const std::function<void(nlohmann::json&)>& change) {
    auto document = nlohmann::json::parse(good);
    change(document["preparation"]);
    return error_of([&] { open_inference_data(job.options, info_from_json(document.dump()), source, false); });
  };
  EXPECT_EQ(open([](auto&) {}), "");
  EXPECT_ERROR(open([](auto& p) { p["version"] = 3; }), "DATA_BAD_MODEL_INFO", "newer version");
  EXPECT_ERROR(open([](auto& p) { p["features"][0]["kind"] = "colour"; }), "DATA_BAD_MODEL_INFO", "kind");
  EXPECT_ERROR(open([](auto& p) { p["features"][0]["kind"] = "text"; }), "DATA_BAD_MODEL_INFO", "cells");
  EXPECT_ERROR(open([](auto& p) { p["features"][0]["fill"] = 1e300; }), "DATA_BAD_MODEL_INFO", "date");
  EXPECT_ERROR(open([](auto& p) { p["features"][1]["number_at"] = 9; }), "DATA_BAD_MODEL_INFO", "input columns");
  EXPECT_ERROR(open([](auto& p) { p["features"][1]["number_at"] = -1; }), "DATA_BAD_MODEL_INFO", "no input");
  EXPECT_ERROR(open([](auto& p) { p["features"][2]["other_at"] = 999; }), "DATA_BAD_MODEL_INFO", "input columns");
  EXPECT_ERROR(open([](auto& p) { p["features"][0]["cells"]["form"] = "moon"; }), "DATA_BAD_MODEL_INFO", "moon");
}

// The encoder reads the codes of words for some kinds and numbers for others, so a kind with other cells would read
// outside of the column.
TEST(TableInference, RefusesKindsWithCellsThatTheyCannotHave) {
  Job job("when,town,x,y\n2024-01-01,rome,1.5,0\n2024-01-02,oslo,2.5,1\n2024-01-03,rome,4.5,0\n");
  const std::string good = info_json(job.info());
  spec::DataSource source;
  source.path = job.folder.write("new.csv", "when,town,x,y\n2024-01-01,rome,1.5,0\n");
  const auto open = [&](const std::function<void(nlohmann::json&)>& change, bool labelled = false) {
    auto document = nlohmann::json::parse(good);
    change(document);
    return error_of([&] { open_inference_data(job.options, info_from_json(document.dump()), source, labelled); });
  };
  const auto with_kind = [&](size_t feature, const char* kind) {
    return open([&](auto& d) { d["preparation"]["features"][feature]["kind"] = kind; });
  };
  const auto with_cells = [&](size_t feature, const char* kind) {
    return open([&](auto& d) { d["preparation"]["features"][feature]["cells"]["kind"] = kind; });
  };
  EXPECT_EQ(with_kind(2, "boolean"), "") << "1 and 0 are numbers";
  EXPECT_ERROR(with_kind(1, "code"), "DATA_BAD_MODEL_INFO",
               "preparation.features[1] (column 'town') has the kind code, but cells of the kind word");
  EXPECT_ERROR(with_cells(0, "number"), "DATA_BAD_MODEL_INFO",
               "preparation.features[0] (column 'when') has the kind date, but cells of the kind number");
  EXPECT_ERROR(with_kind(2, "category"), "DATA_BAD_MODEL_INFO", "features[2] (column 'x')");
  EXPECT_ERROR(with_kind(2, "date"), "DATA_BAD_MODEL_INFO", "features[2] (column 'x')");
  EXPECT_ERROR(with_cells(2, "boolean"), "DATA_BAD_MODEL_INFO", "features[2] (column 'x')");
  // Two roles of one column have one format.
  EXPECT_ERROR(open([](auto& d) { d["preparation"]["features"][2]["name"] = "town"; }), "DATA_BAD_MODEL_INFO",
               "features[2] (column 'town') is there twice");
  EXPECT_ERROR(open([](auto& d) { d["preparation"]["features"][2]["name"] = "y"; }, true), "DATA_BAD_MODEL_INFO",
               "features[2] (column 'y') is the target, too");
  const auto words_for_numbers = [](auto& d) {
    d["task"] = "regression";
    d["preparation"]["target_is_words"] = true;
    d["preparation"]["target_cells"]["kind"] = "word";
  };
  EXPECT_ERROR(open(words_for_numbers, true), "DATA_BAD_MODEL_INFO", "target 'y' has words");
}

TEST(ColumnLines, AreATable) {
  const std::vector<ColumnFacts> columns = {
      {"age", "number", "whole numbers", 1234}, {"été", "category", "3 words", 0}, {"x", "date", "", 0}};
  const std::vector<std::string> lines = column_lines(columns, 2);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "column  kind        missing  reason");
  EXPECT_EQ(lines[1], "age     number      1,234    whole numbers");
  EXPECT_EQ(lines[2], "été     category             3 words");
  EXPECT_EQ(lines[3], "and 1 more column");
}

}  // namespace
}  // namespace sinew::data
