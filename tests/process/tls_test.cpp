// Runs over two launchers whose connections are encrypted: docs/protocols/tls.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "caftan/net/internal/tls_authority.hpp"
#include "command.hpp"
#include "free_port.hpp"
#include "programs.hpp"

namespace caftan::test::tls_test {
namespace {

using ::testing::HasSubstr;

class Tls : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("s", "our shared secret\n"); }
  void write_file(const std::string& tls) {
    folder_.write("t.toml",
                  "caftan = 1\n[run]\nname = \"ticking\"\nplacement = \"hosts\"\nstart_timeout = \"30s\"\n"
                  "[roles.ticker]\ntype = \"ticker\"\nhosts = [\"head\"]\n[roles.ticker.config]\nrounds = 20\n"
                  "[roles.ticker.uses]\nechoes = \"echo\"\n[roles.echo]\ntype = \"echo\"\nreplicas = 2\nhosts = "
                  "[\"node\"]\n[cluster]\nsecret_file = \"s\"\n[hosts.head]\naddress = \"127.0.0.1:" +
                      port_.number() + "\"\n[hosts.node]\naddress = \"127.0.0.1\"\n" + tls);
    port_.release();
  }
  void write_certificate(const net::TlsAuthority& authority, const std::string& file, const std::string& name) {
    const net::TlsPair pair = authority.issue({name}).value();
    folder_.write(file + ".pem", pair.certificate);
    folder_.write(file + ".key", pair.key);
  }
  static std::vector<std::string> words(const std::string& host, std::vector<std::string> overrides = {}) {
    std::vector<std::string> all{"run", "t.toml"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    all.insert(all.end(), {"--host", host});
    return all;
  }
  /// Returns the words of a host that uses its own certificate.
  static std::vector<std::string> certified(const std::string& host) {
    return words(host, {"tls.certificate=" + host + ".pem", "tls.key=" + host + ".key"});
  }
  Folder folder_;
  FreePort port_;
};

TEST_F(Tls, TS1_ARunIsEncryptedWithAKeyMadeOfTheSecret) {
  write_file("[tls]\nmode = \"on\"\n");
  Command head(folder_, kTicking, words("head"));
  Command node(folder_, kTicking, words("node"));
  EXPECT_EQ(head.wait(), 0) << head.err();
  EXPECT_EQ(node.wait(), 0) << node.err();
  EXPECT_THAT(head.out(), HasSubstr("tick 20\n"));
  EXPECT_THAT(head.err(), HasSubstr("encrypted with a key made of the secret"));
}

TEST_F(Tls, TS3_ARunWithCertificatesOfItsHosts) {
  const net::TlsAuthority authority = net::TlsAuthority::make().value();
  folder_.write("authority.pem", authority.pair().certificate);
  write_certificate(authority, "head", "head");
  write_certificate(authority, "node", "node");
  write_file("[tls]\nauthority = \"authority.pem\"\n");
  Command head(folder_, kTicking, certified("head"));
  Command node(folder_, kTicking, certified("node"));
  EXPECT_EQ(head.wait(), 0) << head.err();
  EXPECT_EQ(node.wait(), 0) << node.err();
  EXPECT_THAT(head.err(), HasSubstr("encrypted with the certificates of [tls]"));
}

TEST_F(Tls, TS4_ACertificateForAnotherNameIsRefusedAtBothSides) {
  const net::TlsAuthority authority = net::TlsAuthority::make().value();
  folder_.write("authority.pem", authority.pair().certificate);
  write_certificate(authority, "head", "head");
  write_certificate(authority, "node", "elsewhere");
  write_file("[tls]\nauthority = \"authority.pem\"\n");
  Command head(folder_, kTicking, certified("head"));
  Command node(folder_, kTicking, certified("node"));
  EXPECT_EQ(node.wait(), 1) << node.err();
  EXPECT_THAT(node.err(), HasSubstr("not_authenticated"));
  EXPECT_THAT(node.err(), HasSubstr("is for elsewhere: it needs one of"));
  ASSERT_TRUE(head.wait_for_line("warning: ticker refused a connection")) << head.err();
  head.signal(SIGINT);
  EXPECT_EQ(head.wait(), 130) << head.err();
  EXPECT_THAT(head.err(), HasSubstr("is for elsewhere: it needs one of"));
}

TEST_F(Tls, TS3_AKeyOfAnotherCertificateIsNamedByCheckAndRefusedBeforeTheStart) {
  const net::TlsAuthority authority = net::TlsAuthority::make().value();
  folder_.write("authority.pem", authority.pair().certificate);
  write_certificate(authority, "head", "head");
  write_certificate(authority, "node", "node");
  write_file("[tls]\nauthority = \"authority.pem\"\n");
  const std::vector<std::string> wrong{"tls.certificate=head.pem", "tls.key=node.key"};
  const Finished run = run_to_end(folder_, kTicking, words("head", wrong));
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("node.key is not the key of tls.certificate "));
  const Finished check = run_to_end(folder_, kTicking, {"check", "t.toml", wrong[0], wrong[1]});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.err, HasSubstr("node.key is not the key of tls.certificate "));
}

TEST_F(Tls, TS6_TlsOnOneSideOnlyIsNamedAtBothSides) {
  write_file("");
  Command head(folder_, kTicking, words("head", {"tls.mode=on"}));
  Command node(folder_, kTicking, words("node"));
  EXPECT_EQ(node.wait(), 1) << node.err();
  EXPECT_THAT(node.err(), HasSubstr("protocol_mismatch"));
  EXPECT_THAT(node.err(), HasSubstr("tls.mode must be the same in both files"));
  ASSERT_TRUE(head.wait_for_line("warning: ticker refused a connection")) << head.err();
  head.signal(SIGINT);
  EXPECT_EQ(head.wait(), 130) << head.err();
  EXPECT_THAT(head.err(), HasSubstr("tls.mode must be the same in both files"));
}

}  // namespace
}  // namespace caftan::test::tls_test
