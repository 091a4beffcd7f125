#include "added_group.hpp"

#include <algorithm>
#include <utility>

#include "caftan/rpc/call_site.hpp"
#include "caftan/rpc/collect.hpp"
#include "decided_call.hpp"

namespace caftan::optim {

Future<void> AddedGroup::stage(const std::vector<Owner>& owners) {
  // An optimizer outlives the context in which a group may be added.
  Ambient ambient = outside_contexts();
  const AmbientSwap swap(&ambient);
  const CallSite calls(caller_, options_);
  std::vector<Future<void>> futures;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = shares_[i];
    const auto known = std::find_if(owners.begin(), owners.end(),
                                    [&share](const Owner& owner) { return owner.worker == share.peer.name(); });
    if (known != owners.end()) {
      places_[i].optimizer = known->optimizer;
      futures.push_back(known->optimizer.with(options_).rpc_async<&RemoteOptimizer::stage_group>(share.spec.groups[0]));
      continue;
    }
    places_[i].is_new = true;
    futures.push_back(calls.rpc_async(kMakeOptimizer, share.peer, share.spec)
                          .then([self = shared_from_this(), i](Result<RRef<RemoteOptimizer>> made) -> Result<void> {
                            if (!made) return made.error();
                            self->places_[i].optimizer = *std::move(made);
                            return {};
                          }));
  }
  return first_failure(std::move(futures)).then([self = shared_from_this()](Result<void> staged) {
    if (!staged) self->drop();
    return staged;
  });
}

void AddedGroup::drop() {
  for (Place& place : places_) {
    if (place.is_new) {
      place.optimizer = RRef<RemoteOptimizer>();
      continue;
    }
    DecidedCall<void>::make(caller_, [optimizer = place.optimizer](const CallOptions& options) {
      return optimizer.with(options).rpc_async<&RemoteOptimizer::drop_state>();
    }).forget();
  }
}

Future<void> AddedGroup::take(StepNumber last) {
  std::vector<Future<void>> futures;
  for (const Place& place : places_) {
    if (place.is_new) {
      futures.push_back(make_ready_future<void>(Result<void>()));
      continue;
    }
    futures.push_back(DecidedCall<void>::make(caller_, [optimizer = place.optimizer, last](const CallOptions& options) {
      return optimizer.with(options).rpc_async<&RemoteOptimizer::take_state>(last);
    }));
  }
  return first_failure(std::move(futures));
}

Future<void> AddedGroup::first_failure(std::vector<Future<void>> futures) const {
  return collect_all_results(std::move(futures))
      .then([self = shared_from_this()](Result<std::vector<Result<void>>> collected) -> Result<void> {
        const std::vector<Result<void>> outcomes = *std::move(collected);
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
          if (outcomes[i]) continue;
          const Error placed = outcomes[i].error().at(self->shares_[i].peer.name());
          return Error(placed.code(), placed.worker(), placed.text() + " (of the group to be added)");
        }
        return {};
      });
}

Result<void> AddedGroup::check_names(const std::vector<Owner>& owners) const {
  if (shares_[0].names.empty() != owners[0].names.empty()) {
    return Error(Errc::bad_arguments, shares_[0].names.empty()
                                          ? "the parameters of the group have no names, those of the optimizer have"
                                          : "the parameters of the group have names, those of the optimizer have none");
  }
  for (const Share& share : shares_) {
    for (const std::string& name : share.names) {
      for (const Owner& owner : owners) {
        if (std::find(owner.names.begin(), owner.names.end(), name) == owner.names.end()) continue;
        return Error(Errc::bad_arguments, "a parameter at " + owner.worker + " has the name " + name + " already");
      }
    }
  }
  return {};
}

void AddedGroup::record(std::uint32_t group, StepNumber last, std::vector<Owner>& owners) const {
  std::uint64_t first = 0;  // the number of the group's first parameter
  for (const Owner& owner : owners) first += owner.parameters.size();
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const std::string& worker = shares_[i].peer.name();
    if (places_[i].is_new) owners.push_back({{worker, {}, {}, {}}, places_[i].optimizer, last});
    for (Owner& owner : owners) {
      if (owner.worker != worker) continue;
      owner.groups.push_back(group);
      for (const std::uint64_t number : shares_[i].numbers) owner.parameters.push_back(first + number);
      owner.names.insert(owner.names.end(), shares_[i].names.begin(), shares_[i].names.end());
    }
  }
}

}  // namespace caftan::optim
