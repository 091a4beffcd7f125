/// `RoleContext`: what a role object may know and do: the roles it uses, its own reference, its random seeds, and what
/// it reports to the run (metrics, progress, results, log). Its typed calls are those of `CallSite`. A role's
/// constructor gets one; it lives as long as the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/rpc/call_site.hpp"

namespace caftan {

class Worker;

namespace rl {
class Environments;
}

namespace actors {
struct RoleState;

/// Returns the reference to the role of a worker, as soon as that worker hosts it.
/// Errors: unsupported (it plays no role).
Future<std::shared_ptr<rpc::RRefHandle>> role_handle(Worker& worker);

/// The remote function by which roles find each other; registered at every worker for every role type.
template <class T>
Future<RRef<T>> role_of(Worker& worker) {
  return role_handle(worker).then([](Result<std::shared_ptr<rpc::RRefHandle>> handle) -> Result<RRef<T>> {
    if (!handle) return handle.error();
    if ((*handle)->type().hash != rpc::type_key<T>().hash) {
      return Error(Errc::wrong_type, "the role of this worker is a " + std::string((*handle)->type().name));
    }
    return RRef<T>(*std::move(handle));
  });
}
}  // namespace actors

/// How a metric is recorded.
struct MetricOptions {
  /// The value's place on the horizontal axis of the metric's curve: an episode, a training step. Each value is a row,
  /// also one whose step was there before or goes back, and one that is not finite. Nothing = the value is no part of a
  /// curve.
  std::optional<std::int64_t> step{};
};

/// Threads: any for all methods whose comment names none.
class RoleContext : public CallSite {
 public:
  explicit RoleContext(std::shared_ptr<actors::RoleState> state);
  ~RoleContext();

  /// Returns references to all replicas of the role, or roles, that [roles.NAME.uses] names for `key`, in that order;
  /// of one's own role all others; none where the file leaves the use out. Their constructors may still be running: the
  /// first call waits for that. Errors (thrown): bad_arguments (a key that the role type did not declare), peer_down,
  /// wrong_type. Threads: as a call; blocks.
  template <class X>
  std::vector<RRef<X>> uses(std::string_view key) const {
    std::vector<Future<RRef<X>>> asked;
    for (const std::string& worker : workers_of(key)) asked.push_back(rpc_async<&actors::role_of<X>>(worker));
    std::vector<RRef<X>> roles;
    for (auto& one : asked) {
      Result<RRef<X>> role = std::move(one).result();
      if (!role) throw RpcException(wrong_use(key, rpc::type_key<X>(), role.error()));
      roles.push_back(*std::move(role));
    }
    return roles;
  }

  /// As uses, for a use of one replica: returns the reference to that replica. A use that main declares without a
  /// number is one of exactly one replica, and `check` refuses a file that names none or several for it. Errors
  /// (thrown): those of uses, bad_arguments (the file names none or several).
  template <class X>
  RRef<X> use(std::string_view key) const {
    check_single(key);
    return uses<X>(key).front();
  }

  /// Returns the reference to this role, to hand to others; usable from the constructor on.
  /// Errors (thrown): wrong_type (T is not the role's class), shut_down.
  template <class T>
  RRef<T> self() const {
    return RRef<T>(self_handle(rpc::type_key<T>()));
  }

  /// Returns the worker's name, for example "observer-2".
  const std::string& name() const noexcept;
  /// Returns the name of the role in the file, for example "observer".
  const std::string& role() const noexcept;
  /// Returns which replica of the role this is, from 0.
  int replica() const noexcept;
  /// Returns how many replicas the role has.
  int replicas() const noexcept;

  /// Returns the seed of this replica's own stream of random numbers for `purpose`; the same in every placement.
  std::uint64_t seed(std::string_view purpose) const noexcept;
  /// Returns run.seed, from which the seeds of all replicas follow. For what must be the same at all of them.
  std::uint64_t run_seed() const noexcept;
  /// Returns whether the file asks for the same results in every placement.
  bool deterministic() const noexcept;
  /// Returns whether the run goes on when a worker is lost that [roles.NAME.uses] names for `key`: the file says
  /// on_loss = "go_on" for all of these (docs/protocols/run.md, RN-15). Errors (thrown): bad_arguments (no such use).
  bool goes_on_without(std::string_view key) const;
  /// Changes the max_size of this role's batched method M from now on, for example when a caller is lost: a batch of
  /// all that are left need not wait for the others. Requests that wait make a run at once if they are enough now
  /// (docs/protocols/batching.md, BT-13).
  /// @param size  1 to 65536
  /// @tparam C  the class of the role, where M is a method of its base
  /// Errors: unknown_function (M is not registered), bad_arguments (a size out of range), shut_down.
  template <auto M, class C = typename rpc::CallTypes<decltype(M)>::Traits::Class>
  Result<void> set_max_batch_size(std::size_t size) const {  // no overload, no template
    static_assert(rpc::CallTypes<decltype(M)>::Split::kBatched, "only a batched method has limits");
    return set_max_batch_size(&rpc::kFunctionTag<C, M>, size);
  }
  /// Returns the token that asks this role to end: the same that run() gets.
  std::stop_token stop_token() const noexcept;

  /// Returns the environments of the program: those that ship, and those that `Program::environment` has added.
  const rl::Environments& environments() const noexcept;

  /// Returns the folder of this run; empty if nothing is written.
  const std::filesystem::path& output_directory() const noexcept;

  /// Records a value for metrics.csv, metrics.jsonl and (the last one) summary.json; one with a step for curve.csv, too
  /// (docs/results.md). @param name  any bytes, of which the first 128 are kept
  void metric(std::string_view name, double value, MetricOptions options = {}) const;
  /// Reports the progress of this role, which is shown during the run as "step DONE of TOTAL" with a bar.
  /// @param total  0 = unknown: a text is shown without the step then
  /// @param text   what to show beside; parts are separated by two spaces. One that has " of TOTAL" counts itself: it
  /// is
  ///               shown without the step, with the bar before its last part
  void progress(std::int64_t done, std::int64_t total, std::string text = {}) const;
  /// Prints a line of results on the run's standard output.
  void report(std::string_view line) const;
  /// Records the fingerprint of the role's results, for summary.json: "sha256:...".
  void fingerprint(std::string_view fingerprint) const;
  /// Writes a line into log/NAME.log.
  void log(std::string_view line) const;

 private:
  Result<void> set_max_batch_size(const char* tag, std::size_t size) const;
  const std::vector<std::string>& workers_of(std::string_view key) const;
  void check_single(std::string_view key) const;
  Error wrong_use(std::string_view key, rpc::TypeKey asked, const Error& error) const;
  std::shared_ptr<rpc::RRefHandle> self_handle(rpc::TypeKey type) const;

  std::shared_ptr<actors::RoleState> state_;
};

}  // namespace caftan
