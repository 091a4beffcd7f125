/// Where each worker runs: the workers of an application with their numbers, processes and hosts. Pure: the same
/// application gives the same plan on every machine, so that each host can work out its own part.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/app/internal/application.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::app {

/// The workers that one use of a worker refers to.
struct PlannedUse {
  std::string name;               ///< the type's name for it
  std::vector<WorkerId> workers;  ///< all replicas of the used roles in their order; of one's own role all others
};

/// One worker of a plan: its role, its process and how it is reached.
struct PlannedWorker {
  WorkerId id;  ///< roles in the order of the file, replicas in theirs, from 0
  std::string name;
  std::string role;
  std::string type;
  int replica = 0;
  int process = 0;   ///< number of its process in the job, from 0
  std::string host;  ///< the host's name in [hosts]; empty if all workers run on this machine
  /// By which channel the worker is reached: "loopback", "shm", "unix", "tcp", "tcp+tls", "ucx", "ucx+tls" or, for the
  /// coordinator, "tcp host:port" or "tcp+tls host:port".
  std::string channel;
  int torch_threads = 1;
  bool drives = false;
  bool own_cores = false;    ///< its process is one of those between which the cores of the host are divided
  bool may_be_lost = false;  ///< on_loss = "go_on", and it does not share its process with all others
  std::vector<PlannedUse> uses;
};

/// All workers of a run before it starts.
struct Plan {
  std::vector<PlannedWorker> workers;  ///< workers[i].id.value == i
  int processes = 0;

  /// Returns the worker of that name or null.
  const PlannedWorker* find(std::string_view name) const;
  /// Returns all workers in the order of their ids.
  std::vector<WorkerId> all() const;
  /// Returns the workers of a process in the order of their ids.
  std::vector<WorkerId> in_process(int process) const;
  /// Returns the workers of a host in the order of their ids. Errors: invalid_config (no worker is planned on that
  /// host; the text names the hosts).
  Result<std::vector<WorkerId>> on_host(std::string_view host) const;
  /// Returns one replica, or all of the role if none is given: what `--role observer --replica 2` selects.
  /// Errors: invalid_config (no such role or replica; says what there is).
  Result<std::vector<WorkerId>> select(std::string_view role, std::optional<int> replica) const;
};

/// Precondition: the application was loaded without errors.
Plan make_plan(const Application& application);

/// Returns the address at which the workers of several hosts connect first, "192.0.2.10:29500 (host 'head')"; empty for
/// another placement. Precondition: the application was loaded without errors.
std::string meeting_place(const Application& application);

/// Returns a line for the log of a worker whose machine has fewer cores than its workers have torch threads; empty if
/// the cores are enough.
/// @param cores  of the worker's machine
std::string shared_cores_text(const Plan& plan, const PlannedWorker& worker, int cores);

/// Returns what `caftan plan FILE` prints: a heading, one line per worker with what it uses, and the policies.
std::string render_plan(const Application& application, const Plan& plan);

/// What encrypts the TCP connections of a run.
enum class TlsUse {
  none,          ///< nothing: no bytes leave a host
  off,           ///< nothing, although bytes leave their host: the file says so
  secret,        ///< a key that is made of the secret
  certificates,  ///< those of [tls]
};
TlsUse tls_use(const Application& application);
/// Returns that in words, for the plan and the first lines of a run; empty for `none`.
std::string tls_text(TlsUse use);

}  // namespace caftan::app
