/// The references of one frame: those that a received frame brought, and those that a sent frame hands over.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/internal/rref_manifest.hpp"
#include "caftan/rpc/rref_handle.hpp"

namespace caftan::actors {

class RRefHost;

/// The handles of one received frame, by manifest index, and what waits for their confirmation.
class ReceivedRRefs {
 public:
  /// @param caller  the worker of `host`; lives as long as `host`
  ReceivedRRefs(RRefHost& host, std::weak_ptr<rpc::Caller> caller) : host_(host), caller_(std::move(caller)) {}
  /// A creation that was not taken, because its frame never arrived in full, fails: its owner's actor would wait for
  /// ever.
  ~ReceivedRRefs();
  ReceivedRRefs(const ReceivedRRefs&) = delete;
  ReceivedRRefs& operator=(const ReceivedRRefs&) = delete;

  /// Returns the creation that the frame asks for, once: the caller sets the value.
  std::optional<rpc::Creation> take_creation() { return std::exchange(creation, std::nullopt); }

  std::vector<std::shared_ptr<rpc::RRefHandle>> handles;
  std::optional<rpc::Creation> creation;

 private:
  RRefHost& host_;  // valid while caller_ can be locked
  const std::weak_ptr<rpc::Caller> caller_;
};

/// Calls `done` once all handles of a frame are confirmed, so that user code may see them (RR-6), or with the reason
/// why one never is; on this thread if that is known already. @param deadline  of the call that carried them (RR-11)
void when_confirmed(const std::shared_ptr<ReceivedRRefs>& received, base::Executor& executor, base::TimePoint deadline,
                    std::function<void(Result<void>)> done);

/// The forks that one outgoing frame hands over. Registered before the frame is offered to the lane (RR-4).
class OutgoingRRefs {
 public:
  OutgoingRRefs() = default;
  OutgoingRRefs(OutgoingRRefs&&) = default;
  OutgoingRRefs& operator=(OutgoingRRefs&&) = default;
  bool empty() const noexcept { return manifest_.shared.empty() && !manifest_.creation; }
  /// Returns the section's content.
  Result<wire::Bytes> encode() const;
  /// The lane did not accept the frame: nothing was registered.
  void undo();
  void set_creation(rpc::Creation creation) { manifest_.creation = creation; }

 private:
  friend class RRefHost;
  rpc::Manifest manifest_;
  std::vector<std::function<void()>> undo_;
};

}  // namespace caftan::actors
