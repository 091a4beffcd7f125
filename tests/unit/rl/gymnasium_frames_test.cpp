#include "caftan/rl/internal/gymnasium_frames.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace caftan::rl::gymnasium_frames_test {
namespace {

using namespace gymnasium;

template <class... T>
std::vector<std::byte> bytes_of(T... values) {
  std::vector<std::byte> bytes;
  const auto add = [&](auto value) {
    const auto at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  (add(values), ...);
  return bytes;
}

TEST(GymnasiumFrames, GY2_HeadersAreChecked) {
  const auto good = encode(Header{.size = 0x01020304, .kind = Kind::outcome});
  EXPECT_EQ(std::vector<std::byte>(good.begin(), good.end()),
            bytes_of(std::uint32_t{0x01020304}, std::uint16_t{6}, std::uint16_t{0}));
  const auto header = decode_header(good);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->size, 0x01020304U);
  EXPECT_EQ(header->kind, Kind::outcome);
  for (const std::uint16_t kind : {0, 9}) {
    EXPECT_EQ(decode_header(bytes_of(1U, kind, std::uint16_t{0})).error().code(), Errc::malformed_payload);
  }
  EXPECT_FALSE(decode_header(bytes_of(1U, std::uint16_t{1}, std::uint16_t{1})));
  EXPECT_FALSE(decode_header(bytes_of(1U)));
}

TEST(GymnasiumFrames, GY2_SpecsAreChecked) {
  const auto discrete = decode_spec(bytes_of(1U, 4U, 0U, 2U, 500U, 1U, 475.0), "x");
  ASSERT_TRUE(discrete);
  EXPECT_EQ(*discrete,
            (EnvironmentSpec{.id = "x", .observation_size = 4, .actions = 2, .max_steps = 500, .solved_at = 475.0}));
  const auto continuous = decode_spec(bytes_of(1U, 3U, 1U, 1U, 0U, 0U, 0.0, -2.0F, 2.0F), "x");
  ASSERT_TRUE(continuous);
  EXPECT_TRUE(continuous->is_continuous());
  EXPECT_EQ(continuous->action_high, (std::vector<float>{2}));
  EXPECT_FALSE(continuous->solved_at);
  EXPECT_EQ(decode_spec(bytes_of(2U, 4U, 0U, 2U, 500U, 1U, 475.0), "x").error().code(), Errc::protocol_mismatch);
  EXPECT_EQ(decode_spec(bytes_of(1U, 4U), "x").error().code(), Errc::malformed_payload);
  EXPECT_EQ(decode_spec(bytes_of(1U, 4U, 2U, 2U, 500U, 1U, 475.0), "x").error().code(), Errc::malformed_payload);
  EXPECT_EQ(decode_spec(bytes_of(1U, 4U, 0U, 2U, 500U, 1U, 475.0, 1.0F), "x").error().code(), Errc::malformed_payload);
  EXPECT_EQ(decode_spec(bytes_of(1U, 3U, 1U, 1U, 0U, 0U, 0.0, -2.0F), "x").error().code(), Errc::malformed_payload);
  EXPECT_EQ(decode_spec(bytes_of(1U, 0U, 0U, 2U, 500U, 1U, 475.0), "x").error().kind(), "environment.spec");
  EXPECT_EQ(decode_spec(bytes_of(1U, 4U, 1U, ~0U, 500U, 1U, 475.0), "x").error().kind(), "environment.spec");
  EXPECT_EQ(decode_spec(bytes_of(1U, 4U, 0U, 2U, ~0U, 1U, 475.0), "x").error().kind(), "environment.spec");
}

TEST(GymnasiumFrames, GY2_OutcomesHaveTheSizeThatTheirFlagsExplain) {
  VectorBuffers buffers(2, 1);
  const std::uint8_t yes = 1;
  const std::uint8_t no = 0;
  const auto body = bytes_of(1.0, 2.0, no, yes, no, no, 3.0F, 4.0F, 5.0F);
  ASSERT_TRUE(decode_outcome(body, true, buffers));
  EXPECT_EQ(buffers.rewards, (std::vector<double>{1, 2}));
  EXPECT_EQ(buffers.observations, (std::vector<float>{3, 4}));
  EXPECT_EQ(buffers.last_observations[1], 5.0F);
  EXPECT_FALSE(buffers.view().ended(0));
  EXPECT_TRUE(buffers.view().ended(1));
  EXPECT_LE(body.size(), most_outcome(true, buffers));
  EXPECT_FALSE(decode_outcome(body, false, buffers)) << "no last observations where the process resets nothing";
  EXPECT_FALSE(decode_outcome(std::span(body).first(body.size() - 4), true, buffers));
  EXPECT_FALSE(decode_outcome(bytes_of(1.0, 2.0, no, std::uint8_t{2}, no, no, 3.0F, 4.0F, 5.0F), true, buffers));
  EXPECT_FALSE(decode_outcome(bytes_of(1.0, 2.0, no, no, no, no, 3.0F, 4.0F, 5.0F), true, buffers));
  EXPECT_FALSE(decode_outcome({}, true, buffers));
}

TEST(GymnasiumFrames, GY3_ResetsCarryASeedOrNone) {
  const std::vector<ResetOrder> orders = {{.environment = 2, .seed = 7}, {.environment = 3}};
  EXPECT_EQ(encode_reset(orders), bytes_of(2U, 1U, std::uint64_t{7}, 3U, 0U, std::uint64_t{0}));
  EXPECT_EQ(encode_hello(4, true, "A"), bytes_of(1U, 4U, 1U, 'A'));
  std::vector<float> out(2);
  EXPECT_TRUE(decode_observations(bytes_of(1.0F, 2.0F), out));
  EXPECT_EQ(out, (std::vector<float>{1, 2}));
  EXPECT_FALSE(decode_observations(bytes_of(1.0F), out));
  EXPECT_FALSE(decode_observations(bytes_of(1.0F, 2.0F, 3.0F), out));
}

TEST(GymnasiumFrames, GY7_ErrorsSayTheWayOut) {
  const auto error = [](std::uint32_t reason, std::int32_t index) {
    return decode_error(bytes_of(reason, index, 'w', 'h', 'y'), "Lunar-v3");
  };
  EXPECT_EQ(error(1, -1).code(), Errc::invalid_config);
  EXPECT_NE(error(1, -1).text().find("pip install gymnasium"), std::string::npos);
  EXPECT_EQ(error(2, -1).code(), Errc::invalid_config);
  EXPECT_NE(error(2, -1).text().find("gymnasium[box2d]"), std::string::npos);
  EXPECT_EQ(error(3, 5).code(), Errc::remote_exception);
  EXPECT_EQ(error(3, 5).text(), "environment 'gymnasium:Lunar-v3' (number 5): why");
  EXPECT_EQ(error(4, -1).code(), Errc::invalid_config);
  EXPECT_EQ(error(5, 0).kind(), "environment.shape");
  EXPECT_EQ(error(6, -1).code(), Errc::protocol_mismatch);
  EXPECT_EQ(error(7, -1).code(), Errc::malformed_payload);
  EXPECT_EQ(decode_error(bytes_of(1U), "x").code(), Errc::malformed_payload);
}

TEST(GymnasiumFrames, GY8_NumbersThatAreNotFiniteAreNamed) {
  const EnvironmentSpec spec{.id = "x", .observation_size = 2, .actions = 1};
  VectorBuffers buffers(2, 2);
  EXPECT_TRUE(check_finite(spec, buffers));
  buffers.observations[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(check_finite(spec, buffers).error().text(),
            "environment 'x' (number 1): value 1 of the observation is inf");
  buffers.observations[3] = 0;
  buffers.last_observations[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(check_finite(spec, buffers));
  buffers.last_observations[0] = 0;
  buffers.rewards[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(check_finite(spec, buffers).error().kind(), "environment.not_finite");
}

}  // namespace
}  // namespace caftan::rl::gymnasium_frames_test
