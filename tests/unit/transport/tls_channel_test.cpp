// TLS under connections over TCP sockets: docs/protocols/tls.md.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "caftan/base/ids.hpp"
#include "caftan/transport/internal/endpoint.hpp"
#include "caftan/transport/threaded_executor.hpp"

namespace caftan::transport::tls_channel_test {
namespace {

constexpr const char* kSecret = "correct horse battery staple";

net::HandshakeOptions worker(std::uint32_t id) {
  net::HandshakeOptions options;
  options.self.cluster = "test";
  options.self.name = "worker" + std::to_string(id);
  options.self.id = WorkerId{id};
  options.self.incarnation = Incarnation{id + 1};
  options.self.connection = id;
  options.secret = net::Secret(kSecret);
  return options;
}

HandshakeIoOptions with_tls(const std::string& secret = kSecret) {
  HandshakeIoOptions options;
  options.tls = net::TlsKeys{"test", net::Secret(secret), {}};
  return options;
}

/// What listening and dialling end with.
struct Ends {
  Ends(const HandshakeIoOptions& listens, const HandshakeIoOptions& dials) {
    std::promise<Result<Accepted>> first;
    std::promise<Result<Accepted>> second;
    auto listener = listen(
        executor, "tcp:127.0.0.1:0", [] { return worker(0); }, listens,
        [&](Result<Accepted> result) { first.set_value(std::move(result)); });
    (*listener)->start();
    dial(executor, (*listener)->address(), worker(1), "worker0", dials,
         [&](Result<Accepted> result) { second.set_value(std::move(result)); });
    accepted.emplace(first.get_future().get());
    dialled.emplace(second.get_future().get());
    (*listener)->close();
  }
  ThreadedExecutor executor{{.runners = 1}};
  std::optional<Result<Accepted>> accepted;
  std::optional<Result<Accepted>> dialled;
};

TEST(TlsChannel, TS1_BothEndsAreEncrypted) {
  Ends ends(with_tls(), with_tls());
  ASSERT_TRUE(*ends.accepted) << ends.accepted->error().message();
  ASSERT_TRUE(*ends.dialled) << ends.dialled->error().message();
  EXPECT_STREQ((*ends.accepted)->channel->kind(), "tcp+tls");
  EXPECT_STREQ((*ends.dialled)->channel->kind(), "tcp+tls");
  EXPECT_EQ((*ends.accepted)->peer.name, "worker1");
}

TEST(TlsChannel, WithoutKeysTcpIsPlain) {
  Ends ends({}, {});
  ASSERT_TRUE(*ends.dialled) << ends.dialled->error().message();
  EXPECT_STREQ((*ends.dialled)->channel->kind(), "tcp");
}

TEST(TlsChannel, TS2_AnotherSecretFailsAtBothEnds) {
  Ends ends(with_tls(), with_tls("another secret of the job"));
  EXPECT_EQ(ends.accepted->error().code(), Errc::not_authenticated) << ends.accepted->error().message();
  EXPECT_EQ(ends.dialled->error().code(), Errc::not_authenticated) << ends.dialled->error().message();
}

TEST(TlsChannel, TS6_TlsOnOneSideOnlyFailsAtBothEnds) {
  for (const bool listener_has : {true, false}) {
    Ends ends(listener_has ? with_tls() : HandshakeIoOptions(), listener_has ? HandshakeIoOptions() : with_tls());
    for (const auto* end : {&ends.accepted, &ends.dialled}) {
      ASSERT_FALSE(**end);
      EXPECT_EQ((*end)->error().code(), Errc::protocol_mismatch) << (*end)->error().message();
      EXPECT_NE((*end)->error().text().find("tls.mode"), std::string::npos) << (*end)->error().message();
    }
  }
}

TEST(TlsChannel, TS11_WhatIsOfferedAgainIsNotEncryptedAgain) {
  Ends ends(with_tls(), with_tls());
  Channel& writer = *(*ends.dialled)->channel;
  Channel& reader = *(*ends.accepted)->channel;
  writer.start([](bool, bool) {});
  reader.start([](bool, bool) {});
  wire::Bytes sent(8 << 20);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(mix64(i / 8) >> (i % 8 * 8));
  wire::Bytes received;
  std::size_t written = 0;
  std::size_t refusals = 0;
  wire::Bytes room(100'000);
  while (received.size() < sent.size()) {
    const iovec from{sent.data() + written, sent.size() - written};
    const std::size_t put = written < sent.size() ? writer.write(&from, 1).value() : 0;
    written += put;
    refusals += put == 0 ? 1 : 0;
    const iovec to{room.data(), room.size()};
    const std::size_t got = reader.read(&to, 1).value();
    wire::append(received, wire::ByteView(room).first(got));
  }
  EXPECT_GT(refusals, 0U) << "the socket was never full";
  EXPECT_EQ(written, sent.size());
  EXPECT_TRUE(received == sent);
}

TEST(TlsChannel, TS8_ABadRecordBehindAGoodOneIsReportedWithoutFurtherBytes) {
  Ends ends(with_tls(), with_tls());
  Channel& writer = *(*ends.dialled)->channel;
  Channel& reader = *(*ends.accepted)->channel;
  writer.start([](bool, bool) {});
  reader.start([](bool, bool) {});
  std::string text = "good bytes";
  const iovec from{text.data(), text.size()};
  ASSERT_EQ(writer.write(&from, 1).value(), text.size());
  const std::string bad = std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x');
  ASSERT_EQ(::send(writer.fd(), bad.data(), bad.size(), 0), static_cast<ssize_t>(bad.size()));
  for (int here = 0; here <= static_cast<int>(text.size() + bad.size());)
    ASSERT_EQ(::ioctl(reader.fd(), FIONREAD, &here), 0);
  wire::Bytes room(1000);
  const iovec to{room.data(), room.size()};
  EXPECT_EQ(reader.read(&to, 1).value(), text.size());
  EXPECT_TRUE(reader.has_unread());
  EXPECT_FALSE(reader.try_sleep()) << "no socket tells of the error";
  EXPECT_EQ(reader.read(&to, 1).error().code(), Errc::peer_down);
}

TEST(TlsChannel, KeysThatCannotBeUsedEndTheDialWithTheirError) {
  ThreadedExecutor executor{{.runners = 1}};
  std::promise<Result<Accepted>> done;
  dial(executor, "tcp:127.0.0.1:1", worker(1), "worker0", with_tls(""),
       [&](Result<Accepted> result) { done.set_value(std::move(result)); });
  EXPECT_EQ(done.get_future().get().error().code(), Errc::invalid_config);
}

}  // namespace
}  // namespace caftan::transport::tls_channel_test
