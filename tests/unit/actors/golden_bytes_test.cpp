// ADR 8: what crosses between builds, byte for byte. A change here is a new protocol version, or a new section behind a
// feature bit; it never happens by the way. (Handshakes, values and tensor tables: their own corpora.)
#include <gtest/gtest.h>

#include "caftan/autograd/internal/messages.hpp"
#include "caftan/net/internal/leave_together.hpp"
#include "caftan/net/internal/membership.hpp"
#include "caftan/remote/internal/address.hpp"
#include "caftan/remote/internal/control_bodies.hpp"
#include "caftan/remote/internal/message_registry.hpp"
#include "caftan/rpc/internal/rref_manifest.hpp"
#include "caftan/wire/archive.hpp"
#include "caftan/wire/frame.hpp"
#include "caftan/wire/internal/bye_body.hpp"
#include "caftan/wire/internal/out_frame.hpp"
#include "rref/rref_messages.hpp"
#include "worker/gatherer.hpp"

namespace caftan::actors::golden_bytes_test {
namespace {

std::string hex(wire::ByteView bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const char digits[] = "0123456789abcdef";
    text += digits[static_cast<unsigned>(byte) >> 4];
    text += digits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}
template <class T>
std::string hex_of(const T& value) {
  return hex(wire::encode(value).value());
}

const RRefId kRRef{WorkerId{1}, Incarnation{0x1122334455667788}, 3};
const ForkId kFork{WorkerId{2}, Incarnation{0x99aabbccddeeff00}, 4};
const ForkId kParent{WorkerId{3}, Incarnation{5}, 6};
const rpc::CreationNumber kNumber{7, 8};

TEST(GoldenBytes, KindsOfFramesKeepTheirNumbersAndNames) {
  std::string kinds;
  for (unsigned number = 0; number < 256; ++number) {
    const auto kind = static_cast<wire::FrameKind>(number);
    if (wire::is_known(kind)) kinds += std::to_string(number) + " " + std::string(wire::name_of(kind)) + "\n";
  }
  EXPECT_EQ(kinds,
            "1 ping\n2 pong\n3 bye\n4 chunk\n5 taken\n6 ended\n10 call\n11 create\n12 fetch\n13 method\n14 op\n18 "
            "response\n19 "
            "cancel\n"
            "20 actor_message\n21 actor_reply\n22 down\n23 exit\n24 monitor\n25 demonitor\n26 link\n27 unlink\n");
  EXPECT_EQ(static_cast<int>(wire::SectionType::rrefs), 1);
  EXPECT_EQ(static_cast<int>(wire::SectionType::autograd), 2);
  EXPECT_EQ(static_cast<int>(wire::SectionType::chain), 3);
  EXPECT_EQ(static_cast<int>(wire::SectionType::bulk), 4);
  EXPECT_EQ(static_cast<int>(wire::SectionType::target), 5);
  EXPECT_EQ(static_cast<int>(wire::SectionType::depth), 6);
  EXPECT_EQ(static_cast<int>(wire::SectionType::error_kinds), 7);
  EXPECT_EQ(static_cast<int>(wire::SectionType::grad_mode), 8);
  EXPECT_EQ(static_cast<int>(wire::SectionType::places), 9);
}

TEST(GoldenBytes, TheHeaderOfAFrame) {
  wire::FrameHeader header;
  header.sections_size = 0x01020304;
  header.body_size = 0x05060708;
  header.table_size = 0x090a0b0c;
  header.kind = wire::FrameKind::response;
  header.flags = wire::kFlagError;
  header.cpu = 0x0d0e;
  header.call = 0x1112131415161718;
  header.remaining_us = 0x2122232425262728;
  header.trace = 0x3132333435363738;
  header.bulk_size = 0x4142434445464748;
  std::byte bytes[wire::kFrameHeaderSize];
  wire::encode_header(header, bytes);
  EXPECT_EQ(hex(bytes),
            "04030201"
            "08070605"
            "0c0b0a09"
            "12"
            "01"
            "0e0d"
            "1817161514131211"
            "2827262524232221"
            "3837363534333231"
            "4847464544434241");
}

TEST(GoldenBytes, GA1_TheArgumentOfAGatheredValue) {
  GatherValue value{{1, 2}, {0x0102030405060708, 9}, {0x1112131415161718, "int", std::string("\x05\0\0\0", 4), {}}};
  EXPECT_EQ(hex_of(value),
            "02"
            "01000000"
            "02000000"
            "0807060504030201"
            "0900000000000000"
            "1817161514131211"
            "03696e74"
            "0405000000"
            "00");
}

TEST(GoldenBytes, ASection) {
  wire::Bytes sections;
  const std::byte content[] = {std::byte{0xaa}, std::byte{0xbb}};
  wire::append_section(sections, wire::SectionType::target, wire::kSectionCritical, content);
  EXPECT_EQ(hex(sections),
            "0500"
            "0100"
            "02000000"
            "aabb");
}

TEST(GoldenBytes, BU2_AFrameThatLends) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the place is what is written, and no byte of it is read
  const auto* const place = reinterpret_cast<const std::byte*>(std::uintptr_t{0x1122334455667788});
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::response;
  const std::shared_ptr<const void> owner(place, [](const void*) {});
  frame.segments = {{place, wire::kLentFrom, owner}, {place, wire::kLentFrom - 1, owner}};
  frame.lends = true;
  wire::Bytes bytes;
  wire::encode_frame(frame, bytes);
  EXPECT_EQ(hex(wire::ByteView(bytes).subspan(wire::kFrameHeaderSize)),
            "0400010010000000"
            "0000010000000000"
            "ffff000000000000"
            "0900010010000000"
            "8877665544332211"
            "0000000000000000");
}

TEST(GoldenBytes, AddressesOfActors) {
  EXPECT_EQ(hex_of(remote::Address::root()), "040000000000000000000000000000000000000000");
  EXPECT_EQ(hex_of(remote::Address::exported(9)), "010000000000000000000000000900000000000000");
  EXPECT_EQ(hex_of(remote::Address::of(kFork)), "030200000000ffeeddccbbaa990400000000000000");
}

TEST(GoldenBytes, TheManifestOfReferences) {
  rpc::SharedRRef shared{kRRef,    kFork, {WorkerId{1}, Incarnation{0x1122334455667788}}, kParent, kNumber,
                         0xabcdef, "int"};
  EXPECT_EQ(hex_of(rpc::Manifest{rpc::Creation{kRRef, kFork, kNumber}, {shared}}),
            "0101000000887766554433221103000000000000000200000000ffeeddccbbaa99040000000000000007000000000000"
            "0008000000000000000101000000887766554433221103000000000000000200000000ffeeddccbbaa99040000000000"
            "000001000000887766554433221103000000050000000000000006000000000000000700000000000000080000000000"
            "0000efcdab000000000003696e74");
}

TEST(GoldenBytes, MessagesBetweenActors) {
  EXPECT_EQ(hex_of(ForkRequested{kRRef, kNumber, kFork, kParent}),
            "0100000088776655443322110300000000000000070000000000000008000000000000000200000000ffeeddccbbaa99"
            "04000000000000000300000005000000000000000600000000000000");
  EXPECT_EQ(hex_of(ForkAnswered{kFork, Errc::rref_deleted}), "0200000000ffeeddccbbaa9904000000000000000a");
  EXPECT_EQ(hex_of(ForkAccepted{kFork}), "0200000000ffeeddccbbaa990400000000000000");
  net::View view;
  view.revision = 2;
  view.members = {{"agent", WorkerId{0}, Incarnation{1}, "unix:/a"}};
  EXPECT_EQ(hex_of(view), "020000000000000001056167656e7400000000010000000000000007756e69783a2f61");
  EXPECT_EQ(hex_of(net::Met{}), "");
  EXPECT_EQ(hex_of(net::LeaveReport{0x1122334455667788, 2, 3}), "887766554433221102000000000000000300000000000000");
  EXPECT_EQ(hex_of(net::RunReturned{}), "");
  // The id of a message on the wire is made of its name.
  EXPECT_EQ(remote::MessageRegistry::id_of("rref.fork"), 16451004460458615968ULL);
  EXPECT_EQ(remote::MessageRegistry::id_of("run.returned"), 17044483830311443267ULL);
}

TEST(GoldenBytes, MessagesOfTheBackwardProtocol) {
  const ContextId context{WorkerId{1}, Incarnation{2}, 3};
  autograd::DecidedSet decided;
  decided.decide_next(true);
  decided.decide_next(false);
  const autograd::PassHeader header{{context, {4}},       decided, {WorkerId{5}, Incarnation{6}},
                                    autograd::Mode::fast, true,    {{kRRef, "net"}}};
  EXPECT_EQ(hex_of(header),
            "0100000002000000000000000300000000000000"
            "0400000000000000"
            "0200000000000000"
            "010200000000000000"
            "050000000600000000000000"
            "01"
            "01"
            "010100000088776655443322110300000000000000036e6574");
  EXPECT_EQ(hex_of(autograd::PassMessage(autograd::Release{context, {2, 9}})),
            "0c"
            "0100000002000000000000000300000000000000"
            "02000000000000000900000000000000");
}

TEST(GoldenBytes, TheBodiesOfFramesAboutActors) {
  const remote::Address root = remote::Address::root();
  const remote::Address ninth = remote::Address::exported(9);
  const Error reason(Errc::timeout, "b", "late");
  EXPECT_EQ(hex_of(remote::RouteBody{root, ninth}), hex_of(root) + hex_of(ninth));
  EXPECT_EQ(hex_of(remote::MonitorBody{ninth}), hex_of(ninth));
  EXPECT_EQ(hex_of(remote::DownBody{ninth, reason}), hex_of(ninth) + hex_of(reason));
  EXPECT_EQ(hex_of(remote::ExitBody{root, ninth, reason}), hex_of(root) + hex_of(ninth) + hex_of(reason));
  EXPECT_EQ(hex(wire::ByeBody{reason}.encode()), hex_of(reason));
  EXPECT_EQ(hex(wire::ByeBody{}.encode()), "");
}

TEST(GoldenBytes, AnError) {
  const Error cause(Errc::timeout, "b", "late");
  EXPECT_EQ(hex_of(Error(Errc::remote_exception, "a", "no", std::make_shared<const Error>(cause))),
            "090161026e6f01010162046c617465");
}

TEST(GoldenBytes, U19_TheKindsOfAnError) {
  const Error cause = Error(Errc::user_error, "b", "empty").of_kind("no_funds");
  const Error error(Errc::remote_exception, "a", "no", std::make_shared<const Error>(cause));
  EXPECT_EQ(hex_of(error), "090161026e6f0124016205656d707479") << "kinds are no part of an error's own bytes";
  EXPECT_EQ(hex(wire::encode_kinds(error)), "0200086e6f5f66756e6473");
  EXPECT_EQ(hex(wire::encode_kinds(Error(Errc::timeout, "late"))), "");
}

}  // namespace
}  // namespace caftan::actors::golden_bytes_test
