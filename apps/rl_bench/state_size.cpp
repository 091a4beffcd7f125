#include "rl_bench/state_size.hpp"

#include <charconv>

#include "caftan/base/settings_io.hpp"

namespace caftan::rl_bench {
namespace {

constexpr std::size_t kMostDimensions = 8;
constexpr std::int64_t kMostFloats = 1 << 24;

}  // namespace

Result<std::vector<std::int64_t>> parse_state_size(const std::string& text) {
  const Error wrong(Errc::invalid_config,
                    "a state's size is 1 to 8 numbers from 1 with - between them, such as "
                    "\"10-20-10\", and 16777216 floats at most, not \"" +
                        printable(text) + "\"");
  std::vector<std::int64_t> sizes;
  std::int64_t floats = 1;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > kMostFloats / floats) return wrong;
    floats *= size;
    sizes.push_back(size);
    if (sizes.size() > kMostDimensions) return wrong;
    if (next == end) return sizes;
    if (*next != '-') return wrong;
    at = next + 1;
  }
}

}  // namespace caftan::rl_bench
