/// `AddedGroup`: a group of parameters that is added to a DistributedOptimizer, on its way to the parameters' owners
/// (OP-11).
#pragma once

#include <memory>
#include <vector>

#include "caftan/optim/algorithms.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/future.hpp"
#include "owner.hpp"

namespace caftan::optim {

/// Call `stage`, then `take` and `record`. Threads: one at a time.
class AddedGroup : public std::enable_shared_from_this<AddedGroup> {
 public:
  /// @param shares  one for each owner of the group's parameters
  /// @param options  of the calls of the first phase
  AddedGroup(std::weak_ptr<rpc::Caller> caller, std::vector<Share> shares, const CallOptions& options)
      : caller_(std::move(caller)), options_(options), shares_(std::move(shares)), places_(shares_.size()) {}

  /// Checks the group at all owners of its parameters; where one refuses it, the others forget it.
  /// @param owners  those that the optimizer has
  /// Errors: the first owner's, with its name.
  Future<void> stage(const std::vector<Owner>& owners);
  /// Puts the staged group in force at its owners. Errors: the first owner's, with its name.
  /// @param last  the last step of the optimizer
  Future<void> take(StepNumber last);
  /// Returns whether its parameters have names as those of `owners` have. Errors: bad_arguments (only one of the two
  /// has names; a name that comes twice).
  Result<void> check_names(const std::vector<Owner>& owners) const;
  /// Enters the group as number `group` in `owners`: each owner gets its number, and owners that are new are appended.
  /// @param last  the last step of the optimizer
  void record(std::uint32_t group, StepNumber last, std::vector<Owner>& owners) const;

 private:
  /// Where a share goes.
  struct Place {
    RRef<RemoteOptimizer> optimizer;  ///< empty until an optimizer was made at a new owner
    bool is_new = false;
  };
  void drop();
  /// Returns a future with the first error of `futures`, or with success once all have succeeded.
  Future<void> first_failure(std::vector<Future<void>> futures) const;

  const std::weak_ptr<rpc::Caller> caller_;
  const CallOptions options_;
  const std::vector<Share> shares_;
  std::vector<Place> places_;  // of each share
};

}  // namespace caftan::optim
