/// `ReadingDoor`: which calls of a module that trainers share may run (CM-3, CM-4). The code that serves the module
/// opens the door for one reader at a time and closes it before the module gets other values.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "caftan/base/ids.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/nn/served_module.hpp"

namespace caftan::nn {

/// How many readers of a shared module, and gradients of theirs that are not applied, there are. Threads: any.
using ReadersCount = std::atomic<std::uint64_t>;

/// Threads: any, all methods.
class ReadingDoor final : public detail::ModuleGate {
 public:
  /// @param readers  of the shared module, whichever of its copies they read; not null
  explicit ReadingDoor(std::shared_ptr<const ReadersCount> readers) : readers_(std::move(readers)) {}

  /// Lets the calls of that context in; without one, calls that record nothing. Precondition: closed and empty.
  void open(std::optional<ContextId> context);
  /// Closes, unless a call is inside. Returns how many are.
  std::uint32_t close_if_empty();
  /// Closes. Calls `empty` once no call is inside, here or where the last one returns: it must not block.
  void close(std::function<void()> empty);
  /// Opens again for the same reader. Precondition: close_if_empty returned 0.
  void open_again();

  /// Errors: bad_arguments (nothing is read here now, or another context reads), unknown_context.
  Result<void> enter(const CallInfo& info) override;
  void leave() noexcept override;
  bool is_in_use() const noexcept override { return readers_->load() > 0; }

 private:
  Result<void> check(const CallInfo& info) const CAFTAN_REQUIRES(mutex_);

  const std::shared_ptr<const ReadersCount> readers_;
  base::Mutex mutex_;
  bool is_open_ CAFTAN_GUARDED_BY(mutex_) = false;
  std::optional<ContextId> context_ CAFTAN_GUARDED_BY(mutex_);
  std::uint32_t inside_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::function<void()> when_empty_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::nn
