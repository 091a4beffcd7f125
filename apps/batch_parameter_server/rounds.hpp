/// `Rounds`: which gradients make a step together. Plain rules without tensors or calls; the time is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"

namespace caftan::batch_parameter_server {

/// Trainers send one gradient for each version of the model. Those of the newest version are collected until all
/// trainers that are not lost have sent theirs, or a quorum has and its time has passed; then the round is closed, and
/// the model has its next version. This is the rule CM-13 of docs/protocols/consistency.md. Threads: one at a time.
class Rounds {
 public:
  enum class Arrival {
    counts,  ///< the gradient belongs to the open round
    late     ///< its round is closed: it is dropped, and its trainer gets the newest model
  };

  /// @param trainers  numbered from 0
  /// @param quorum  1..trainers
  /// @param straggler_timeout  how long a quorum waits for the other trainers
  /// @param version  of the model: rounds that were closed before
  Rounds(std::uint32_t trainers, std::uint32_t quorum, base::Duration straggler_timeout, std::int64_t version);

  std::int64_t version() const noexcept { return version_; }

  /// Takes a gradient that its trainer computed at `version`.
  /// Errors: bad_arguments (no such trainer, one that was lost, a version that is not there yet, a second gradient in
  ///   one round; nothing has changed then).
  Result<Arrival> arrive(std::uint32_t trainer, std::int64_t version, base::TimePoint now);

  /// Returns the trainers whose gradients the open round has, in the order of their numbers.
  const std::set<std::uint32_t>& arrived() const noexcept { return arrived_; }
  /// Returns whether the open round has a quorum.
  bool is_full() const noexcept { return arrived_.size() >= quorum_; }
  /// Returns when a round that has a quorum is closed without the others; nothing before it has one.
  std::optional<base::TimePoint> closes_at() const noexcept { return closes_at_; }
  /// Returns whether the open round is to be closed.
  bool may_close(base::TimePoint now) const noexcept;
  /// Closes the round. Precondition: is_full().
  void close();

  /// A trainer is gone. What it sent counts.
  void lose(std::uint32_t trainer) { lost_.insert(trainer); }
  bool is_lost(std::uint32_t trainer) const noexcept { return lost_.contains(trainer); }
  /// Returns whether the open round can still be closed: enough trainers have sent their gradients or are there.
  bool can_be_full() const noexcept;

 private:
  std::uint32_t trainers_;
  std::size_t quorum_;
  base::Duration straggler_timeout_;
  std::int64_t version_;
  std::set<std::uint32_t> arrived_;
  std::optional<base::TimePoint> closes_at_;
  std::set<std::uint32_t> lost_;
};

}  // namespace caftan::batch_parameter_server
