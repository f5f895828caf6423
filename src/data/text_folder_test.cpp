#include "data/text_folder.h"

#include <gmock/gmock.h>

#include "data/fixtures.h"
#include "data/inference.h"

namespace sinew::data {
namespace {

using testing::Contains;
using testing::HasSubstr;

class TextFolder : public testing::Test {
 protected:
  // Writes 20 texts of each of two classes.
  void write_texts(const std::string& root) const {
    const std::vector<std::string> calm = {"lies", "sleeps", "rests"}, wild = {"jumps", "runs", "bites"};
    for (int i = 0; i < 20; ++i) {
      for (const bool is_calm : {true, false}) {
        const auto& words = is_calm ? calm : wild;
        std::string text;
        for (int j = 0; j < 8; ++j) text += words[static_cast<size_t>(i * j + j * j) % 3] + " ";
        folder_.write(root + (is_calm ? "/calm/" : "/wild/") + std::to_string(i) + ".txt", text + std::to_string(i));
      }
    }
  }
  spec::DataOptions options(const std::string& root) const {
    spec::DataOptions options;
    options.format = kTextFolder;
    options.train.path = folder_.path(root);
    options.columns.target = "label";
    return options;
  }

  Folder folder_;
};

TEST_F(TextFolder, EachFileIsARowAndEachFolderAClass) {
  write_texts("texts");
  folder_.write("texts/calm/notes.md", "not a text");
  folder_.write("texts/calm/.hidden.txt", "not a text");
  folder_.write("texts/other/1.md", "a folder without texts");
  folder_.write("texts/unsup/1.txt", "a text without a label");
  folder_.write("texts/loose.txt", "a text without a class");
  const auto dataset = open_dataset(options("texts"), 1);
  const DataInfo& info = dataset->info();
  EXPECT_EQ(info.task, Task::classification);
  EXPECT_EQ(info.class_names, (std::vector<std::string>{"calm", "wild"}));
  EXPECT_EQ(info.train_size, 40);
  EXPECT_THAT(info.notes, Contains(HasSubstr("40 texts in 2 folders; 4 other entries are left out: '")));
  EXPECT_HAS(dataset->describe(Split::train, 0), "calm/0.txt");
  spec::DataOptions automatic = options("texts");
  automatic.format = "auto";
  EXPECT_EQ(open_dataset(automatic, 1)->info().format, "text_folder");
}

TEST_F(TextFolder, TheDigestCoversTheClasses) {
  write_texts("texts");
  const Digest before = open_dataset(options("texts"), 1)->info().digest;
  std::filesystem::rename(folder_.path("texts/wild"), folder_.path("texts/wind"));
  EXPECT_NE(open_dataset(options("texts"), 1)->info().digest, before);
}

TEST_F(TextFolder, ATrainedModelReadsNewTexts) {
  write_texts("texts");
  const spec::DataOptions job = options("texts");
  const DataInfo trained = info_from_json(info_json(open_dataset(job, 1)->info()));
  folder_.write("new/1.txt", "sleeps rests");
  folder_.write("new/2.txt", "bites \xE4 runs");  // Windows-1252
  for (const std::string name : {"new", "new/2.txt"}) {
    spec::DataSource source;
    source.path = folder_.path(name);
    EXPECT_EQ(open_inference_data(job, trained, source, false)->size(Split::test), name == "new" ? 2 : 1);
  }
  spec::DataSource labelled;
  labelled.path = folder_.path("texts");
  EXPECT_EQ(open_inference_data(job, trained, labelled, true)->size(Split::test), 40);
}

TEST_F(TextFolder, InitFindsTheSplits) {
  for (const char* split : {"train", "test"}) write_texts(std::string("movies/") + split);
  const Proposal proposal = propose_job(folder_.path("movies"));
  EXPECT_EQ(proposal.job.data.format, "text_folder");
  EXPECT_EQ(proposal.job.data.train.path, folder_.path("movies/train"));
  EXPECT_EQ(proposal.job.data.test.path, folder_.path("movies/test"));
  EXPECT_EQ(proposal.job.data.columns.target, "label");
  EXPECT_EQ(proposal.job.model.name, "tabular");
  EXPECT_FALSE(proposal.trouble);
}

TEST_F(TextFolder, WrongFoldersAreNamed) {
  folder_.write("empty/calm/1.md", "x");
  EXPECT_ERROR(error_of([&] { open_dataset(options("empty"), 1); }), "DATA_MISSING_FILES", "no .txt file");
  folder_.write("one/calm/1.txt", "a b c");
  folder_.write("one/calm/2.txt", "d e f");
  EXPECT_ERROR(error_of([&] { open_dataset(options("one"), 1); }), "DATA_BAD_COLUMN", "'calm' in every row");
  folder_.write("broken/a/1.txt", std::string_view("a\0b", 3));
  folder_.write("broken/b/1.txt", "c");
  EXPECT_ERROR(error_of([&] { open_dataset(options("broken"), 1); }), "DATA_WRONG_FORMAT",
               "1.txt:1:2: holds a zero byte");
}

}  // namespace
}  // namespace sinew::data
