/// Where the workers of a run reach each other: addresses by placement, and the secret they share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/app/internal/application.hpp"
#include "caftan/app/internal/plan.hpp"
#include "caftan/base/result.hpp"
#include "launch/socket_folder.hpp"

namespace caftan::actors {

/// The kind of channel between the processes of one host.
struct HostChannel {
  const app::ChannelFacts* facts;
  std::string why_not;  ///< why it is not the kind that the file asks for; empty if it is
  std::string lacking;  ///< what channels of the kind lack on this machine; empty if nothing
  /// Returns both for people; empty if there is nothing to say.
  std::string about() const { return why_not + (why_not.empty() || lacking.empty() ? "" : "; ") + lacking; }
};
/// Returns the first kind from the chosen one on that this machine has.
HostChannel channel_of_host(const app::Application& application);

/// Returns the kind of channel between hosts, as this machine has it.
HostChannel channel_between_hosts(const app::Application& application);

/// Returns what `plan` and a run's first lines say of the channel beyond its kind; empty if there is nothing to say.
std::string about_channel(const app::Application& application, const app::Plan& plan);

/// Returns the warning that the name of the first host leads to loopback on that host, so that workers of other hosts
/// cannot reach the workers there: Debian's /etc/hosts has such a line. Empty if it does not. Called on the first host;
/// looks the name up.
std::string loopback_warning(const app::Application& application);

/// Checks the files of [tls], where certificates are used: that they can be read and fit, and that this host's own
/// certificate is valid now. Errors: io_error, invalid_config; the text names the file.
Result<void> check_certificates(const app::Application& application);

/// Returns a new secret as 64 hexadecimal digits. Errors: io_error.
Result<std::string> random_hex();

class RunAddresses {
 public:
  /// Errors: io_error (the folder, the secret file), invalid_config (an empty or short secret); as of
  /// check_certificates.
  static Result<RunAddresses> make(const app::Application& application, const app::Plan& plan);
  const std::string& secret() const noexcept { return secret_; }
  /// Returns the kind of channel for the heading: "shm", "unix", "tcp", "ucx", "loopback".
  const char* channel() const noexcept { return channel_; }
  /// Returns the members with the addresses that `self` uses: the coordinator first, then by number.
  std::vector<WorkerAddress> addresses_for(const app::Plan& plan, WorkerId self,
                                           const std::vector<app::HostSpec>& hosts) const;

  bool is_coordinator(WorkerId worker) const noexcept { return worker == coordinator_; }
  /// Returns whether the coordinator's address is known only once the coordinator listens.
  bool must_learn_coordinator() const noexcept { return kind_ == Kind::ports && coordinator_address_.empty(); }
  /// Takes the address at which a worker listens. Returns whether the address can be sent to the others now.
  bool learn_coordinator(WorkerId worker, const std::string& address);

  /// Removes the folder of Unix sockets, which is not needed once the start is over. If the removal fails, because a
  /// worker makes or removes its socket at this moment, the next call tries again, at the latest this object's
  /// destructor.
  void remove_sockets();

 private:
  enum class Kind {
    local,  ///< none: one process
    paths,  ///< in the folder
    ports,  ///< ports of this host that the system chooses
    hosts,
  };
  RunAddresses(Kind kind, const char* channel) : kind_(kind), channel_(channel) {}

  Kind kind_;
  const char* channel_;
  std::string secret_;
  std::optional<SocketFolder> folder_;
  WorkerId coordinator_{};
  std::string coordinator_address_;  ///< of kinds ports and hosts
};

}  // namespace caftan::actors
