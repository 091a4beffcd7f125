/// Where the workers of a run reach each other: addresses by placement, and the secret they share.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/app/application.hpp"
#include "caftan/app/plan.hpp"
#include "caftan/base/result.hpp"

namespace caftan::actors {

/// Unix sockets lie in a private folder with a short path, which is removed with this object at the latest.
class RunWorld {
 public:
  /// Errors: io_error (the folder, the secret file), invalid_config (an empty secret).
  static Result<RunWorld> make(const app::Application& application, const app::Plan& plan);
  RunWorld(RunWorld&& other) noexcept
      : kind_(other.kind_),
        secret_(std::move(other.secret_)),
        folder_(std::exchange(other.folder_, {})),
        meeting_(other.meeting_),
        meeting_address_(std::move(other.meeting_address_)) {}
  RunWorld& operator=(RunWorld&&) = delete;
  ~RunWorld() { remove_sockets(); }

  const std::string& secret() const noexcept { return secret_; }
  /// Returns the kind of channel for the heading: "unix", "tcp", "loopback".
  const char* channel() const noexcept;
  /// Returns the world as `self` is to see it: the one where the others meet first, then by number.
  std::vector<WorkerAddress> addresses_for(const app::Plan& plan, WorkerId self,
                                           const std::vector<app::HostSpec>& hosts) const;

  bool is_meeting(WorkerId worker) const noexcept { return worker == meeting_; }
  /// Whether the others can only be told where to meet once the meeting worker listens.
  bool must_learn_meeting() const noexcept { return kind_ == Kind::tcp && meeting_address_.empty(); }
  /// Takes the address at which a worker listens. Returns whether the others can be told now.
  bool learn_meeting(WorkerId worker, const std::string& address);

  void remove_sockets();

 private:
  enum class Kind { local, unix_sockets, tcp, hosts };
  explicit RunWorld(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::string secret_;
  std::filesystem::path folder_;
  WorkerId meeting_{};
  std::string meeting_address_;  ///< of kinds tcp and hosts
};

}  // namespace caftan::actors
