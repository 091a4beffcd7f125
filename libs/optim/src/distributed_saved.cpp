// Saving and loading the state of a DistributedOptimizer: docs/protocols/optimizer.md, "Messages".

#include <cstring>
#include <utility>

#include "distributed_state.hpp"
#include "gather.hpp"
#include "state_format.hpp"

namespace caftan::optim {
namespace {

constexpr std::uint64_t kMagic = 0x54504f5444544643;  // "CFTDTOPT"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPrefix = sizeof kMagic + sizeof kVersion;

struct SavedOwner {
  std::string worker;
  std::vector<std::uint32_t> groups;
  wire::Bytes state;  ///< what its LocalOptimizer saved
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& groups& state;
  }
};

/// Sets `promise` to the first failure. Returns whether there was none.
template <class T, class U>
bool all_well(Promise<T>& promise, const std::vector<Owner>& owners, const std::vector<Result<U>>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i]) continue;
    promise.set(outcomes[i].error().at(owners[i].worker));
    return false;
  }
  return true;
}

Error another_placement(const std::string& difference) {
  return Error(Errc::bad_arguments, "the saved optimizer is of another model or placement: " + difference);
}

}  // namespace

struct DistributedOptimizer::State::Saved {
  StepNumber step;
  std::vector<double> lrs;
  std::vector<SavedOwner> owners;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& step& lrs& owners;
  }
};

Future<wire::Bytes> DistributedOptimizer::State::save() {
  auto promise = std::make_shared<Promise<wire::Bytes>>(caller_);
  Future<wire::Bytes> future = promise->future();
  take_turn([self = shared_from_this(), promise] {
    auto futures = self->call_all<wire::Bytes>([&](const Owner& owner) {
      return owner.optimizer.with(self->call_options()).rpc_async<&RemoteOptimizer::save>();
    });
    gather(std::move(futures), [self, promise](std::vector<Result<wire::Bytes>> outcomes) {
      Saved saved;
      {
        const std::lock_guard lock(self->mutex_);
        saved.step = self->last_;
        for (const Algorithm& algorithm : self->algorithms_) saved.lrs.push_back(learning_rate(algorithm));
      }
      self->end_turn();
      if (!all_well(*promise, self->owners_, outcomes)) return;
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        saved.owners.push_back({self->owners_[i].worker, self->owners_[i].groups, *std::move(outcomes[i])});
      }
      wire::Bytes bytes(kPrefix);
      std::memcpy(bytes.data(), &kMagic, sizeof kMagic);
      std::memcpy(bytes.data() + sizeof kMagic, &kVersion, sizeof kVersion);
      if (Result<void> written = wire::encode_into(bytes, saved); !written) {
        promise->set(written.error());
      } else {
        promise->set(std::move(bytes));
      }
    });
  });
  return future;
}

Result<void> DistributedOptimizer::State::check_saved(const Saved& saved) const {
  if (saved.lrs.size() != groups()) {
    return another_placement(std::to_string(saved.lrs.size()) + " parameter groups, here are " +
                             std::to_string(groups()));
  }
  if (saved.owners.size() != owners_.size()) {
    return another_placement(std::to_string(saved.owners.size()) + " owners, here are " +
                             std::to_string(owners_.size()));
  }
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (saved.owners[i].worker == owners_[i].worker && saved.owners[i].groups == owners_[i].groups) continue;
    return another_placement("owner " + std::to_string(i) + " was " + saved.owners[i].worker + ", here it is " +
                             owners_[i].worker + ", or it has parameters of other groups");
  }
  return {};
}

Future<void> DistributedOptimizer::State::load(wire::ByteView state) {
  const auto refuse = [](Error error) { return make_ready_future<void>(std::move(error)); };
  const auto content = after_prefix(state, kMagic, kVersion);
  if (!content) return refuse(content.error());
  auto saved = wire::decode<Saved>(*content);
  if (!saved) return refuse(saved.error());
  if (Result<void> same = check_saved(*saved); !same) return refuse(same.error());

  Promise<void> promise(caller_);
  Future<void> future = promise.future();
  auto answer = std::make_shared<Promise<void>>(std::move(promise));
  take_turn([self = shared_from_this(), answer, kept = std::make_shared<Saved>(*std::move(saved))] {
    std::vector<Future<void>> futures;
    for (std::size_t i = 0; i < self->owners_.size(); ++i) {
      futures.push_back(self->owners_[i]
                            .optimizer.with(self->call_options())
                            .rpc_async<&RemoteOptimizer::stage_state>(kept->owners[i].state));
    }
    gather(std::move(futures), [self, answer, kept](std::vector<Result<void>> outcomes) {
      if (all_well(*answer, self->owners_, outcomes)) return self->take_states(std::move(*answer), kept);
      for (const Owner& owner : self->owners_) {
        owner.optimizer.with(self->call_options()).rpc_async<&RemoteOptimizer::drop_state>().forget();
      }
      self->end_turn();
    });
  });
  return future;
}

void DistributedOptimizer::State::take_states(Promise<void> answer, const std::shared_ptr<Saved>& saved) {
  auto futures = call_all<void>([&](const Owner& owner) {
    return owner.optimizer.with(call_options()).rpc_async<&RemoteOptimizer::take_state>(saved->step);
  });
  gather(std::move(futures),
         [self = shared_from_this(), saved,
          answer = std::make_shared<Promise<void>>(std::move(answer))](std::vector<Result<void>> outcomes) {
           {
             const std::lock_guard lock(self->mutex_);
             self->last_ = saved->step;
             for (std::size_t i = 0; i < saved->lrs.size(); ++i) set_learning_rate(self->algorithms_[i], saved->lrs[i]);
           }
           self->end_turn();
           if (all_well(*answer, self->owners_, outcomes)) answer->set({});
         });
}

}  // namespace caftan::optim
