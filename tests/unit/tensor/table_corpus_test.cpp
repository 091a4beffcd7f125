/// The corpus of the tensor codec's fuzz target pins the format of the table, like archive_corpus_test.cpp the
/// archive's. To write it anew after an intended change: CAFTAN_WRITE_CORPUS=1 tensor_test
/// --gtest_filter='TableCorpus.*'
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "tensor_samples.hpp"

namespace caftan::tensor::table_corpus_test {
namespace {

std::string_view text_of(wire::ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// The length of the table, the table, and the bytes of the segments, as tensor_fuzz.cpp reads them.
std::string input_of(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded = {}) {
  const Result<EncodedTensors> encoded = encode_tensors(tensors, recorded);
  std::string input{static_cast<char>(encoded->table.size() % 256), static_cast<char>(encoded->table.size() / 256)};
  input += text_of(encoded->table);
  for (const wire::Segment& segment : encoded->segments) input += text_of(segment.view());
  return input;
}

std::vector<std::pair<std::string, std::string>> examples() {
  std::vector<at::Tensor> dtypes;
  for (const Sample& sample : every_dtype()) dtypes.push_back(sample.tensor);
  std::vector<at::Tensor> shapes;
  for (const Sample& sample : every_shape(at::arange(24, at::kFloat).view({4, 6}))) shapes.push_back(sample.tensor);
  std::vector<std::pair<std::string, std::string>> inputs{{"dtypes", input_of(dtypes)}, {"shapes", input_of(shapes)}};
  for (Sample& sample : every_other_kind()) {
    for (char& c : sample.name) c = c == ' ' ? '_' : c;
    inputs.emplace_back(sample.name, input_of({&sample.tensor, 1}));
  }
  const at::Tensor base = at::ones({8}).requires_grad_();
  const std::vector<at::Tensor> flags{base, base * 2, at::Tensor(), at::ones({8}).slice(0, 2, 4)};
  inputs.emplace_back("flags", input_of(flags, std::vector<std::uint8_t>{0, 1, 0, 0}));
  return inputs;
}

TEST(TableCorpus, TheFormatIsThatOfTheCommittedExamples) {
  for (const auto& [name, expected] : examples()) {
    const std::string path = std::string(CAFTAN_CORPUS) + "/tensor_fuzz/" + name;
    if (std::getenv("CAFTAN_WRITE_CORPUS")) std::ofstream(path, std::ios::binary) << expected;
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path;
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), expected) << path;
  }
}

}  // namespace
}  // namespace caftan::tensor::table_corpus_test
