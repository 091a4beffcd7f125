/// The corpus of the archive's fuzz target pins the format: a change here is a change for every peer of another
/// version. To write it anew after an intended change: CAFTAN_WRITE_CORPUS=1 wire_test --gtest_filter='ArchiveCorpus.*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "archive_examples.hpp"

namespace caftan::wire::archive_corpus_test {
namespace {

TEST(ArchiveCorpus, TheFormatIsThatOfTheCommittedExamples) {
  const std::vector<Bytes> examples = archive_examples();
  ASSERT_EQ(examples.size(), std::tuple_size_v<FuzzTypes>);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const std::string path = std::string(CAFTAN_CORPUS) + "/archive_fuzz/type_" + std::to_string(i);
    std::string expected(1, static_cast<char>(i));
    expected.append(reinterpret_cast<const char*>(examples[i].data()), examples[i].size());
    if (std::getenv("CAFTAN_WRITE_CORPUS")) std::ofstream(path, std::ios::binary) << expected;
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path;
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), expected) << path;
  }
}

}  // namespace
}  // namespace caftan::wire::archive_corpus_test
