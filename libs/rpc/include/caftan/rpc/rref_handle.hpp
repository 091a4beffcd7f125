/// `RRefHandle`: one reference on this worker, behind every copy of an `RRef<T>`. Implemented by the worker: the
/// destructor of an implementation posts one local message and nothing else (RR-13).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan::rpc {

class Caller;
class HostedObject;

/// A user's fork, or a hold at the owner itself. Threads: any, all methods; none blocks.
class RRefHandle {
 public:
  virtual ~RRefHandle() = default;

  /// Returns the id of the value.
  virtual RRefId rref() const noexcept = 0;
  /// Returns the fork; the empty id for a hold at the owner.
  virtual ForkId fork() const noexcept = 0;
  /// Returns the worker that has the value.
  virtual const Peer& owner() const noexcept = 0;
  /// Returns the type of the value; its name lives as long as the handle.
  virtual TypeKey type() const noexcept = 0;
  /// Returns whether this handle is a hold at the owner.
  virtual bool is_owner() const noexcept = 0;
  /// Returns whether the owner has confirmed that it counts this fork (RR-14); true at the owner.
  virtual bool confirmed_by_owner() const noexcept = 0;

  /// Returns why the value will never be there: creation failed, the owner went down, the reference was refused.
  virtual std::optional<Error> failed() const = 0;

  /// Returns a future that is ready when the value has been made, with the error if it was not. It keeps the reference
  /// until then.
  /// Errors: those of the creation, shut_down; unsupported (not at the owner, and not the creator's own reference).
  virtual Future<void> created() = 0;

  /// Returns the value once it exists. Owner only.
  /// Errors: not_owner (naming ids, this worker and the owner), the error of the creation, shut_down.
  virtual Future<std::shared_ptr<HostedObject>> local_value() = 0;

  /// Returns the worker this handle belongs to, null after it ended.
  virtual std::shared_ptr<Caller> caller() const noexcept = 0;
};

}  // namespace caftan::rpc
