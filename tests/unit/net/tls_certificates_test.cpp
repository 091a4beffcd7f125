// Names in certificates, which a stranger may fill with anything: TS-3 and TS-4 of docs/protocols/tls.md.
#include "tls_certificates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include <memory>
#include <utility>

#include "tls_handles.hpp"

namespace caftan::net::tls {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Entries = std::vector<std::pair<int, std::string>>;  // GEN_DNS or GEN_IPADD, and the bytes

Certificate certificate_with(const Entries& entries) {
  const std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>> names(GENERAL_NAMES_new());
  for (const auto& [type, bytes] : entries) {
    GENERAL_NAME* const name = GENERAL_NAME_new();
    auto* const value =
        type == GEN_DNS ? reinterpret_cast<ASN1_STRING*>(ASN1_IA5STRING_new()) : ASN1_OCTET_STRING_new();
    ::ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size()));
    ::GENERAL_NAME_set0_value(name, type, value);
    sk_GENERAL_NAME_push(names.get(), name);
  }
  Certificate certificate(::X509_new());
  ::X509_add1_ext_i2d(certificate.get(), NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT);
  return certificate;
}

TEST(TlsCertificates, NamesAndAddressesAreRead) {
  const Certificate certificate = certificate_with({{GEN_DNS, "node-1"},
                                                    {GEN_IPADD, std::string("\xc0\x00\x02\x07", 4)},
                                                    {GEN_IPADD, std::string(15, '\0') + "\x01"}});
  EXPECT_THAT(names_of(certificate.get()), ElementsAre("node-1", "192.0.2.7", "::1"));
  EXPECT_EQ(text_of_names(certificate.get()), "for node-1, 192.0.2.7, ::1");
}

TEST(TlsCertificates, AnAddressOfAnotherLengthIsNone) {
  for (const std::size_t size : {0, 1, 3, 5, 15, 17, 1000}) {
    EXPECT_THAT(names_of(certificate_with({{GEN_IPADD, std::string(size, '\7')}}).get()), IsEmpty()) << size;
  }
}

TEST(TlsCertificates, ANameThatNoHostCanHaveIsNone) {
  for (const std::string& name : {std::string(), std::string("a\0b", 3), std::string("\x1b[2J"), std::string("a\nb"),
                                  std::string("a b"), std::string("\xc3\xa4"), std::string(254, 'a')}) {
    EXPECT_THAT(names_of(certificate_with({{GEN_DNS, name}}).get()), IsEmpty()) << name;
  }
  EXPECT_EQ(names_of(certificate_with({{GEN_DNS, std::string(253, 'a')}}).get()).size(), 1U);
}

TEST(TlsCertificates, ATextNamesAFew) {
  Entries many;
  for (char name = 'a'; name <= 'z'; ++name) many.emplace_back(GEN_DNS, std::string(1, name));
  EXPECT_EQ(text_of_names(certificate_with(many).get()), "for a, b, c, d and 22 more");
  EXPECT_EQ(text_of_names(certificate_with({}).get()), "without a name");
  EXPECT_EQ(text_of_names(nullptr), "without a name");
}

}  // namespace
}  // namespace caftan::net::tls
