/// `GroupTable`: the groups of one worker. It gives what other members send to the group that it is of, and keeps it
/// while this worker has not joined that group yet.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/collectives/internal/group.hpp"
#include "caftan/rpc/extension.hpp"

namespace caftan::collectives {

/// Threads: any, all methods.
class GroupTable final : public std::enable_shared_from_this<GroupTable> {
 public:
  /// Makes this worker a member of the next group of that name.
  /// Errors: as join_group, as far as they are known without the other members.
  Result<std::shared_ptr<Group>> open(const std::shared_ptr<rpc::Caller>& caller, const GroupOptions& options);
  /// The group has left: what comes for it from now on is refused.
  void close(const GroupKey& key);

  // What members send.
  Future<void> on_piece(const Peer& from, const GroupKey& key, PieceHeader header, Tensors tensors);
  Result<void> on_left(const Peer& from, const GroupKey& key, std::uint64_t operations);
  Result<void> on_failed(const Peer& from, const GroupKey& key, const Reason& reason);
  Future<wire::Bytes> on_store(const Peer& from, const GroupKey& key, std::string name, std::vector<wire::Bytes> value);

  /// The last session with that worker has ended.
  void on_lost(WorkerId worker);
  /// This worker leaves the job. Returns how many groups were open.
  std::size_t end(const Error& reason);

 private:
  using Place = std::pair<std::string, std::uint64_t>;
  using Use = std::function<void(const Result<std::shared_ptr<Group>>&)>;
  /// A message for a group that this worker has not joined yet.
  struct Early {
    WorkerId from;
    Use use;
    std::shared_ptr<Promise<void>> answer;  ///< of a piece
  };

  /// Calls `use` with the group, now or once this worker has joined it; with an error if it never will.
  void with_group(const Peer& from, const GroupKey& key, Use use, std::shared_ptr<Promise<void>> answer = {});
  void answer_early_pieces(WorkerId from, const Place& place, const Error& answer);
  Result<std::shared_ptr<Group>> find(const Peer& from, const GroupKey& key, const std::shared_ptr<Group>& group) const;
  std::vector<std::shared_ptr<Group>> all() const;

  mutable base::Mutex mutex_;
  std::map<std::string, std::uint64_t> made_ CAFTAN_GUARDED_BY(mutex_);
  std::map<Place, std::shared_ptr<Group>> groups_ CAFTAN_GUARDED_BY(mutex_);
  std::multimap<Place, Early> early_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<Error> ended_ CAFTAN_GUARDED_BY(mutex_);
};

/// By which the functions of a worker find its table.
class GroupTableExtension final : public rpc::Extension {
 public:
  explicit GroupTableExtension(std::shared_ptr<GroupTable> table) : table_(std::move(table)) {}
  const std::shared_ptr<GroupTable>& table() const noexcept { return table_; }

  static constexpr const char* kName = "caftan.collectives";

 private:
  const std::shared_ptr<GroupTable> table_;
};

/// Returns the table of a worker. Errors: unsupported (the caller is no worker with one).
Result<std::shared_ptr<GroupTable>> table_of(rpc::Caller& caller);

}  // namespace caftan::collectives
