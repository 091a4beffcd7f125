#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "caftan/rl/internal/gymnasium_frames.hpp"

namespace caftan::rl::gymnasium {
namespace {

static_assert(std::endian::native == std::endian::little, "the frames are little-endian, and copied as they are");

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Error malformed(const std::string& what) {
  return Error(Errc::malformed_payload, "a frame of the Gymnasium process: " + what);
}

/// Reads numbers one after the other; past the end these are 0 and `ok` is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> left) : left_(left) {}

  template <class T>
  T take() {
    T value{};
    copy(std::span<T>(&value, 1));
    return value;
  }
  template <class T>
  void copy(std::span<T> out) {
    ok = ok && left_.size() >= out.size_bytes();
    if (!ok || out.empty()) return;
    std::memcpy(out.data(), left_.data(), out.size_bytes());
    left_ = left_.subspan(out.size_bytes());
  }
  std::string rest() {
    std::string text(left_.size(), '\0');
    if (!text.empty()) std::memcpy(text.data(), left_.data(), text.size());
    left_ = {};
    return text;
  }
  bool at_end() const noexcept { return ok && left_.empty(); }

  bool ok = true;

 private:
  std::span<const std::byte> left_;
};

constexpr std::uint32_t kMostActions = 1U << 20;

bool are_flags(std::span<const std::uint8_t> values) {
  return std::all_of(values.begin(), values.end(), [](std::uint8_t value) { return value <= 1; });
}

}  // namespace

std::array<std::byte, Header::kSize> encode(const Header& header) {
  std::vector<std::byte> bytes;
  put(bytes, header.size);
  put(bytes, static_cast<std::uint16_t>(header.kind));
  put(bytes, std::uint16_t{0});
  std::array<std::byte, Header::kSize> result{};
  std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

Result<Header> decode_header(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto size = reader.take<std::uint32_t>();
  const auto kind = reader.take<std::uint16_t>();
  const auto reserved = reader.take<std::uint16_t>();
  if (!reader.at_end()) return malformed("its header has " + std::to_string(bytes.size()) + " bytes");
  if (kind < static_cast<std::uint16_t>(Kind::hello) || kind > static_cast<std::uint16_t>(Kind::close)) {
    return malformed("its kind is " + std::to_string(kind));
  }
  if (reserved != 0) return malformed("reserved bits of its header are set");
  return Header{.size = size, .kind = static_cast<Kind>(kind)};
}

std::vector<std::byte> encode_hello(std::uint32_t n, bool resets, std::string_view id) {
  std::vector<std::byte> body;
  put(body, kVersion);
  put(body, n);
  put(body, std::uint32_t{resets});
  const auto text = std::as_bytes(std::span(id));
  body.insert(body.end(), text.begin(), text.end());
  return body;
}

std::vector<std::byte> encode_reset(std::span<const ResetOrder> orders) {
  std::vector<std::byte> body;
  for (const ResetOrder& order : orders) {
    put(body, order.environment);
    put(body, std::uint32_t{order.seed.has_value()});
    put(body, order.seed.value_or(0));
  }
  return body;
}

Result<EnvironmentSpec> decode_spec(std::span<const std::byte> body, std::string id) {
  Reader reader(body);
  if (const auto version = reader.take<std::uint32_t>(); version != kVersion) {
    return Error(Errc::protocol_mismatch, "the Gymnasium process speaks version " + std::to_string(version) +
                                              " of the protocol, this program " + std::to_string(kVersion));
  }
  EnvironmentSpec spec{.id = std::move(id)};
  spec.observation_size = reader.take<std::uint32_t>();
  const auto kind = reader.take<std::uint32_t>();
  const auto actions = reader.take<std::uint32_t>();
  const auto max_steps = reader.take<std::uint32_t>();
  const auto is_solvable = reader.take<std::uint32_t>();
  const auto solved_at = reader.take<double>();
  if (!reader.ok || kind > 1 || is_solvable > 1) return malformed("a spec that does not decode");
  if (spec.observation_size == 0 || actions == 0 || actions > kMostActions ||
      max_steps > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
    return user_error("environment.spec", "environment '" + spec.id +
                                              "', its spec: " + std::to_string(spec.observation_size) +
                                              " values of an observation, " + std::to_string(actions) + " actions, " +
                                              std::to_string(max_steps) + " steps");
  }
  spec.max_steps = static_cast<int>(max_steps);
  if (is_solvable == 1) spec.solved_at = solved_at;
  if (kind == 0) {
    spec.actions = static_cast<int>(actions);
  } else {
    spec.action_low.resize(actions);
    spec.action_high.resize(actions);
    reader.copy(std::span(spec.action_low));
    reader.copy(std::span(spec.action_high));
  }
  if (!reader.at_end()) return malformed("a spec of " + std::to_string(body.size()) + " bytes");
  return spec;
}

Result<void> decode_observations(std::span<const std::byte> body, std::span<float> out) {
  Reader reader(body);
  reader.copy(out);
  if (reader.at_end()) return {};
  return malformed("observations of " + std::to_string(body.size()) + " bytes, not " +
                   std::to_string(out.size_bytes()));
}

std::size_t most_outcome(bool resets, const VectorBuffers& buffers) {
  const std::size_t observations = buffers.observations.size() * sizeof(float);
  return buffers.rewards.size() * (sizeof(double) + 2) + observations * (resets ? 2 : 1);
}

Result<void> decode_outcome(std::span<const std::byte> body, bool resets, VectorBuffers& out) {
  const std::size_t n = out.rewards.size();
  const std::size_t width = out.observations.size() / n;
  Reader reader(body);
  reader.copy(std::span(out.rewards));
  reader.copy(std::span(out.terminated));
  reader.copy(std::span(out.truncated));
  if (!reader.ok || !are_flags(out.terminated) || !are_flags(out.truncated)) {
    return malformed("an outcome whose flags do not decode");
  }
  reader.copy(std::span(out.observations));
  for (std::size_t i = 0; resets && i < n; ++i) {
    if (out.view().ended(i)) reader.copy(std::span(out.last_observations).subspan(i * width, width));
  }
  if (reader.at_end()) return {};
  return malformed("an outcome of " + std::to_string(body.size()) + " bytes, which its flags do not explain");
}

Error decode_error(std::span<const std::byte> body, std::string_view id) {
  Reader reader(body);
  const auto reason = reader.take<std::uint32_t>();
  const auto index = reader.take<std::int32_t>();
  if (!reader.ok) return malformed("an error that does not decode");
  const std::string text = reader.rest();
  const std::string place = "environment 'gymnasium:" + std::string(id) + "'" +
                            (index < 0 ? std::string() : " (number " + std::to_string(index) + ")") + ": ";
  switch (static_cast<Reason>(reason)) {
    case Reason::missing:
      return Error(Errc::invalid_config, place + "Gymnasium is not installed for this Python (" + text +
                                             "): pip install gymnasium, in a virtual environment whose bin is in PATH "
                                             "or whose interpreter `python` names");
    case Reason::unknown:
      return Error(Errc::invalid_config,
                   place + "Gymnasium could not make it: " + text +
                       "; packages of environments are extras, such as pip install \"gymnasium[box2d]\"");
    case Reason::raised:
      return Error(Errc::remote_exception, place + text);
    case Reason::unsupported:
      return Error(Errc::invalid_config,
                   place + text + ": wrap it in a module of your own, and name it module:Name-v0");
    case Reason::shape:
      return user_error("environment.shape", place + text);
    case Reason::protocol:
      return Error(Errc::protocol_mismatch, place + text);
  }
  return malformed("an error of reason " + std::to_string(reason));
}

Result<void> check_finite(const EnvironmentSpec& spec, const VectorBuffers& buffers) {
  const auto fault = [&](std::size_t i, const std::string& what) {
    return user_error("environment.not_finite",
                      "environment '" + spec.id + "' (number " + std::to_string(i) + "): " + what);
  };
  for (std::size_t i = 0; i < buffers.rewards.size(); ++i) {
    if (!std::isfinite(buffers.rewards[i])) return fault(i, "the reward is " + std::to_string(buffers.rewards[i]));
  }
  for (const auto* values : {&buffers.observations, &buffers.last_observations}) {
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (std::isfinite((*values)[i])) continue;
      return fault(i / spec.observation_size, "value " + std::to_string(i % spec.observation_size) +
                                                  " of the observation is " + std::to_string((*values)[i]));
    }
  }
  return {};
}

}  // namespace caftan::rl::gymnasium
