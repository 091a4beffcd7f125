// How the messages of the backward protocol travel.
#include "caftan/autograd/internal/messages.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace caftan::autograd::messages_test {
namespace {

constexpr WorkerLife kHome{{0}, {77}};
constexpr WorkerLife kPeer{{3}, {99}};
const ContextId kContext{kHome.id, kHome.incarnation, 5};

AutogradMessageId message(std::uint64_t number) { return {kPeer.id, kPeer.incarnation, number}; }

DecidedSet decided(std::initializer_list<bool> outcomes) {
  DecidedSet set;
  for (const bool ok : outcomes) set.decide_next(ok);
  return set;
}

PassHeader header() {
  return {{kContext, {4}}, decided({true, false, true}), kPeer, Mode::fast, true, {{RRefId{{1}, {2}, 3}, "X"}}};
}

TEST(PassMessages, EachTravelsUnchanged) {
  const PassId pass{kContext, {4}};
  const Error error(Errc::unused_branch, "worker3", "message 3.1");
  const std::vector<PassMessage> all = {
      PassOpen{kContext},
      Granted{pass, decided({true, false, true})},
      Refused{kContext, error},
      Mark{header(), {message(1), message(2)}},
      Report{pass, {AutogradMessageId{}, message(1)}, {message(2)}, {message(3)}, true},
      Grad{header(), message(2)},
      Done{pass},
      Fail{pass, error},
      Decide{pass, error},
      Decided{pass, {}, decided({false})},
      Join{kContext},
      End{pass, error, decided({true, true, true, false})},
      Release{kContext, {2, 7}}};
  ASSERT_EQ(all.size(), std::variant_size_v<PassMessage>);
  for (const PassMessage& sent : all) {
    const auto bytes = wire::encode(sent);
    ASSERT_TRUE(bytes);
    const auto received = wire::decode<PassMessage>(*bytes);
    ASSERT_TRUE(received) << to_string(sent);
    EXPECT_EQ(received->index(), sent.index());
    EXPECT_EQ(to_string(*received), to_string(sent));
    EXPECT_EQ(context_of(*received), kContext);
    EXPECT_EQ(*wire::encode(*received), *bytes);
  }
}

TEST(PassMessages, ABadModeIsRefused) {
  PassHeader bad = header();
  bad.mode = static_cast<Mode>(2);
  EXPECT_FALSE(wire::decode<PassHeader>(*wire::encode(bad)));
}

TEST(DecidedSet, TheLongerOneSaysEverything) {
  DecidedSet set = decided({true});
  EXPECT_FALSE(set.learn(decided({true})));
  EXPECT_TRUE(set.learn(decided({true, false, true})));
  EXPECT_FALSE(set.learn(decided({true, false})));
  EXPECT_EQ(set, decided({true, false, true}));
  EXPECT_TRUE(set.is_ok({1}));
  EXPECT_FALSE(set.is_ok({2}));
  EXPECT_TRUE(set.contains({2}));
  EXPECT_FALSE(set.contains({4}));
  EXPECT_FALSE(set.contains({0}));
}

TEST(DecidedSet, AListThatContradictsItselfIsRefused) {
  using Raw = std::tuple<PassNumber, std::vector<PassNumber>>;
  const auto decodes = [](const Raw& raw) { return wire::decode<DecidedSet>(*wire::encode(raw)).has_value(); };
  EXPECT_TRUE(decodes({{3}, {{1}, {3}}}));
  EXPECT_FALSE(decodes({{3}, {{3}, {1}}}));
  EXPECT_FALSE(decodes({{3}, {{2}, {2}}}));
  EXPECT_FALSE(decodes({{3}, {{4}}}));
  EXPECT_FALSE(decodes({{3}, {{0}}}));
  std::vector<PassNumber> many;
  for (std::uint64_t n = 1; n <= DecidedSet::kMostFailed + 1; ++n) many.push_back({n});
  EXPECT_FALSE(decodes({{1000}, many}));
}

}  // namespace
}  // namespace caftan::autograd::messages_test
