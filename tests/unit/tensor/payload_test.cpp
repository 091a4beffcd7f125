#include "caftan/tensor/payload.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "caftan/tensor/internal/torch_errors.hpp"
#include "caftan/tensor/operators.hpp"
#include "payload.hpp"

namespace caftan::tensor::payload_test {
namespace {

using test::decode_payload;
using test::encode_payload;
using test::Payload;

struct Batch {
  Tensor observations;
  std::map<std::string, std::vector<Tensor>> extras;
  std::optional<Tensor> mask;
  int step = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& observations& extras& mask& step;
  }
};

TEST(Payload, TensorsLeaveTheBytesAndComeBackToTheirPlaces) {
  const Batch batch{at::ones({2}), {{"a", {at::zeros({1}), at::Tensor()}}}, at::full({3}, 7), 5};
  const Result<Payload> payload = encode_payload(batch);
  ASSERT_TRUE(payload);
  EXPECT_EQ(payload->tensors.size(), 4u);
  const Result<Batch> back = decode_payload<Batch>(*payload);
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->observations.is_same(batch.observations));
  EXPECT_FALSE(back->extras.at("a")[1].defined());
  EXPECT_TRUE(back->mask->is_same(*batch.mask));
  EXPECT_EQ(back->step, 5);
}

TEST(Payload, TheSameTensorIsOneEntryHoweverMany) {
  for (const std::size_t distinct : {3u, 100u}) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < 3 * distinct; ++i) {
      tensors.push_back(i < distinct ? at::full({1}, static_cast<std::int64_t>(i)) : tensors[i % distinct]);
    }
    const Result<Payload> payload = encode_payload(tensors);
    EXPECT_EQ(payload->tensors.size(), distinct);
    const Result<std::vector<Tensor>> back = decode_payload<std::vector<Tensor>>(*payload);
    for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE((*back)[i].is_same(tensors[i])) << i;
  }
}

TEST(Payload, ATensorOutsideAPayloadIsAnError) {
  EXPECT_EQ(wire::encode(at::ones({1})).error().code(), Errc::unsupported);
  const wire::Bytes bytes(1);
  EXPECT_EQ(wire::decode<Tensor>(bytes).error().code(), Errc::malformed_payload);
}

TEST(Payload, AnIndexThatIsNotThereIsMalformed) {
  Result<Payload> payload = encode_payload(std::pair(at::ones({1}), at::ones({2})));
  payload->tensors.pop_back();
  using Pair = std::pair<Tensor, Tensor>;
  EXPECT_EQ(decode_payload<Pair>(*payload).error().text(), "a tensor that is not in the message at byte 2");
}

TEST(Payload, ASecondSinkDoesNotMixItsTensorsWithTheFirst) {
  std::vector<Tensor> tensors{at::ones({1})};
  TensorSink sink(tensors);
  EXPECT_EQ(sink.add(tensors[0]), 1u);
  EXPECT_EQ(tensors.size(), 2u);
}

TEST(Payload, OperatorsComeWithTheirHeader) {
  const Tensor sum = at::ones({2}) + 1;
  EXPECT_EQ((2 * sum - sum / 2).sum().item<float>(), 6);
}

TEST(TorchErrors, TextComesWithoutABacktrace) {
  const Result<Tensor> failed = catch_torch(Errc::bad_arguments, []() -> Result<Tensor> {
    return at::ones({2, 3}).mm(at::ones({2, 3}));
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::bad_arguments);
  EXPECT_EQ(failed.error().text(), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
  const auto memory = []() -> Result<int> { throw std::bad_alloc(); };
  EXPECT_EQ(catch_torch(Errc::bad_arguments, memory).error().code(), Errc::limit_exceeded);
  const auto tensors = []() -> Result<int> { throw c10::Error({}, "DefaultCPUAllocator: can't allocate memory"); };
  EXPECT_EQ(catch_torch(Errc::bad_arguments, tensors).error().code(), Errc::limit_exceeded);
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  const auto silent = []() -> Result<int> { throw Silent(); };
  EXPECT_EQ(catch_torch(Errc::bad_arguments, silent).error().text(), "an exception without a text");
}

}  // namespace
}  // namespace caftan::tensor::payload_test
