/// `Collectives`: what the members of a group compute together: sums, values of one at all, values of all at all.
///     auto group = collectives::join_group(worker, {.name = "replicas", .members = {"trainer-0", "trainer-1"}});
///     at::Tensor mean = group->all_reduce({x}, Reduction::mean).get().front();
/// Each member calls the same operations in the same order. Rules: docs/protocols/collectives.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caftan/rpc/call_site.hpp"

namespace caftan::collectives {

/// How the members' values become one.
enum class Reduction : std::uint8_t {
  sum,  ///< of numbers of any kind but bool
  mean  ///< of floating-point or complex numbers
};

/// Who carries the tensors.
enum class Backend : std::uint8_t {
  caftan,  ///< calls between the members
  gloo     ///< libtorch's ProcessGroupGloo, where this build has it: `has_gloo`
};

/// What a group is.
struct GroupOptions {
  std::string name;                  ///< 1 to 128 bytes, the same at all members
  std::vector<std::string> members;  ///< names of workers in the order of their ranks, this one among them
  Backend backend = Backend::caftan;
  base::Duration timeout = std::chrono::seconds(30);  ///< for all members to join, > 0
};

/// A list of tensors: what a member gives to an operation, or gets.
using Tensors = std::vector<at::Tensor>;

/// One member's part in a group. Its end leaves the group: members that count on it later get shut_down.
/// Arguments may be changed when a call has returned; results share memory with nothing (CO-6).
/// Errors of all operations, in their futures: bad_arguments (members call different operations: the group has failed;
///   a dtype that cannot be reduced, no tensor, a root that is no rank: nothing was sent), peer_down (naming the lost
///   member), shut_down (a member has left), limit_exceeded, unsupported (a tensor that is not dense and on the CPU).
/// Threads: any, but the order of calls must be the same at every member.
class Collectives {
 public:
  virtual ~Collectives() = default;

  /// Returns this member's place in the group, from 0.
  virtual int rank() const noexcept = 0;
  /// Returns the members' names in the order of their ranks.
  virtual const std::vector<std::string>& members() const noexcept = 0;
  /// Returns the number of members.
  int size() const noexcept { return static_cast<int>(members().size()); }
  /// Returns who carries the tensors.
  virtual Backend backend() const noexcept = 0;

  /// Returns the reduced tensors, in the order of the arguments: the same bits at every member.
  /// @param tensors  at least one, all of one dtype; the same sizes at every member
  /// Source: torch.distributed.all_reduce. Difference: the arguments stay as they are.
  virtual Future<Tensors> all_reduce(const Tensors& tensors, Reduction reduction) = 0;

  /// Returns the root's tensors.
  /// @param tensors  at the root the values; elsewhere tensors of the same sizes and dtypes, whose values do not count
  /// Source: torch.distributed.broadcast. Difference: the arguments stay as they are.
  virtual Future<Tensors> broadcast(const Tensors& tensors, int root) = 0;

  /// Returns what each member gave, by rank. Number, sizes and dtypes may differ between members.
  /// Source: torch.distributed.all_gather. Difference: the sizes may differ.
  virtual Future<std::vector<Tensors>> all_gather(const Tensors& tensors) = 0;

  /// Is done when every member has called it. Source: torch.distributed.barrier.
  virtual Future<void> barrier() = 0;

  /// Ends the group at all members with this error, unless it has failed already (CO-7).
  virtual void fail(const Error& reason) = 0;
};

/// Returns whether this build has Backend::gloo.
bool has_gloo() noexcept;

/// Makes this worker a member of a group, and waits until all members have joined.
/// @param site  a Worker or a RoleContext
/// Errors: bad_arguments (a bad name, no members, a member twice, this worker is none, other members elsewhere),
///   unknown_worker, unsupported (a backend that this build does not have, naming the package), timeout (naming the
///   missing members), peer_down, shut_down.
/// Source: torch.distributed.new_group. Differences: only the members call it, and they are workers that are connected.
Result<std::shared_ptr<Collectives>> join_group(const CallSite& site, const GroupOptions& options);

}  // namespace caftan::collectives
