// Saving and loading the state of a DistributedOptimizer: docs/protocols/optimizer.md, "Messages".

#include <atomic>
#include <span>
#include <tuple>
#include <utility>

#include "caftan/rpc/collect.hpp"
#include "distributed_state.hpp"
#include "state_format.hpp"

namespace caftan::optim {
namespace {

constexpr std::uint64_t kMagic = 0x54504f5444544643;  // "CFTDTOPT"
constexpr std::uint32_t kVersion = 1;                 // without initial rates
constexpr std::uint32_t kWithInitial = 2;             // with them

struct SavedOwner {
  std::string worker;
  std::vector<std::uint32_t> groups;
  wire::Bytes state;  ///< what its LocalOptimizer saved
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& groups& state;
  }
};

/// Returns the first failure, with the owner's name.
template <class U>
Result<void> first_failure(const std::vector<Owner>& owners, const std::vector<Result<U>>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i]) return outcomes[i].error().at(owners[i].worker);
  }
  return {};
}

Error another_placement(const std::string& difference) {
  return Error(Errc::bad_arguments, "the saved optimizer is of another model or placement: " + difference);
}

}  // namespace

struct DistributedOptimizer::State::Saved {
  StepNumber step;
  std::vector<double> lrs;
  std::vector<SavedOwner> owners;
  std::vector<double> initial_lrs;  // empty before the first schedule, and in version 1

  /// Appends them behind a prefix of the version that has them.
  Result<void> write(wire::Bytes& to) const {
    const std::uint32_t version = initial_lrs.empty() ? kVersion : kWithInitial;
    wire::append(to, std::as_bytes(std::span(&kMagic, 1)));
    wire::append(to, std::as_bytes(std::span(&version, 1)));
    if (version == kVersion) return wire::encode_into(to, std::tie(step, lrs, owners));
    return wire::encode_into(to, std::tie(step, lrs, owners, initial_lrs));
  }
  Result<void> read(wire::ByteView bytes) {
    const auto content = after_prefix(bytes, kMagic, kWithInitial);
    if (!content) return content.error();
    if (content->version < kWithInitial) return wire::decode_into(content->bytes, std::tie(step, lrs, owners));
    return wire::decode_into(content->bytes, std::tie(step, lrs, owners, initial_lrs));
  }
};

struct DistributedOptimizer::State::OpenLoad {
  Promise<void> promise;
  Saved saved;
  std::atomic<bool> answered{false};

  OpenLoad(Promise<void> to, Saved kept) : promise(std::move(to)), saved(std::move(kept)) {}
  void answer(Result<void> outcome) {
    if (!answered.exchange(true)) promise.set(std::move(outcome));
  }
};

Future<wire::Bytes> DistributedOptimizer::State::save() {
  auto promise = std::make_shared<Promise<wire::Bytes>>(caller_);
  Future<wire::Bytes> future = promise->future();
  const auto begin = [self = shared_from_this(), promise] {
    auto futures = self->call_all<wire::Bytes>([&](const Owner& owner) {
      return owner.optimizer.with(self->call_options()).rpc_async<&RemoteOptimizer::save>();
    });
    collect_all_results(std::move(futures))
        .then([self, promise](Result<std::vector<Result<wire::Bytes>>> collected) {
          std::vector<Result<wire::Bytes>> outcomes = *std::move(collected);
          Saved saved;
          {
            const std::lock_guard lock(self->mutex_);
            saved.step = self->last_;
            for (const Algorithm& algorithm : self->algorithms_) saved.lrs.push_back(learning_rate(algorithm));
            saved.initial_lrs = self->initial_lrs_;
          }
          self->turns_->end();
          if (const Result<void> well = first_failure(self->owners_, outcomes); !well) {
            promise->set(well.error());
            return;
          }
          for (std::size_t i = 0; i < outcomes.size(); ++i) {
            saved.owners.push_back({self->owners_[i].worker, self->owners_[i].groups, *std::move(outcomes[i])});
          }
          wire::Bytes bytes;
          if (Result<void> written = saved.write(bytes); !written) {
            promise->set(written.error());
          } else {
            promise->set(std::move(bytes));
          }
        })
        .forget();
  };
  turns_->take({begin, [promise](const Error& error) {
                  promise->set(Error(error.code(), error.worker(), "saving " + error.text()));
                }});
  return future;
}

Result<void> DistributedOptimizer::State::check_saved(const Saved& saved) const {
  if (saved.lrs.size() != groups()) {
    return another_placement(std::to_string(saved.lrs.size()) + " parameter groups, here are " +
                             std::to_string(groups()));
  }
  if (!saved.initial_lrs.empty() && saved.initial_lrs.size() != groups()) {
    return Error(Errc::malformed_payload, "the saved optimizer has initial rates of another number of groups");
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
  Saved saved;
  if (Result<void> read = saved.read(state); !read) return refuse(read.error());
  if (Result<void> same = check_saved(saved); !same) return refuse(same.error());

  auto open = std::make_shared<OpenLoad>(Promise<void>(caller_), std::move(saved));
  Future<void> future = open->promise.future();
  const auto begin = [self = shared_from_this(), open] {
    std::vector<Future<void>> futures;
    for (std::size_t i = 0; i < self->owners_.size(); ++i) {
      futures.push_back(self->owners_[i]
                            .optimizer.with(self->call_options())
                            .rpc_async<&RemoteOptimizer::stage_state>(open->saved.owners[i].state));
    }
    collect_all_results(std::move(futures))
        .then([self, open](Result<std::vector<Result<void>>> collected) {
          std::vector<Result<void>> outcomes = *std::move(collected);
          if (const Result<void> staged = first_failure(self->owners_, outcomes); !staged) {
            for (Future<void>& dropped : self->call_decided<void>([](const auto& optimizer) {
                   return optimizer.template rpc_async<&RemoteOptimizer::drop_state>();
                 })) {
              dropped.forget();
            }
            self->turns_->end();
            return open->answer(staged);
          }
          self->take_states(open);
        })
        .forget();
  };
  turns_->take({begin, [open](const Error& error) {
                  open->answer(Error(error.code(), error.worker(), "loading " + error.text()));
                }});
  return future;
}

void DistributedOptimizer::State::take_states(const std::shared_ptr<OpenLoad>& open) {
  turns_->bound(wait_until(), "loading a saved state", [open] {
    open->answer(Error(Errc::timeout,
                       "every owner was sent the order to take the saved state over, not all have confirmed it yet"));
  });
  auto futures = call_decided<void>([step = open->saved.step](const auto& optimizer) {
    return optimizer.template rpc_async<&RemoteOptimizer::take_state>(step);
  });
  collect_all_results(std::move(futures))
      .then([self = shared_from_this(), open](Result<std::vector<Result<void>>> collected) {
        std::vector<Result<void>> outcomes = *std::move(collected);
        {
          const std::lock_guard lock(self->mutex_);
          self->last_ = open->saved.step;
          for (std::size_t i = 0; i < open->saved.lrs.size(); ++i) {
            set_learning_rate(self->algorithms_[i], open->saved.lrs[i]);
          }
          self->initial_lrs_ = open->saved.initial_lrs;
        }
        self->turns_->end();
        open->answer(first_failure(self->owners_, outcomes));
      })
      .forget();
}

}  // namespace caftan::optim
