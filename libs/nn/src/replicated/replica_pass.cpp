#include "replicated/replica_pass.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::nn {
namespace {

using collectives::Reduction;
using collectives::Tensors;

// Places of what a pass exchanges beside its buckets.
constexpr std::size_t kPresence = 0;
constexpr std::size_t kUse = 1;
constexpr std::size_t kFirstBucket = 2;

Future<std::vector<Tensors>> as_lists(Future<Tensors> one) {
  return std::move(one).then([](Result<Tensors> list) -> Result<std::vector<Tensors>> {
    if (!list) return list.error();
    return std::vector<Tensors>{*std::move(list)};
  });
}

/// Returns the sum of all replicas' entries over `count`; undefined if there are none.
at::Tensor sparse_mean(const std::vector<Tensors>& by_rank, const at::Tensor& leaf, double count) {
  std::vector<at::Tensor> indices, values;
  for (const Tensors& entries : by_rank) {
    if (entries.size() != 2) continue;
    indices.push_back(entries[0]);
    values.push_back(entries[1]);
  }
  if (indices.empty()) return {};
  return at::sparse_coo_tensor(at::cat(indices, 1), at::cat(values), leaf.sizes(), leaf.options().layout(at::kSparse))
      .coalesce()
      .div(count);
}

/// Returns each leaf's mean from what came back. With `uses`, leaves that no replica used have none.
std::vector<at::Tensor> means_of(const Replica& replica, const std::vector<std::vector<Tensors>>& lists) {
  const at::NoGradGuard no_grad;
  const auto& options = replica.options();
  const auto size = static_cast<double>(replica.group().size());
  const bool over_active = options.uneven_inputs && options.mean_over == ReplicatedOptions::MeanOver::active;
  const double count = over_active ? lists[kPresence].front().front().sum().item<double>() : size;
  std::vector<at::Tensor> means(replica.leaves().size());
  const auto& buckets = replica.plan().buckets();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& list = lists[kFirstBucket + i];
    if (buckets[i].is_sparse) {
      const std::size_t leaf = buckets[i].leaves.front();
      means[leaf] = sparse_mean(list, replica.leaves()[leaf], count);
      continue;
    }
    at::Tensor flat = list.front().front();
    if (over_active) flat.div_(count);
    for (const std::size_t leaf : buckets[i].leaves) {
      const at::Tensor& tensor = replica.leaves()[leaf];
      means[leaf] = flat.narrow(0, replica.plan().place_of(leaf).start, tensor.numel()).view(tensor.sizes());
    }
  }
  if (!options.find_unused_parameters) return means;
  const at::Tensor uses = lists[kUse].front().front();
  for (std::size_t leaf = 0; leaf < means.size(); ++leaf) {
    if (uses[static_cast<std::int64_t>(leaf)].item<std::int64_t>() == 0) means[leaf] = at::Tensor();
  }
  return means;
}

}  // namespace

ReplicaPass::ReplicaPass(std::shared_ptr<Replica> replica)
    : replica_(std::move(replica)),
      inbox_(std::make_shared<Inbox>(replica_)),
      has_gradient_(replica_->leaves().size(), false) {
  const auto& buckets = replica_->plan().buckets();
  const auto& options = replica_->options();
  for (const auto& bucket : buckets) {
    Filling filling{.flat = {}, .entries = {}, .missing = bucket.leaves.size()};
    if (!bucket.is_sparse) filling.flat = at::zeros({bucket.size}, at::TensorOptions().dtype(bucket.dtype));
    filling_.push_back(std::move(filling));
  }
  const base::LockGuard lock(inbox_->mutex);
  inbox_->lists.resize(kFirstBucket + buckets.size());
  inbox_->missing = buckets.size() + (options.uneven_inputs ? 1 : 0) + (options.find_unused_parameters ? 1 : 0);
}

void ReplicaPass::Inbox::put(std::size_t place, Result<std::vector<Tensors>> list) {
  {
    const base::LockGuard lock(mutex);
    --missing;
    if (list) {
      lists[place] = *std::move(list);
    } else if (!error) {
      error = list.error();
    }
  }
  give();
}

/// Hands the means, or the first error, to the pass, once it has asked for them.
void ReplicaPass::Inbox::give() {
  Returned to;
  std::optional<Error> failed;
  std::vector<std::vector<Tensors>> all;
  {
    const base::LockGuard lock(mutex);
    if (!returned || is_given || (missing > 0 && !error)) return;
    is_given = true;
    to = std::exchange(returned, {});
    failed = error;
    if (!failed) all.swap(lists);
  }
  replica->end();
  if (failed) return to(*failed);
  to(tensor::catch_torch(Errc::backward_failed,
                         [&]() -> Result<std::vector<at::Tensor>> { return means_of(*replica, all); }));
}

Result<void> ReplicaPass::on_gradient(std::size_t leaf, const at::Tensor& gradient) {
  const std::string& name = replica_->name_of(leaf);
  if (has_gradient_[leaf]) {
    return Error(Errc::backward_failed, "the replicated parameter '" + name +
                                            "' is used inside of a checkpointed segment and outside of it: its "
                                            "gradient would come in two parts; use it in one of both");
  }
  const auto& place = replica_->plan().place_of(leaf);
  const bool is_sparse = replica_->plan().buckets()[place.bucket].is_sparse;
  if (is_sparse != gradient.is_sparse()) {
    return Error(Errc::invalid_gradient,
                 "the gradient of the replicated parameter '" + name + "' is " +
                     (is_sparse ? "dense, and sparse_parameters names it: take it out"
                                : "sparse: name the parameter in ReplicatedOptions::sparse_parameters"));
  }
  const at::NoGradGuard no_grad;
  has_gradient_[leaf] = true;
  Filling& filling = filling_[place.bucket];
  if (is_sparse) {
    const at::Tensor whole = gradient.coalesce();
    filling.entries = {whole.indices(), whole.values()};
  } else {
    filling.flat.narrow(0, place.start, gradient.numel()).copy_(gradient.reshape({-1}));
  }
  --filling.missing;
  send_full();
  return {};
}

/// Sends the buckets whose turn it is, as long as they are full (RP-3).
void ReplicaPass::send_full() {
  while (next_ < filling_.size() && filling_[next_].missing == 0) send(next_++);
}

void ReplicaPass::send(std::size_t bucket) {
  const auto& options = replica_->options();
  collectives::Collectives& group = replica_->group();
  const auto put_at = [inbox = inbox_](std::size_t place) {
    return [inbox, place](Result<std::vector<Tensors>> lists) { inbox->put(place, std::move(lists)); };
  };
  if (bucket == 0 && options.uneven_inputs) {
    as_lists(group.all_reduce(replica_->presence(true), Reduction::sum)).then(put_at(kPresence)).forget();
  }
  Filling& filling = filling_[bucket];
  const bool over_active = options.uneven_inputs && options.mean_over == ReplicatedOptions::MeanOver::active;
  if (replica_->plan().buckets()[bucket].is_sparse) {
    group.all_gather(filling.entries).then(put_at(kFirstBucket + bucket)).forget();
  } else {
    as_lists(group.all_reduce({filling.flat}, over_active ? Reduction::sum : Reduction::mean))
        .then(put_at(kFirstBucket + bucket))
        .forget();
  }
}

Result<void> ReplicaPass::check_all_used() const {
  std::string names;
  for (std::size_t leaf = 0; leaf < has_gradient_.size(); ++leaf) {
    if (!has_gradient_[leaf]) names += (names.empty() ? "'" : ", '") + replica_->name_of(leaf) + "'";
  }
  if (names.empty() || replica_->options().find_unused_parameters) return {};
  return Error(Errc::backward_failed,
               "these parameters of a replicated module got no gradient in this pass: " + names +
                   "; use all of them in each pass, or set ReplicatedOptions::find_unused_parameters");
}

void ReplicaPass::finish(Returned returned) {
  if (const auto used = check_all_used(); !used) {
    replica_->group().fail(used.error());
    replica_->end();
    return returned(used.error());
  }
  while (next_ < filling_.size()) send(next_++);
  if (replica_->options().find_unused_parameters) {
    std::vector<std::int64_t> uses(has_gradient_.begin(), has_gradient_.end());
    as_lists(replica_->group().all_reduce({at::tensor(uses, at::kLong)}, Reduction::sum))
        .then([inbox = inbox_](Result<std::vector<Tensors>> lists) { inbox->put(kUse, std::move(lists)); })
        .forget();
  }
  {
    const base::LockGuard lock(inbox_->mutex);
    inbox_->returned = std::move(returned);
  }
  inbox_->give();
}

void ReplicaPass::abandon(const Error& reason) noexcept {
  {
    const base::LockGuard lock(inbox_->mutex);
    if (inbox_->is_given) return;
    inbox_->is_given = true;
    inbox_->returned = {};
  }
  const Errc code = reason.code() == Errc::cancelled ? Errc::backward_failed : reason.code();
  replica_->group().fail(Error(code, reason.worker(), "a replica's backward pass failed: " + reason.text()));
  replica_->end();
}

}  // namespace caftan::nn
