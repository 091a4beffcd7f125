#include "caftan/collectives/internal/group_table.hpp"

#include <algorithm>
#include <utility>

#include "caftan/base/fnv1a.hpp"
#include "caftan/rpc/registry.hpp"

namespace caftan::collectives {
namespace {

constexpr std::size_t kMostName = 128;

std::uint64_t hash_of(const GroupOptions& options) {
  std::uint64_t hash = base::fnv1a(options.backend == Backend::gloo ? "gloo" : "caftan");
  for (const std::string& member : options.members) hash = base::fnv1a(member + "\n", hash);
  return hash;
}

/// Finds the members and this worker's rank among them.
Result<std::pair<int, std::vector<Peer>>> find_members(rpc::Caller& caller, const GroupOptions& options) {
  if (options.name.empty() || options.name.size() > kMostName) {
    return Error(Errc::bad_arguments, "the name of a group has 1 to " + std::to_string(kMostName) + " bytes");
  }
  std::pair<int, std::vector<Peer>> found{-1, {}};
  for (const std::string& name : options.members) {
    auto peer = caller.find_peer(name);
    if (!peer) return peer.error();
    const auto same = [&](const Peer& other) { return other.id() == peer->id(); };
    if (std::any_of(found.second.begin(), found.second.end(), same)) {
      return Error(Errc::bad_arguments, "the group " + options.name + " names " + name + " twice");
    }
    if (peer->id() == caller.id()) found.first = static_cast<int>(found.second.size());
    found.second.push_back(*std::move(peer));
  }
  if (found.first < 0) {
    return Error(Errc::bad_arguments,
                 "the group " + options.name + " does not name " + caller.name() + ", which joins it");
  }
  return found;
}

}  // namespace

Result<std::shared_ptr<GroupTable>> table_of(rpc::Caller& caller) {
  const auto extension = caller.registry().extension(GroupTableExtension::kName);
  const auto* const found = dynamic_cast<const GroupTableExtension*>(extension.get());
  if (!found) return Error(Errc::unsupported, "this worker has no groups");
  return found->table();
}

Result<std::shared_ptr<Group>> GroupTable::open(const std::shared_ptr<rpc::Caller>& caller,
                                                const GroupOptions& options) {
  auto members = find_members(*caller, options);
  if (!members) return members.error();
  std::vector<Early> early;
  std::shared_ptr<Group> group;
  {
    const base::LockGuard lock(mutex_);
    if (ended_) return *ended_;
    const std::uint64_t instance = made_[options.name]++;
    const Place place{options.name, instance};
    group = std::make_shared<Group>(caller, weak_from_this(), GroupKey{options.name, instance, hash_of(options)},
                                    members->first, std::move(members->second));
    groups_.emplace(place, group);
    const auto [first, last] = early_.equal_range(place);
    for (auto one = first; one != last; ++one) early.push_back(std::move(one->second));
    early_.erase(first, last);
  }
  for (const Early& one : early) one.use(group);
  return group;
}

void GroupTable::close(const GroupKey& key) {
  const base::LockGuard lock(mutex_);
  groups_.erase({key.name, key.instance});
}

Result<std::shared_ptr<Group>> GroupTable::find(const Peer& from, const GroupKey& key,
                                                const std::shared_ptr<Group>& group) const {
  if (group->key().members == key.members) return group;
  const Error other(Errc::bad_arguments, "the group " + key.name +
                                             " has other members, another order of them, or "
                                             "another backend at " +
                                             from.name());
  group->fail_everywhere(other);
  return other;
}

void GroupTable::with_group(const Peer& from, const GroupKey& key, Use use, std::shared_ptr<Promise<void>> answer) {
  std::shared_ptr<Group> group;
  std::optional<Error> refused;
  {
    const base::LockGuard lock(mutex_);
    const auto found = groups_.find({key.name, key.instance});
    const auto made = made_.find(key.name);
    if (found != groups_.end()) {
      group = found->second;
    } else if (ended_) {
      refused = ended_;
    } else if (made != made_.end() && key.instance < made->second) {
      refused = Error(Errc::shut_down, "this member has left the group " + key.name);
    } else {
      Use once_joined = [this, from, key, use = std::move(use)](const Result<std::shared_ptr<Group>>& joined) {
        use(joined ? find(from, key, *joined) : joined);
      };
      early_.emplace(Place{key.name, key.instance}, Early{from.id(), std::move(once_joined), std::move(answer)});
      return;
    }
  }
  use(refused ? Result<std::shared_ptr<Group>>(*refused) : find(from, key, group));
}

Future<void> GroupTable::on_piece(const Peer& from, const GroupKey& key, PieceHeader header, Tensors tensors) {
  auto promise = std::make_shared<Promise<void>>();
  Future<void> answered = promise->future();
  with_group(
      from, key,
      [promise, id = from.id(), header = std::move(header),
       tensors = std::move(tensors)](const Result<std::shared_ptr<Group>>& group) {
        if (!group) {
          promise->set(group.error());
        } else {
          promise->follow((*group)->receive(id, header, tensors));
        }
      },
      promise);
  return answered;
}

/// A sender that has left or failed the group waits for no reply, and its worker cannot stop at once with a call open.
/// The pieces stay: an operation that the sender has begun may still be finished here (CO-9).
void GroupTable::answer_early_pieces(WorkerId from, const Place& place, const Error& answer) {
  std::vector<Promise<void>> answers;
  {
    const base::LockGuard lock(mutex_);
    const auto [first, last] = early_.equal_range(place);
    for (auto one = first; one != last; ++one) {
      if (one->second.from == from && one->second.answer) {
        answers.push_back(std::move(*one->second.answer));  // what `use` does with the promise later has no effect
      }
    }
  }
  for (auto& one : answers) one.set(answer);
}

Result<void> GroupTable::on_left(const Peer& from, const GroupKey& key, std::uint64_t operations) {
  answer_early_pieces(from.id(), {key.name, key.instance},
                      Error(Errc::shut_down, from.name() + " has left the group " + key.name));
  with_group(from, key, [id = from.id(), operations](const Result<std::shared_ptr<Group>>& group) {
    if (group) (*group)->on_left(id, operations);
  });
  return {};
}

Result<void> GroupTable::on_failed(const Peer& from, const GroupKey& key, const Reason& reason) {
  const Error error(static_cast<Errc>(reason.code), reason.worker, reason.text);
  answer_early_pieces(from.id(), {key.name, key.instance}, error);
  with_group(from, key, [error](const Result<std::shared_ptr<Group>>& group) {
    if (group) (*group)->fail_here(error);
  });
  return {};
}

Future<wire::Bytes> GroupTable::on_store(const Peer& from, const GroupKey& key, std::string name,
                                         std::vector<wire::Bytes> value) {
  auto promise = std::make_shared<Promise<wire::Bytes>>();
  Future<wire::Bytes> found = promise->future();
  with_group(from, key,
             [promise, name = std::move(name), value = std::move(value)](const Result<std::shared_ptr<Group>>& group) {
               if (!group) {
                 promise->set(group.error());
               } else {
                 promise->follow((*group)->store(name, value));
               }
             });
  return found;
}

std::vector<std::shared_ptr<Group>> GroupTable::all() const {
  std::vector<std::shared_ptr<Group>> groups;
  const base::LockGuard lock(mutex_);
  for (const auto& [place, group] : groups_) groups.push_back(group);
  return groups;
}

void GroupTable::on_lost(WorkerId worker) {
  for (const auto& group : all()) group->on_lost(worker);
}

std::size_t GroupTable::end(const Error& reason) {
  std::multimap<Place, Early> early;
  {
    const base::LockGuard lock(mutex_);
    ended_ = reason;
    early.swap(early_);
  }
  for (const auto& [place, one] : early) one.use(reason);
  const auto groups = all();
  for (const auto& group : groups) group->fail_here(reason);
  return groups.size();
}

}  // namespace caftan::collectives
