#include "corpus/corpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "folder.hpp"

namespace caftan::corpus::corpus_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CorpusFiles : public ::testing::Test {
 protected:
  Result<Corpus> read(const std::filesystem::path& path) const {
    CorpusConfig config;
    config.path = path;
    return read_corpus(config);
  }
  test::Folder folder_;
};

TEST(Corpus, TheDefaultIsOnEveryDebianEachLicenceOnce) {
  const auto corpus = read_corpus({}).value();
  const auto files = find_corpus({}).value();
  EXPECT_GE(files.size(), 10U);
  EXPECT_TRUE(std::is_sorted(files.begin(), files.end()));
  EXPECT_TRUE(std::none_of(files.begin(), files.end(), [](const auto& file) { return is_symlink(file); }));
  EXPECT_EQ(corpus.texts.size(), files.size());
  EXPECT_THAT(corpus.source, HasSubstr(" files of /usr/share/common-licenses"));
}

TEST(Corpus, TheBibleIsReadOrItsPackageIsNamed) {
  CorpusConfig config;
  config.name = CorpusConfig::Name::king_james_bible;
  const auto corpus = read_corpus(config);
  if (!corpus) {
    EXPECT_EQ(corpus.error().code(), Errc::io_error);
    EXPECT_THAT(corpus.error().text(), HasSubstr("apt-get install --no-install-recommends bible-kjv bible-kjv-text"));
    return;
  }
  EXPECT_GT(corpus->texts.at(0).size(), 4000000U);
  EXPECT_THAT(corpus->texts[0].substr(0, 200), HasSubstr("In the beginning God created"));
}

TEST(Corpus, TheSampleIsSixTextsThatDifferInTheirOwnWords) {
  CorpusConfig config;
  config.name = CorpusConfig::Name::sample;
  const auto corpus = read_corpus(config).value();
  ASSERT_EQ(corpus.texts.size(), 6U);
  EXPECT_EQ(corpus.names.size(), 6U);
  EXPECT_TRUE(find_corpus(config).value().empty());
  EXPECT_EQ(std::set<std::string>(corpus.texts.begin(), corpus.texts.end()).size(), 6U);
  EXPECT_EQ(corpus.texts, read_corpus(config).value().texts) << "the same wherever it is made";
}

TEST_F(CorpusFiles, AFolderIsItsFilesByNameWithLinksResolved) {
  folder_.write("b", "second");
  folder_.write("a", "first");
  std::filesystem::create_symlink("b", folder_.path() / "0-link-to-b");
  std::filesystem::create_symlink("nowhere", folder_.path() / "broken");
  std::filesystem::create_directory(folder_.path() / "inner");
  const auto corpus = read(folder_.path()).value();
  EXPECT_THAT(corpus.texts, ElementsAre("first", "second"));
  EXPECT_THAT(corpus.source, HasSubstr("2 files of "));
}

TEST_F(CorpusFiles, WhatIsMissingIsNamedWithTheKeyToSet) {
  const auto missing = read(folder_.path() / "missing.txt").error();
  EXPECT_EQ(missing.code(), Errc::io_error);
  EXPECT_THAT(missing.text(), AllOf(HasSubstr("missing.txt: there is no such file"), HasSubstr("corpus.path")));
  EXPECT_EQ(read("/dev/null").error().code(), Errc::io_error);
  EXPECT_EQ(read(folder_.path()).error().code(), Errc::invalid_config);  // no files in it
}

TEST_F(CorpusFiles, AnEmptyFileIsNamed) {
  folder_.write("a", "first");
  folder_.write("b", "");
  const auto error = read(folder_.path()).error();
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_THAT(error.text(), HasSubstr("b: it is empty"));
}

TEST_F(CorpusFiles, WhatIsNotUtf8IsNamedWithItsOffsetAndAWayOut) {
  const auto error = read(folder_.write("latin1.txt", "caf\xe9 au lait")).error();
  EXPECT_EQ(error.code(), Errc::malformed_payload);
  EXPECT_THAT(error.text(),
              AllOf(HasSubstr("latin1.txt: the byte at offset 3 is not UTF-8"), HasSubstr("iconv -f latin1")));
}

TEST(Utf8, AcceptsWhatTheStandardDoesAndNothingElse) {
  for (const std::string good : {"", "a", "\u00e9", "\u20ac", "\U0001F600", "\u07ff\u0800\uffff", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(first_invalid_utf8(good), good.size()) << good;
  }
  const std::vector<std::string> bad{
      "\x80",     "\xc0\xaf",         "\xc1\x81",         "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
      "\xe2\x82", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x28\xa1"};
  for (const std::string& text : bad) EXPECT_EQ(first_invalid_utf8("ok" + text), 2U);
}

}  // namespace
}  // namespace caftan::corpus::corpus_test
