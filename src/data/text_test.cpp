#include <cstdlib>
#include <set>

#include "data/fixtures.h"

namespace sinew::data {
namespace {

struct Written {
  Folder folder;
  spec::DataOptions options;
  Written(std::string_view text, int64_t window) {
    options.format = "text";
    options.train.path = folder.write("t.txt", text);
    options.text.window = window;
  }
};

std::string spelled(const Dataset& dataset, const int64_t* tokens, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += dataset.info().class_names[static_cast<size_t>(tokens[i])];
  return text;
}

TEST(Text, WindowsAndTargetsAreTheTextShiftedByOne) {
  Written written("héllo wörld, ∑ 😀!", 5);
  const auto dataset = open_dataset(written.options, 0);
  const DataInfo& info = dataset->info();
  EXPECT_EQ(info.task, Task::next_token);
  EXPECT_EQ(info.input_dtype, DType::i64);
  EXPECT_EQ(info.tokens_per_sample, 5);
  EXPECT_EQ(info.train_size, 3);  // 17 characters hold 3 windows and the targets of the last one
  EXPECT_EQ(info.classes,
            static_cast<int64_t>(std::set<std::string>(info.class_names.begin(), info.class_names.end()).size()));
  const Batch batch = load_all(*dataset, Split::train);
  EXPECT_EQ(batch.target.shape, (Shape{3, 5}));
  EXPECT_EQ(spelled(*dataset, batch.input.as<int64_t>(), 15), "héllo wörld, ∑ ");
  EXPECT_EQ(spelled(*dataset, batch.target.as<int64_t>(), 15), "éllo wörld, ∑ 😀");
  EXPECT_EQ(dataset->describe(Split::train, 1), "t.txt at byte 6");
}

TEST(Text, ByteTokensTakeAnyFile) {
  const std::string bytes = random_bytes(1, 1001);
  Written written(bytes, 10);
  written.options.text.tokens = "bytes";
  const auto dataset = open_dataset(written.options, 0);
  EXPECT_EQ(dataset->info().classes, 256);
  const Batch batch = load_all(*dataset, Split::train);
  ASSERT_EQ(batch.count(), 100);
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(batch.input.as<int64_t>()[i], static_cast<uint8_t>(bytes[i]));
    ASSERT_EQ(batch.target.as<int64_t>()[i], static_cast<uint8_t>(bytes[i + 1]));
  }
}

TEST(Text, SplitTakesValAndTestFromTheEnd) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  Written written(text, 7);
  written.options.split_val = 0.2;
  written.options.split_test = 0.1;
  const auto dataset = open_dataset(written.options, 0);
  EXPECT_EQ(dataset->info().train_size, 699 / 7);
  EXPECT_EQ(dataset->info().val_size, 199 / 7);
  EXPECT_EQ(dataset->info().test_size, 99 / 7);
  const auto text_of_split = [&](Split split) {
    const Batch batch = load_all(*dataset, split);
    return spelled(*dataset, batch.input.as<int64_t>(), batch.input.count());
  };
  EXPECT_EQ(text_of_split(Split::train), text.substr(0, 693));
  EXPECT_EQ(text_of_split(Split::val), text.substr(700, 196));
  EXPECT_EQ(text_of_split(Split::test), text.substr(900, 98));
}

TEST(Text, UnseenCharactersShareOneTokenAndAreReported) {
  Written written("abcabcabcabc", 3);
  written.options.val.path = written.folder.write("v.txt", "abzéab");
  const auto dataset = open_dataset(written.options, 0);
  EXPECT_EQ(dataset->info().class_names, (std::vector<std::string>{"a", "b", "c", "<unk>"}));
  EXPECT_EQ(dataset->info().classes, 4);
  EXPECT_HAS(dataset->info().reasons.at("data.text.tokens"), "2 characters");
  const Batch batch = load_all(*dataset, Split::val);
  EXPECT_EQ(spelled(*dataset, batch.target.as<int64_t>(), 3), "b<unk><unk>");
  written.folder.write("v.txt", "cbacba");
  EXPECT_EQ(open_dataset(written.options, 0)->info().classes, 3);
}

TEST(Text, ErrorsNameTheMistake) {
  EXPECT_ERROR(error_of([] { open_dataset(Written("abc\xFF xyz", 2).options, 0); }), "DATA_NOT_UTF8", "byte 3");
  EXPECT_ERROR(error_of([] { open_dataset(Written("abc", 3).options, 0); }), "DATA_EMPTY", "train split has 3 tokens");
  EXPECT_ERROR(error_of([] { open_dataset(Written("", 3).options, 0); }), "DATA_EMPTY", "0 tokens");
  Written tiny("abcdefghijklmnop", 5);
  tiny.options.split_val = 0.2;
  EXPECT_ERROR(error_of([&] { open_dataset(tiny.options, 0); }), "DATA_EMPTY", "val split has 3 tokens");
}

}  // namespace
}  // namespace sinew::data
