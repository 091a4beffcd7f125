// Characters, windows and the division of a text.
#include "rnn_lm/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>

#include "small_texts.hpp"

namespace caftan::rnn_lm::text_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::int64_t> numbers_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous().view(-1);
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

TEST(Vocabulary, CountsCodePointsInTheirOrder) {
  const Vocabulary vocabulary("b\u20aca\u00e9b");
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_EQ(vocabulary.characters(), "ab\u00e9\u20ac");
  const at::Tensor numbers = vocabulary.encode("\u20acab");
  EXPECT_EQ(numbers_of(numbers), (std::vector<std::int64_t>{3, 0, 1}));
  EXPECT_EQ(vocabulary.decode(numbers_of(numbers)), "\u20acab");
}

TEST(Windows, LieSideBySideAndFollowEachOther) {
  Windows windows = Windows::make(at::arange(0, 25, at::kLong), 2, 5).value();  // 2 rows of 12
  EXPECT_EQ(windows.count(), 2);
  const Window first = windows.next();
  EXPECT_TRUE(first.starts);
  EXPECT_EQ(numbers_of(first.inputs), (std::vector<std::int64_t>{0, 12, 1, 13, 2, 14, 3, 15, 4, 16}));
  EXPECT_EQ(numbers_of(first.targets), (std::vector<std::int64_t>{1, 13, 2, 14, 3, 15, 4, 16, 5, 17}));
  const Window second = windows.next();
  EXPECT_FALSE(second.starts);
  EXPECT_EQ(numbers_of(second.inputs)[0], 5);
  EXPECT_EQ(windows.position(), 10);
  const Window again = windows.next();  // two characters are left in a row: too few
  EXPECT_TRUE(again.starts);
  EXPECT_EQ(numbers_of(again.inputs), numbers_of(first.inputs));
}

TEST(Windows, M_TheLastOneThatFitsExactlyIsTaken) {
  Windows windows = Windows::make(at::arange(0, 21, at::kLong), 2, 5).value();  // 2 rows of 10: two windows, no rest
  EXPECT_EQ(windows.count(), 2);
  EXPECT_EQ(numbers_of(windows.next().inputs)[0], 0);
  const Window last = windows.next();
  EXPECT_EQ(numbers_of(last.inputs)[0], 5);
  EXPECT_FALSE(last.starts);
  EXPECT_EQ(windows.position(), 10);
  EXPECT_TRUE(windows.next().starts);
  EXPECT_EQ(windows.all().size(), 2U);
}

TEST(Windows, AllHaveEveryCharacterOfTheRowsOnce) {
  const Windows windows = Windows::make(at::arange(0, 25, at::kLong), 2, 5).value();
  std::vector<std::int64_t> seen;
  for (const Window& window : windows.all()) {
    const auto numbers = numbers_of(window.inputs);
    seen.insert(seen.end(), numbers.begin(), numbers.end());
  }
  std::ranges::sort(seen);
  EXPECT_EQ(seen, numbers_of(at::arange(0, 24, at::kLong)));
  EXPECT_EQ(windows.all().size(), 3U);
}

TEST(Windows, GoOnFromAPositionAndKnowWhichThereAre) {
  Windows windows = Windows::make(at::arange(0, 25, at::kLong), 2, 5).value();
  windows.seek(5);
  EXPECT_EQ(numbers_of(windows.next().inputs)[0], 5);
  EXPECT_TRUE(windows.has_position(0));
  EXPECT_TRUE(windows.has_position(10));
  EXPECT_FALSE(windows.has_position(3));
  EXPECT_FALSE(windows.has_position(-5));
  EXPECT_FALSE(windows.has_position(15));
}

TEST(Windows, ATextTooShortForOneSaysHowLongItMustBe) {
  EXPECT_TRUE(Windows::make(at::arange(0, 11, at::kLong), 2, 5));
  for (const std::int64_t size : {0, 1, 10}) {
    const auto error = Windows::make(at::arange(0, size, at::kLong), 2, 5).error();
    EXPECT_EQ(error.code(), Errc::invalid_config);
    EXPECT_THAT(error.text(), HasSubstr("it needs 11"));
    EXPECT_THAT(error.text(), HasSubstr("smaller batch or bptt"));
  }
}

TEST(Text, KeepsTheLastTenthOfEveryFileForValidation) {
  const test::Folder folder;
  folder.write("a", std::string(180, 'a') + std::string(20, 'x'));
  folder.write("b", std::string(90, 'b') + std::string(10, 'y'));
  const Text text = read_text(make_config(folder.path())).value();
  EXPECT_EQ(text.train_size, 270);
  EXPECT_EQ(text.valid_size, 30);
  std::set<std::int64_t> valid;
  for (const Window& window : text.valid.all()) {
    for (const auto number : numbers_of(window.inputs)) valid.insert(number);
  }
  EXPECT_EQ(valid, (std::set<std::int64_t>{2, 3}));  // x and y
  EXPECT_EQ(text.vocabulary.size(), 4);
}

TEST(Text, TooShortForAWindowOrToValidateNamesTheFile) {
  const test::Folder folder;
  const auto error = read_text(make_config(folder.write("short.txt", make_text(30)))).error();
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_THAT(error.text(), HasSubstr("short.txt: a text of 27 characters is too short"));
  TrainerConfig one = make_config(folder.write("tiny.txt", "abcdefghi"));
  one.batch = 1;
  one.bptt = 2;
  EXPECT_THAT(read_text(one).error().text(), HasSubstr("tiny.txt: a text of 0 characters is too short"));
}

}  // namespace
}  // namespace caftan::rnn_lm::text_test
