// TS-9: certificates and their authority are renewed while a job runs. docs/protocols/tls.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caftan/actors/worker.hpp"
#include "caftan/net/internal/tls_authority.hpp"
#include "folder.hpp"
#include "worker/worker_options.hpp"

namespace caftan::tls_renewal_test {
namespace {

using ::testing::HasSubstr;

int add_one(int value) { return value + 1; }

Registry make_registry() {
  Registry registry;
  registry.add<&add_one>("add_one");
  return registry;
}

class TlsRenewal : public ::testing::Test {
 protected:
  /// Writes an authority, and certificates of it for all members, over those that are there.
  void renew() {
    const net::TlsAuthority authority = net::TlsAuthority::make().value();
    folder_.write("authority", authority.pair().certificate);
    for (const WorkerAddress& member : world_) {
      const net::TlsPair pair = authority.issue({member.name}).value();
      folder_.write(member.name + ".pem", pair.certificate);
      folder_.write(member.name + ".key", pair.key);
    }
  }
  std::unique_ptr<Worker> launch(const std::string& name) {
    WorkerOptions options;
    options.name = name;
    options.world = world_;
    options.secret = "shared by this test";
    options.tls.certificate = folder_ / (name + ".pem");
    options.tls.key = folder_ / (name + ".key");
    options.tls.authority = folder_ / "authority";
    return Worker::launch(std::move(options), make_registry()).value();
  }
  test::Folder folder_;
  std::vector<WorkerAddress> world_{{"a", "tcp:127.0.0.1:0"}, {"b", "tcp:127.0.0.1:0"}, {"c", "tcp:127.0.0.1:0"}};
};

TEST_F(TlsRenewal, TS9_ANewLifeMeetsRunningWorkersWithRenewedFilesAndOnlyWithThem) {
  renew();
  const auto a = launch("a");
  world_[0].address = a->address();
  auto b = launch("b");
  const auto c = launch("c");
  for (Worker* worker : {a.get(), b.get(), c.get()}) worker->wait_until_ready().value();
  EXPECT_EQ(a->channel_kind("b"), "tcp+tls");
  b->stop();
  const std::string old_certificate = folder_.read("b.pem");
  const std::string old_key = folder_.read("b.key");

  renew();
  b = launch("b");
  const auto met = b->wait_until_ready();
  ASSERT_TRUE(met) << met.error().message();
  EXPECT_EQ(b->rpc_sync<&add_one>("a", 1), 2);
  EXPECT_EQ(b->rpc_sync<&add_one>("c", 2), 3);
  EXPECT_EQ(a->rpc_sync<&add_one>("c", 3), 4) << "a session from before the renewal";
  b->stop();

  folder_.write("b.pem", old_certificate);
  folder_.write("b.key", old_key);
  b = launch("b");
  const auto refused = b->wait_until_ready();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::not_authenticated) << refused.error().message();
  EXPECT_THAT(refused.error().text(), ::testing::HasSubstr("tls.authority"));
  EXPECT_EQ(a->rpc_sync<&add_one>("c", 4), 5);
}

TEST(TlsNames, AnAddressOfTheFileIsThatOfTheCertificateHoweverItIsWritten) {
  WorkerOptions options;
  options.tls.also_named["b"] = {"node2", "FE80:0:0:0::1"};
  net::PeerInfo peer;
  peer.name = "b";
  peer.certified = {{"fe80::1"}};
  EXPECT_TRUE(actors::check_certificate(options, peer));
  peer.certified = {{"fe80::2"}};
  const auto refused = actors::check_certificate(options, peer);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("is for fe80::2: it needs one of b, node2, fe80::1"));
}

}  // namespace
}  // namespace caftan::tls_renewal_test
