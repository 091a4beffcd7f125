/// How trainers that share one module see each other's steps: the mode and its options, as an application file has
/// them. Start with `ConsistencyOptions`; rules CM-1 to CM-24: docs/protocols/consistency.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "caftan/base/result.hpp"

namespace caftan::nn {

/// What a trainer's forward reads, and when its gradient is applied.
enum class ConsistencyMode : std::uint8_t {
  locked,     ///< one context at a time, from its first call to its step
  versioned,  ///< each context reads one version; its gradient is applied to the newest one
  sync,       ///< rounds: all read the same version, the mean of their gradients makes one step
};

/// Returns "locked", "versioned" or "sync".
std::string_view to_string(ConsistencyMode mode) noexcept;
constexpr bool is_valid(ConsistencyMode mode) noexcept { return mode <= ConsistencyMode::sync; }

/// Returns the mode of that name. Errors: invalid_config, with the nearest name and the list of all.
Result<ConsistencyMode> parse_consistency_mode(std::string_view text);

/// What a context does in mode locked when another one has the lease.
enum class LeaseOrder : std::uint8_t {
  queue,  ///< waits for the lease, in the order of arrival
  /// Waits only if the context is older than the holder and all waiting ones, else gets `lease_conflict`.
  oldest_waits,
};

constexpr bool is_valid(LeaseOrder order) noexcept { return order <= LeaseOrder::oldest_waits; }

/// A table of an application file: `s("consistency", c.consistency, "...")` in the settings of a role.
struct ConsistencyOptions {
  ConsistencyMode mode = ConsistencyMode::versioned;
  LeaseOrder lease = LeaseOrder::queue;
  std::optional<std::uint64_t> max_staleness{};  ///< steps; versioned only, empty = any
  std::optional<std::uint32_t> quorum{};         ///< number of trainers; sync only, together with straggler_timeout
  std::optional<std::chrono::nanoseconds> straggler_timeout{};

  bool operator==(const ConsistencyOptions&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& mode& lease& max_staleness& quorum& straggler_timeout;
  }
  static void settings(auto& s, ConsistencyOptions& c) {
    s("mode", c.mode, "what trainers that share the module see of each other")
        .one_of({{"locked", "one context at a time"},
                 {"versioned", "each context reads one version"},
                 {"sync", "rounds with one step each"}});
    s("lease", c.lease, "mode locked: what a context does while another one has the lease")
        .one_of({{"queue", "waits in the order of arrival"},
                 {"oldest_waits", "for trainers that use several locked modules at once"}});
    s("max_staleness", c.max_staleness, "mode versioned: steps that a gradient may be behind");
    s("quorum", c.quorum, "mode sync: trainers that close a round without the others").at_least(1);
    s("straggler_timeout", c.straggler_timeout, "mode sync: how long a quorum waits for the others")
        .range(std::chrono::nanoseconds(0), std::chrono::hours(24));
  }
};

/// Checks what one key alone cannot show.
/// @param trainers  how many share the module, 1 to 65,536
/// Errors: invalid_config, naming the key: no trainer, or too many; a key of another mode; a quorum without
///   straggler_timeout, or the reverse; a quorum above the number of trainers; a straggler_timeout that is negative or
///   above 24 hours.
Result<void> check_consistency(const ConsistencyOptions& options, std::uint32_t trainers);

}  // namespace caftan::nn
