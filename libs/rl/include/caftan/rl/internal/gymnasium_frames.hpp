/// The frames between Caftan and a process of Gymnasium, as bytes (docs/protocols/gymnasium.md). No sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/vector_environment.hpp"

namespace caftan::rl::gymnasium {

/// The version of the frames that this build speaks.
inline constexpr std::uint32_t kVersion = 1;

/// What a frame is.
enum class Kind : std::uint16_t {
  hello = 1,
  spec = 2,
  reset = 3,
  observations = 4,
  step = 5,
  outcome = 6,
  error = 7,
  close = 8,
};

/// Why a process gives up.
enum class Reason : std::uint32_t { missing = 1, unknown = 2, raised = 3, unsupported = 4, shape = 5, protocol = 6 };

/// The first bytes of each frame: how many follow, and of what kind these are.
struct Header {
  static constexpr std::size_t kSize = 8;
  std::uint32_t size = 0;
  Kind kind = Kind::close;
};

/// Returns the bytes of a header.
std::array<std::byte, Header::kSize> encode(const Header& header);
/// Reads a header. Errors: malformed_payload (GY-2: a kind there is not, reserved bits).
Result<Header> decode_header(std::span<const std::byte> bytes);

/// Returns the body of a hello.
/// @param resets  whether the process resets environments whose episode ends
std::vector<std::byte> encode_hello(std::uint32_t n, bool resets, std::string_view id);

/// One environment that shall be reset.
struct ResetOrder {
  std::uint32_t environment = 0;
  std::optional<std::uint64_t> seed{};
};
/// Returns the body of a reset.
std::vector<std::byte> encode_reset(std::span<const ResetOrder> orders);

/// Reads the body of a spec.
/// @param id  by which it goes
/// Errors: malformed_payload (GY-2), protocol_mismatch (another version), user_error (GY-8: sizes that cannot be).
Result<EnvironmentSpec> decode_spec(std::span<const std::byte> body, std::string id);

/// Copies the observations of a reset. Errors: malformed_payload (a size that is not the one of `out`).
Result<void> decode_observations(std::span<const std::byte> body, std::span<float> out);

/// Copies what a step gave.
/// @param resets  as in the hello
/// Errors: malformed_payload (a size that the flags do not explain, a flag that is not 0 or 1).
Result<void> decode_outcome(std::span<const std::byte> body, bool resets, VectorBuffers& out);
/// Returns the most bytes that the body of an outcome has for these arrays.
std::size_t most_outcome(bool resets, const VectorBuffers& buffers);

/// Reads the body of an error, and says what the reader can do.
/// @param id  of the environment
/// Errors: malformed_payload, inside of the returned error.
Error decode_error(std::span<const std::byte> body, std::string_view id);

/// Returns nothing where all numbers are finite.
/// Errors: user_error of kind "environment.not_finite" (EN-2), with the number of the environment.
Result<void> check_finite(const EnvironmentSpec& spec, const VectorBuffers& buffers);

}  // namespace caftan::rl::gymnasium
