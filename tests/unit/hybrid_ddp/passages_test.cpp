// Texts cut into passages, and which of them a step of a trainer learns from.
#include "hybrid_ddp/passages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace caftan::hybrid_ddp::passages_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Returns a corpus of two texts of 40 words, and one that is too short.
corpus::Corpus small() {
  corpus::Corpus corpus{.source = "a test", .texts = {"", "", "short text"}, .names = {"a", "b", "c"}};
  for (int i = 0; i < 40; ++i) {
    corpus.texts[0] += "Alpha beta" + std::string(1, static_cast<char>('a' + i % 5)) + " ";
    corpus.texts[1] += "gamma, ";
  }
  return corpus;
}

TEST(Passages, WordsAreRunsOfLettersInLowerCase) {
  EXPECT_THAT(words_of("The GPL-3, it's\nso 2\xc3\xa4x"), ElementsAre("the", "gpl", "it", "s", "so", "x"));
  EXPECT_THAT(words_of(""), ElementsAre());
}

TEST(Passages, ATenthIsMeasuredWithAndNeverLearnedFrom) {
  const Passages made = make_passages(small(), 4, 100).value();
  EXPECT_THAT(made.classes, ElementsAre("a", "b")) << "the third text is shorter than ten passages";
  EXPECT_EQ(made.train.size() + made.test.size(), 80U / 4 + 40U / 4);
  EXPECT_EQ(made.test.size(), 2U + 1U);
  EXPECT_EQ(made.vocabulary, 9) << "alpha, betaa to betae, gamma, short, text";
  EXPECT_DOUBLE_EQ(majority_share(made), 2.0 / 3);
  for (const Passage& passage : made.train) EXPECT_EQ(passage.words.size(), 4U);
}

TEST(Passages, NoTextHasMorePassagesThanAllowed) {
  const Passages made = make_passages(small(), 4, 10).value();
  EXPECT_EQ(made.train.size(), 18U);
  EXPECT_EQ(made.test.size(), 2U);
  EXPECT_DOUBLE_EQ(majority_share(made), 0.5);
}

TEST(Passages, OfALicenceTheNewestVersionIsKept) {
  const corpus::Corpus all{
      .source = "s", .texts = {"a", "b", "c", "d", "e"}, .names = {"BSD", "GPL-1", "GPL-2", "LGPL-2", "LGPL-2.1"}};
  EXPECT_THAT(newest_versions(all).names, ElementsAre("BSD", "GPL-2", "LGPL-2.1"));
  EXPECT_THAT(newest_versions(all).texts, ElementsAre("a", "c", "e"));
}

TEST(Passages, OneTextIsNoChoice) {
  const auto error = make_passages(small(), 5, 100).error();
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_THAT(error.text(), HasSubstr("1 of 3 texts"));
  EXPECT_THAT(error.text(), HasSubstr("lower words"));
}

TEST(Passages, ABookIsTheVersesWithItsName) {
  const corpus::Corpus bible{
      .source = "s",
      .texts = {"Ge1:1 In the beginning\nGe1:2 And: the earth\n1Sm1:1 Now there\n1Sm10:2 When\n"},
      .names = {"King James Bible"}};
  const corpus::Corpus books = split_books(bible);
  EXPECT_THAT(books.names, ElementsAre("Ge", "1Sm"));
  EXPECT_THAT(books.texts, ElementsAre(" In the beginning\n And: the earth\n", " Now there\n When\n"));
}

TEST(Passages, ADrawIsAFunctionOfItsKeyAndOfTheTrainersOwnPart) {
  const Passages made = make_passages(small(), 2, 100).value();
  const auto drawn = [&](std::uint32_t trainer, std::int64_t step) {
    return draw_bags(made, {.seed = 3, .trainer = trainer, .trainers = 2, .step = step, .batch = 8});
  };
  EXPECT_TRUE(drawn(0, 1).words.equal(drawn(0, 1).words));
  EXPECT_FALSE(drawn(0, 1).words.equal(drawn(0, 2).words));
  EXPECT_EQ(drawn(0, 1).offsets.numel(), 8);
  EXPECT_EQ(drawn(0, 1).words.numel(), 16);
  std::set<std::vector<std::int64_t>> first;
  Passages marked = made;
  for (std::size_t i = 0; i < marked.train.size(); ++i) marked.train[i].label = static_cast<std::int64_t>(i % 2);
  for (const std::uint32_t trainer : {0U, 1U}) {
    const Bags bags = draw_bags(marked, {.seed = 3, .trainer = trainer, .trainers = 2, .step = 5, .batch = 64});
    EXPECT_EQ(bags.labels.sum().item<std::int64_t>(), 64 * trainer) << "each trainer has every second passage";
  }
}

TEST(Passages, TheSampleAndTheLicencesAreTasks) {
  TrainerConfig config;
  config.corpus.name = corpus::CorpusConfig::Name::sample;
  EXPECT_EQ(read_passages(config).value().classes.size(), 6U);
  const Passages licences = read_passages({}).value();
  EXPECT_GE(licences.classes.size(), 7U);
  EXPECT_LT(majority_share(licences), 0.25);
}

}  // namespace
}  // namespace caftan::hybrid_ddp::passages_test
