/// `Gatherer`: carries out `barrier` and `all_gather`: it gives this worker's values to the other members of a set and
/// keeps theirs. `net::GatherRounds` decides. Rules: docs/protocols/gather.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/net/internal/gather_rounds.hpp"
#include "caftan/rpc/caller.hpp"
#include "service/member_ports.hpp"
#include "service/service.hpp"
#include "worker/peers.hpp"

namespace caftan::actors {

/// The argument of `caftan.gather.value`: the value of one member in a round of a set.
struct GatherValue {
  std::vector<std::uint32_t> members;  ///< ids of the set, ascending
  net::GatherRound round;
  rpc::Contribution value;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& members& round& value;
  }
};

/// Threads: any, all methods.
class Gatherer final : public Service {
 public:
  Gatherer(MemberPorts& ports, const Peers& peers) : ports_(ports), peers_(peers) {}

  /// As rpc::Caller.
  Future<rpc::Contributions> gather(rpc::GatherRequest&& request, const CallOptions& options);
  /// A member gives a value. Errors: bad_arguments (no such set, no such round), overloaded (too many sets of which
  /// this worker has never called anything).
  Result<void> on_value(const Peer& sender, const GatherValue& value);

  // Service
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
  void on_session_end(const transport::Session& session, bool is_last) override;
  void end_all(const Error& reason, StopReport& given_up) override;

 private:
  using Ids = std::vector<std::uint32_t>;
  /// The call of this worker that is under way.
  struct Call {
    std::uint64_t number;
    std::string what;
    base::Duration timeout;
    Promise<rpc::Contributions> promise;
  };
  struct Set {
    net::GatherRounds rounds;
    std::optional<Call> call{};
  };

  Result<Ids> ids_of(const rpc::GatherRequest& request) const;
  Result<void> check(const Ids& ids, WorkerId sender) const;
  Set& set_of(const Ids& ids) CAFTAN_REQUIRES(mutex_);
  void meet(const Ids& ids, Set& set) CAFTAN_REQUIRES(mutex_);
  void give(const Ids& ids, GatherValue value, base::Duration timeout, std::uint64_t call);
  void on_given(const Ids& ids, const net::GatherRound& round, std::uint64_t call,
                const std::vector<Result<void>>& confirmed);
  void on_late(const Ids& ids, std::uint64_t call);
  /// Ends the call of the set if it is decided. The caller releases mutex_ and calls the result, if there is one.
  base::Task conclude(const Ids& ids, Set& set) CAFTAN_REQUIRES(mutex_);
  base::Task fail(Set& set, const Error& error) CAFTAN_REQUIRES(mutex_);

  MemberPorts& ports_;
  const Peers& peers_;
  base::Mutex mutex_;
  std::map<Ids, Set> sets_ CAFTAN_GUARDED_BY(mutex_);
  std::uint64_t last_call_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> ended_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
