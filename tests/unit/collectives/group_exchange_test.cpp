// The rules of a group (docs/protocols/collectives.md) as single events, and random histories in any order of delivery.
#include "caftan/collectives/internal/group_exchange.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

namespace caftan::collectives::test::group_exchange_test {
namespace {

using ::testing::HasSubstr;
using Kind = Operation::Kind;

constexpr Operation kSum{.kind = Kind::all_reduce, .reduction = Reduction::sum};
constexpr Operation kMean{.kind = Kind::all_reduce, .reduction = Reduction::mean};
constexpr Operation kGather{.kind = Kind::all_gather};
constexpr Operation kBarrier{.kind = Kind::barrier};
Operation broadcast_from(int root) { return {.kind = Kind::broadcast, .root = root}; }

std::vector<std::string> names(int count) {
  std::vector<std::string> all;
  for (int rank = 0; rank < count; ++rank) all.push_back("t" + std::to_string(rank));
  return all;
}

/// A group whose messages arrive in the order that a seed chooses.
class World {
 public:
  World(int members, std::uint64_t seed) : random_(seed) {
    for (int rank = 0; rank < members; ++rank) exchanges_.emplace_back(rank, names(members));
  }

  Result<std::uint64_t> begin(int rank, const Operation& operation, const Tensors& tensors) {
    GroupExchange::Actions actions;
    auto number = at(rank).begin(operation, tensors, actions);
    take(rank, actions);
    return number;
  }
  void leave(int rank) {
    for (int to = 0; to < size(); ++to) {
      if (to != rank) messages_.push_back({rank, to, {}, 0, std::nullopt, at(rank).begun()});
    }
  }
  /// Delivers one message; returns whether there was one.
  bool step() {
    if (messages_.empty()) return false;
    std::swap(messages_[random_() % messages_.size()], messages_.back());
    Message message = std::move(messages_.back());
    messages_.pop_back();
    GroupExchange::Actions actions;
    if (message.left) {
      at(message.to).on_left(message.from, *message.left, actions);
    } else if (message.failure) {
      at(message.to).fail(*message.failure, actions);
    } else if (message.is_answer) {
      at(message.to).on_answered(message.piece.operation, message.from, actions);
    } else {
      const auto ticket = next_ticket_++;
      tickets_[{message.to, ticket}] = {message.from, message.piece};
      at(message.to).receive(message.from, message.piece, message.tensors, ticket, actions);
    }
    take(message.to, actions);
    return true;
  }
  void run() {
    while (step()) {
    }
  }
  void deliver(int from, int to, PieceHeader piece, Tensors tensors) {
    messages_.push_back({from, to, std::move(piece), 0, std::nullopt, std::nullopt, false, std::move(tensors)});
  }

  GroupExchange& at(int rank) { return exchanges_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(exchanges_.size()); }
  std::size_t open_tickets() const { return tickets_.size(); }
  std::size_t sent_values() const { return sent_values_; }
  std::size_t sent_pieces() const { return sent_pieces_; }

  std::map<std::pair<int, std::uint64_t>, Result<std::vector<Tensors>>> done;  // by rank and operation

 private:
  struct Message {
    int from;
    int to;
    PieceHeader piece;
    std::uint64_t unused = 0;
    std::optional<Error> failure{};
    std::optional<std::uint64_t> left{};
    bool is_answer = false;
    Tensors tensors{};
  };
  void take(int rank, GroupExchange::Actions& actions) {
    for (auto& send : actions.sends) {
      for (const auto& tensor : send.tensors) sent_values_ += static_cast<std::size_t>(tensor.numel());
      ++sent_pieces_;
      deliver(rank, send.to, std::move(send.header), std::move(send.tensors));
    }
    for (const auto ticket : actions.taken) {
      const auto found = tickets_.extract({rank, ticket});
      ASSERT_FALSE(found.empty()) << "a piece is answered once";
      messages_.push_back({rank, found.mapped().first, found.mapped().second, 0, std::nullopt, std::nullopt, true, {}});
    }
    for (auto& one : actions.done) {
      EXPECT_TRUE(done.emplace(std::pair(rank, one.operation), std::move(one.result)).second) << "done once";
    }
    if (!actions.failure) return;
    for (int to = 0; to < size(); ++to) {
      if (to != rank) messages_.push_back({rank, to, {}, 0, actions.failure, std::nullopt, false, {}});
    }
  }

  std::mt19937_64 random_;
  std::deque<GroupExchange> exchanges_;
  std::vector<Message> messages_;
  std::map<std::pair<int, GroupExchange::Ticket>, std::pair<int, PieceHeader>> tickets_;
  GroupExchange::Ticket next_ticket_ = 0;
  std::size_t sent_values_ = 0;
  std::size_t sent_pieces_ = 0;
};

at::Tensor value_of(int rank, std::int64_t size) {
  return at::arange(size, at::kFloat).add(1).mul(0.1).mul(static_cast<double>(rank + 1) / 3.0);
}

// ---- results

TEST(GroupExchange, CO4_AnElementIsAddedInTheOrderOfTheRanksInBothWays) {
  for (const int members : {1, 2, 3, 4, 5}) {
    for (const std::int64_t size : {1L, 7L, 20000L, 100003L}) {
      World world(members, 1);
      at::Tensor sum = value_of(0, size);
      for (int rank = 1; rank < members; ++rank) sum = sum + value_of(rank, size);
      const at::Tensor mean = sum / members;
      for (int rank = members; rank-- > 0;) {
        ASSERT_TRUE(world.begin(rank, kSum, {value_of(rank, size)}));
        ASSERT_TRUE(world.begin(rank, kMean, {value_of(rank, size)}));
      }
      world.run();
      for (int rank = 0; rank < members; ++rank) {
        EXPECT_TRUE(world.done.at({rank, 0}).value().front().front().equal(sum)) << members << ' ' << size;
        EXPECT_TRUE(world.done.at({rank, 1}).value().front().front().equal(mean)) << members << ' ' << size;
      }
    }
  }
}

TEST(GroupExchange, CO4_LargeValuesTravelAsChunks) {
  const std::int64_t size = 4 * 64 << 10;
  World world(4, 1);
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(world.begin(rank, kSum, {at::ones({size})}));
  world.run();
  EXPECT_EQ(world.sent_values(), 4U * 2 * 3 * static_cast<std::size_t>(size) / 4) << "2 (n - 1) / n of the values each";
  World small(4, 1);
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(small.begin(rank, kSum, {at::ones({16})}));
  small.run();
  EXPECT_EQ(small.sent_pieces(), 4U * 3) << "one step";
}

TEST(GroupExchange, SeveralTensorsKeepTheirSizes) {
  World world(2, 3);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(world.begin(rank, kSum, {at::full({2, 3}, rank + 1.0), at::full({}, 10.0), at::zeros({0, 4})}));
  }
  world.run();
  const Tensors sums = world.done.at({1, 0}).value().front();
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_TRUE(sums[0].equal(at::full({2, 3}, 3.0)));
  EXPECT_TRUE(sums[1].equal(at::full({}, 20.0)));
  EXPECT_EQ(sums[2].sizes(), at::IntArrayRef({0, 4}));
}

TEST(GroupExchange, CO5_ABroadcastIsDoneAtItsRootWhenAllHaveTakenIt) {
  World world(3, 5);
  ASSERT_TRUE(world.begin(1, broadcast_from(1), {at::full({2}, 7.0)}));
  ASSERT_TRUE(world.begin(0, broadcast_from(1), {at::zeros({2})}));
  world.run();
  EXPECT_TRUE(world.done.at({0, 0}).value().front().front().equal(at::full({2}, 7.0)));
  EXPECT_EQ(world.done.count({1, 0}), 0U) << "t2 has not begun";
  EXPECT_EQ(world.open_tickets(), 1U) << "CO-2: its piece is kept and not answered";
  ASSERT_TRUE(world.begin(2, broadcast_from(1), {at::zeros({2})}));
  world.run();
  EXPECT_TRUE(world.done.at({1, 0}).has_value());
  EXPECT_EQ(world.open_tickets(), 0U);
}

TEST(GroupExchange, AGatherTakesOtherSizesAndDtypes) {
  World world(3, 7);
  for (int rank = 0; rank < 3; ++rank) {
    Tensors own;
    for (int i = 0; i < rank; ++i) own.push_back(at::full({i + 1}, rank, rank == 1 ? at::kLong : at::kDouble));
    ASSERT_TRUE(world.begin(rank, kGather, own));
  }
  world.run();
  const auto all = world.done.at({0, 0}).value();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[0].empty());
  EXPECT_TRUE(all[1].front().equal(at::full({1}, 1, at::kLong)));
  EXPECT_TRUE(all[2].back().equal(at::full({2}, 2, at::kDouble)));
}

TEST(GroupExchange, CO6_ArgumentsMayChangeAndResultsAreOnesOwn) {
  World world(2, 9);
  const at::Tensor mine = at::ones({4});
  ASSERT_TRUE(world.begin(0, kSum, {mine}));
  ASSERT_TRUE(world.begin(0, kGather, {mine}));
  mine.fill_(100);
  for (const Operation& operation : {kSum, kGather}) ASSERT_TRUE(world.begin(1, operation, {at::ones({4})}));
  world.run();
  EXPECT_TRUE(world.done.at({1, 0}).value().front().front().equal(at::full({4}, 2.0)));
  const auto at0 = world.done.at({0, 1}).value(), at1 = world.done.at({1, 1}).value();
  at0[0].front().fill_(5);
  EXPECT_TRUE(at1[0].front().equal(at::ones({4})));
}

// ---- any order

TEST(GroupExchange, CO3_ResultsDoNotDependOnTheOrderOfDelivery) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const int members = 2 + static_cast<int>(random() % 4);
    std::vector<Operation> operations;
    for (int i = 0; i < 12; ++i) {
      const std::vector<Operation> kinds{kSum, kMean, kGather, kBarrier,
                                         broadcast_from(static_cast<int>(random() % 2))};
      operations.push_back(kinds[random() % kinds.size()]);
    }
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 12; ++i) sizes.push_back(static_cast<std::int64_t>(random() % 2 == 0 ? 5 : 20000));
    World world(members, seed);
    std::vector<std::size_t> next(static_cast<std::size_t>(members), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < members; ++rank) {
        auto& at = next[static_cast<std::size_t>(rank)];
        if (at < operations.size() && random() % 3 != 0) {
          const Tensors given{value_of(rank, sizes[at])};
          ASSERT_TRUE(world.begin(rank, operations[at], operations[at].kind == Kind::barrier ? Tensors() : given));
          ++at;
        }
        moved = moved || at < operations.size();
      }
      for (auto steps = random() % 8; steps > 0; --steps) world.step();
    }
    world.run();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      for (int rank = 0; rank < members; ++rank) {
        const auto& done = world.done.at({rank, i});
        ASSERT_TRUE(done) << seed;
        const auto& first = world.done.at({0, i}).value();
        ASSERT_EQ(done->size(), first.size());
        for (std::size_t list = 0; list < first.size(); ++list) {
          for (std::size_t k = 0; k < first[list].size(); ++k)
            ASSERT_TRUE((*done)[list][k].equal(first[list][k])) << seed;
        }
      }
    }
    EXPECT_EQ(world.open_tickets(), 0U) << seed;
  }
}

// ---- what goes wrong

/// Expects that each operation of each member that is not in `fine` has ended with this error.
void expect_failed(World& world, Errc code, const std::string& text) {
  for (int rank = 0; rank < world.size(); ++rank) {
    ASSERT_TRUE(world.at(rank).failure()) << rank;
    EXPECT_EQ(world.at(rank).failure()->code(), code);
    EXPECT_THAT(world.at(rank).failure()->text(), HasSubstr(text));
  }
  EXPECT_EQ(world.open_tickets(), 0U);
}

TEST(GroupExchange, CO1_AnotherOperationFailsTheGroupAtAll) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(3, seed);
    ASSERT_TRUE(world.begin(0, kSum, {at::ones({2})}));
    (void)world.begin(1, kSum, {at::ones({2})});
    (void)world.begin(2, kMean, {at::ones({2})});
    world.run();
    expect_failed(world, Errc::bad_arguments, "operation 0 of the group is 'all_reduce ");
    EXPECT_FALSE(world.done.at({0, 0})) << "CO-7: what was open ends with the error";
    EXPECT_EQ(world.begin(0, kBarrier, {}).error().code(), Errc::bad_arguments) << "CO-7: and what comes later";
  }
}

TEST(GroupExchange, CO1_OtherSizesOrDtypesFailTheGroup) {
  for (const at::Tensor& other : {at::ones({3}), at::ones({2}, at::kDouble)}) {
    World world(2, 1);
    ASSERT_TRUE(world.begin(0, kSum, {at::ones({2})}));
    (void)world.begin(1, kSum, {other});
    world.run();
    expect_failed(world, Errc::bad_arguments, "Float [2]");
  }
}

TEST(GroupExchange, CO2_APieceThatComesTwiceFailsTheGroup) {
  World world(2, 1);
  world.deliver(1, 0, {0, 0, "barrier"}, {});
  world.deliver(1, 0, {0, 0, "barrier"}, {});
  world.run();
  expect_failed(world, Errc::malformed_payload, "a second time");
}

TEST(GroupExchange, CO2_APieceOfADoneOperationFailsTheGroup) {
  World world(2, 1);
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(world.begin(rank, kBarrier, {}));
  world.run();
  world.deliver(1, 0, {0, 0, "barrier"}, {});
  world.run();
  expect_failed(world, Errc::malformed_payload, "is done here");
}

TEST(GroupExchange, CO11_APieceTooFarAheadFailsTheGroup) {
  World world(2, 1);
  world.deliver(1, 0, {GroupExchange::kMostOpen, 0, "barrier"}, {});
  world.run();
  expect_failed(world, Errc::malformed_payload, "too far ahead");
}

TEST(GroupExchange, CO11_OneOperationTooManyChangesNothing) {
  World world(2, 1);
  for (std::uint64_t i = 0; i < GroupExchange::kMostOpen; ++i) ASSERT_TRUE(world.begin(0, kBarrier, {}));
  EXPECT_EQ(world.begin(0, kBarrier, {}).error().code(), Errc::limit_exceeded);
  for (std::uint64_t i = 0; i < GroupExchange::kMostOpen; ++i) ASSERT_TRUE(world.begin(1, kBarrier, {}));
  world.run();
  EXPECT_EQ(world.done.size(), 2 * GroupExchange::kMostOpen);
}

TEST(GroupExchange, CO12_TensorsThatDoNotFitFailTheGroup) {
  const std::string what = "all_reduce sum of Float [2]";
  const std::vector<std::pair<PieceHeader, Tensors>> bad{{{0, 0, what}, {at::ones({3})}},
                                                         {{0, 0, what}, {at::ones({2}, at::kDouble)}},
                                                         {{0, 0, what}, {}},
                                                         {{0, 0, what}, {at::Tensor()}},
                                                         {{0, 1, what}, {at::ones({2})}},
                                                         {{0, 2, what}, {at::ones({2})}},
                                                         {{0, 0, what}, {at::ones({2}).to_sparse()}}};
  for (const auto& [header, tensors] : bad) {
    for (const bool early : {false, true}) {
      World world(2, 1);
      if (early) {
        world.deliver(1, 0, header, tensors);
        world.run();
      }
      (void)world.begin(0, kSum, {at::ones({2})});
      if (!early) world.deliver(1, 0, header, tensors);
      world.run();
      expect_failed(world, Errc::malformed_payload, "t1 sent a piece");
    }
  }
}

TEST(GroupExchange, CO12_ABroadcastComesFromItsRootAlone) {
  World world(3, 1);
  ASSERT_TRUE(world.begin(0, broadcast_from(1), {at::ones({2})}));
  world.deliver(2, 0, {0, 0, "broadcast from rank 1 of Float [2]"}, {at::ones({2})});
  world.run();
  expect_failed(world, Errc::malformed_payload, "does not fit");
}

TEST(GroupExchange, CO9_WhatAMemberBeganBeforeItLeftIsDone) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(3, seed);
    ASSERT_TRUE(world.begin(2, kSum, {at::ones({2})}));
    world.leave(2);
    world.run();
    for (const int rank : {0, 1}) ASSERT_TRUE(world.begin(rank, kSum, {at::ones({2})}));
    world.run();
    for (const int rank : {0, 1}) EXPECT_TRUE(world.done.at({rank, 0}));
    (void)world.begin(0, kBarrier, {});
    world.run();
    EXPECT_EQ(world.done.at({0, 1}).error().code(), Errc::shut_down);
    EXPECT_EQ(world.done.at({0, 1}).error().worker(), "t2");
  }
}

TEST(GroupExchange, CO7_TheFirstErrorIsFinal) {
  World world(2, 1);
  ASSERT_TRUE(world.begin(0, kBarrier, {}));
  GroupExchange::Actions actions;
  world.at(0).fail(Error(Errc::peer_down, "t1", "lost"), actions);
  ASSERT_EQ(actions.done.size(), 1U);
  EXPECT_EQ(actions.done.front().result.error().code(), Errc::peer_down);
  EXPECT_FALSE(actions.failure) << "it came from outside: nothing is sent";
  world.at(0).fail(Error(Errc::timeout, "later"), actions);
  EXPECT_EQ(world.at(0).failure()->code(), Errc::peer_down);
}

TEST(GroupExchange, WhatCannotBeReducedIsRefusedAndTheGroupGoesOn) {
  World world(2, 1);
  const auto code_of = [&](const Operation& operation, const Tensors& tensors) {
    return world.begin(0, operation, tensors).error().code();
  };
  EXPECT_EQ(code_of(kSum, {}), Errc::bad_arguments);
  EXPECT_EQ(code_of(kSum, {at::Tensor()}), Errc::bad_arguments);
  EXPECT_EQ(code_of(kSum, {at::ones({1}, at::kBool)}), Errc::bad_arguments);
  EXPECT_EQ(code_of(kMean, {at::ones({1}, at::kLong)}), Errc::bad_arguments);
  EXPECT_EQ(code_of(kSum, {at::ones({1}), at::ones({1}, at::kDouble)}), Errc::bad_arguments);
  EXPECT_EQ(code_of(kSum, {at::ones({1}).to_sparse()}), Errc::unsupported);
  EXPECT_EQ(code_of(broadcast_from(2), {at::ones({1})}), Errc::bad_arguments);
  EXPECT_EQ(code_of(broadcast_from(-1), {at::ones({1})}), Errc::bad_arguments);
  EXPECT_FALSE(world.at(0).failure());
  EXPECT_EQ(world.at(0).begun(), 0U);
}

TEST(GroupExchange, SumsOfIntegersAndOfViewsAreThoseOfTheirValues) {
  World world(2, 1);
  const at::Tensor matrix = at::arange(6, at::kLong).view({2, 3});
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(world.begin(rank, kSum, {matrix.t()}));
  world.run();
  EXPECT_TRUE(world.done.at({0, 0}).value().front().front().equal(matrix.t() * 2));
}

}  // namespace
}  // namespace caftan::collectives::test::group_exchange_test
