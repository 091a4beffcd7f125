// What a served call passes before its code runs, be it alone or in a batch.
#pragma once

#include <atomic>
#include <memory>

#include "caftan/base/result.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan::rpc {

/// Errors: why the call need not run any more: cancelled, timeout.
Result<void> check_wanted(Caller& caller, const CallInfo& info);
/// As check_wanted, for a call that has its runner and its turn. Also notes that the call begins.
Result<void> begin_served(Caller& caller, const CallInfo& info);

/// An object that the running method holds until this goes away.
class Hold {
 public:
  Hold(Ambient& ambient, const HostedObject& object);
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { over_->store(true, std::memory_order_release); }

 private:
  const std::shared_ptr<std::atomic<bool>> over_;
};

}  // namespace caftan::rpc
