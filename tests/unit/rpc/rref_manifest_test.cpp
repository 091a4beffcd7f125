#include "caftan/rpc/internal/rref_manifest.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace caftan::rpc::rref_manifest_test {
namespace {

using From = CheckedManifest::From;

constexpr WorkerLife kSelf{WorkerId{0}, Incarnation{5}};
constexpr WorkerLife kOther{WorkerId{2}, Incarnation{8}};
const PeerSession kSender{{WorkerId{1}, Incarnation{7}}, 3};

RRefId value_of(const WorkerLife& life, std::uint64_t number) { return {life.id, life.incarnation, number}; }
ForkId fork_of(const WorkerLife& life, std::uint64_t number) { return {life.id, life.incarnation, number}; }

/// Knows the members 0 to 2, and the values and forks that the test puts in.
class Known final : public KnownRRefs {
 public:
  std::set<RRefId> values;
  std::set<ForkId> forks;
  bool is_member(WorkerId worker) const override { return worker.value < 3; }
  bool has_value(RRefId rref) const override { return values.contains(rref); }
  bool has_fork(ForkId fork) const override { return forks.contains(fork); }
};

class RRefManifest : public ::testing::Test {
 protected:
  /// A reference to a value of `owner` that the sender hands over.
  static SharedRRef share(const WorkerLife& owner, std::uint64_t number, ForkId parent = {}) {
    return {value_of(owner, 1), fork_of(kSender.peer, number), owner, parent, {}, 9, "int"};
  }
  Result<CheckedManifest> read(const Manifest& manifest, const PeerSession& sender = kSender) const {
    return CheckedManifest::read(wire::encode(manifest).value(), sender, kSelf, known_);
  }
  void expect_refused(const Manifest& manifest, const std::string& why, const PeerSession& sender = kSender) const {
    const auto read_one = read(manifest, sender);
    ASSERT_FALSE(read_one) << why;
    EXPECT_EQ(read_one.error().code(), Errc::malformed_payload);
    EXPECT_EQ(read_one.error().text(), why);
  }

  const ForkId parent_ = fork_of(kSender.peer, 90);
  Known known_;
};

TEST_F(RRefManifest, RR3_SaysOfEachReferenceWhereItIsFromInOrder) {
  const Creation creation{value_of(kSender.peer, 4), fork_of(kSender.peer, 5), {3, 1}};
  const Manifest manifest{creation, {share(kOther, 10, parent_), share(kSelf, 11), share(kSender.peer, 12)}};
  const auto checked = read(manifest);
  ASSERT_TRUE(checked) << checked.error().message();
  ASSERT_TRUE(checked->creation());
  EXPECT_EQ(checked->creation()->rref, creation.rref);
  EXPECT_EQ(checked->creation()->fork, creation.fork);
  EXPECT_EQ(checked->creation()->number, creation.number);
  ASSERT_EQ(checked->references().size(), 3U);
  EXPECT_EQ(checked->references()[0].from, From::parent);
  EXPECT_EQ(checked->references()[1].from, From::user);
  EXPECT_EQ(checked->references()[2].from, From::owner);
  EXPECT_EQ(checked->references()[2].shared.fork.number, 12U);
  EXPECT_EQ(checked->references()[2].shared.type_name, "int");
}

TEST_F(RRefManifest, AnEmptyOneHasNothing) {
  const auto checked = read({});
  ASSERT_TRUE(checked);
  EXPECT_FALSE(checked->creation());
  EXPECT_TRUE(checked->references().empty());
}

TEST_F(RRefManifest, RR1_RefusesACreationThatItsSenderCannotAskFor) {
  const WorkerLife sender = kSender.peer;
  const std::string foreign = "a creation with an id that is not the creator's new one";
  expect_refused({Creation{value_of(sender, 4), {}, {3, 1}}, {}}, "a creation without the creator's reference");
  expect_refused({Creation{value_of(kOther, 4), fork_of(sender, 5), {3, 1}}, {}}, foreign);
  expect_refused({Creation{value_of(sender, 4), fork_of(kOther, 5), {3, 1}}, {}}, foreign);
  const WorkerLife earlier{sender.id, Incarnation{6}};
  expect_refused({Creation{value_of(earlier, 4), fork_of(sender, 5), {3, 1}}, {}}, foreign);
  expect_refused({Creation{value_of(sender, 4), fork_of(earlier, 5), {3, 1}}, {}}, foreign);
  known_.values.insert(value_of(sender, 4));
  expect_refused({Creation{value_of(sender, 4), fork_of(sender, 5), {3, 1}}, {}}, "a creation that came twice");
}

TEST_F(RRefManifest, ACreationAtTheOwnWorkerNeedsNoFork) {
  const PeerSession self{kSelf, 2};
  known_.values.insert(value_of(kSelf, 4));  // the creator makes the value before the frame leaves
  EXPECT_TRUE(read({Creation{value_of(kSelf, 4), {}, {}}, {}}, self));
}

TEST_F(RRefManifest, RR1_RefusesAReferenceThatItsSenderCannotHandOver) {
  const WorkerLife sender = kSender.peer;
  const std::string foreign = "a reference whose fork was not made by its sender";
  const std::string no_owner = "a reference without parent that is not from its owner";
  expect_refused({{}, {share({WorkerId{3}, Incarnation{1}}, 10)}}, "a reference to a value of an unknown worker");
  SharedRRef shared = share(sender, 10);
  shared.fork = {};
  expect_refused({{}, {shared}}, foreign);
  shared.fork = fork_of(kOther, 10);
  expect_refused({{}, {shared}}, foreign);
  shared.fork = fork_of({sender.id, Incarnation{6}}, 10);
  expect_refused({{}, {shared}}, foreign);
  expect_refused({{}, {share(kOther, 10)}}, no_owner);
  expect_refused({{}, {share({sender.id, Incarnation{6}}, 10)}}, no_owner);
  // The owner is an earlier life of this worker, so the reference is not one that comes back to its owner.
  expect_refused({{}, {share({kSelf.id, Incarnation{4}}, 10)}}, no_owner);
}

TEST_F(RRefManifest, RR1_RefusesAReferenceThatCameTwice) {
  const std::string twice = "a reference that came twice";
  expect_refused({{}, {share(kOther, 10, parent_), share(kSender.peer, 10)}}, twice);
  known_.forks.insert(fork_of(kSender.peer, 11));
  expect_refused({{}, {share(kOther, 11, parent_)}}, twice);
  EXPECT_TRUE(read({{}, {share(kSelf, 12), share(kSelf, 12)}})) << "its table counts what comes back";
}

TEST_F(RRefManifest, RefusesBytesThatAreNoManifest) {
  const wire::Bytes bytes(1, std::byte{2});
  EXPECT_EQ(CheckedManifest::read(bytes, kSender, kSelf, known_).error().code(), Errc::malformed_payload);
}

}  // namespace
}  // namespace caftan::rpc::rref_manifest_test
