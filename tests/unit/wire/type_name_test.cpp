#include "caftan/wire/type_name.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "caftan/base/fnv1a.hpp"

namespace at {
class Tensor;
}
namespace own::at {
struct Tensor;
}

namespace caftan::wire::type_name_test {

struct Named {};

namespace {

struct Hidden {};

// Fixed texts, not what one compiler prints: two builds must agree on the signature of a function.
static_assert(type_name<int>() == "int");
static_assert(type_name<unsigned long>() == "unsigned long");
static_assert(type_name<long long>() == "long long");
static_assert(type_name<unsigned short>() == "unsigned short");
static_assert(type_name<std::string>() == "std::string");
static_assert(type_name<const std::string&>() == "const std::string&");
static_assert(type_name<std::vector<std::vector<std::string>>>() == "std::vector<std::vector<std::string>>");
static_assert(type_name<std::map<std::string, int>>() == "std::map<std::string, int>");
static_assert(type_name<std::unordered_map<int, std::string>>() == "std::unordered_map<int, std::string>");
static_assert(type_name<std::optional<std::variant<int, bool>>>() == "std::optional<std::variant<int, bool>>");
static_assert(type_name<std::array<float, 4>>() == "std::array<float, 4>");
static_assert(type_name<const char*>() == "const char*");
static_assert(type_name<void(int, std::string)>() == "void(int, std::string)");
static_assert(type_name<Named>() == "caftan::wire::type_name_test::Named");
static_assert(type_name<Hidden>() == "caftan::wire::type_name_test::Hidden");
static_assert(type_name<at::Tensor>() == "Tensor");
static_assert(type_name<own::at::Tensor>() == "own::at::Tensor");

TEST(TypeName, TheHashIsFnv1aOfTheName) {
  EXPECT_EQ(base::fnv1a(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(base::fnv1a("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(base::fnv1a("foobar"), 0x85944171f73967e8ULL);  // the authors' test vector
  EXPECT_EQ(type_hash<int>(), base::fnv1a("int"));
  EXPECT_NE(type_hash<int>(), type_hash<unsigned>());
  EXPECT_EQ(base::fnv1a("bar", base::fnv1a("foo")), base::fnv1a("foobar"));
}

}  // namespace
}  // namespace caftan::wire::type_name_test
