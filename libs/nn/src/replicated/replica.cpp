#include "replicated/replica.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "caftan/autograd/context.hpp"
#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/base/fnv1a.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"
#include "replicated/replica_pass.hpp"

namespace caftan::nn {
namespace {

using collectives::Reduction;
using collectives::Tensors;

Error bad(std::string text) { return {Errc::bad_arguments, "Replicated: " + std::move(text)}; }

Result<void> check_tensors(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& named : tensors) {
    const at::Tensor& tensor = named.tensor;
    if (tensor.defined() && tensor.layout() == at::kStrided && tensor.is_cpu() && !tensor.is_quantized()) continue;
    return Error(Errc::unsupported, "Replicated: '" + named.name +
                                        "' is undefined, sparse, quantized or not on the CPU; a replicated module has "
                                        "dense tensors of the CPU");
  }
  return {};
}

std::uint64_t hash_of(const std::vector<NamedTensor>& tensors, std::uint64_t hash) {
  for (const NamedTensor& named : tensors) {
    const at::Tensor values = named.tensor.detach().contiguous();
    hash = base::fnv1a(named.name, hash);
    hash = base::fnv1a({static_cast<const char*>(values.const_data_ptr()), values.nbytes()}, hash);
  }
  return hash;
}

Error pass_open() {
  return {Errc::pass_busy,
          "another backward pass of this replica is open, or it has joined: passes of a replicated module run one "
          "after the other, in the same order at all replicas"};
}

}  // namespace

Replica::Replica(const CallSite& site, std::shared_ptr<collectives::Collectives> group,
                 std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers,
                 const ReplicatedOptions& options)
    : site_(site),
      group_(std::move(group)),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      options_(options) {
  std::vector<bool> is_sparse;
  for (const NamedTensor& named : parameters_) {
    const auto is_same = [&](const at::Tensor& leaf) { return leaf.is_same(named.tensor); };  // one of two names
    if (!named.tensor.requires_grad() || std::any_of(leaves_.begin(), leaves_.end(), is_same)) continue;
    leaves_.push_back(named.tensor);
    names_.push_back(named.name);
    const auto& sparse = options_.sparse_parameters;
    is_sparse.push_back(std::find(sparse.begin(), sparse.end(), named.name) != sparse.end());
  }
  plan_ = BucketPlan(leaves_, is_sparse, options_.bucket_bytes);
}

Result<std::shared_ptr<Replica>> Replica::make(const CallSite& site, std::shared_ptr<collectives::Collectives> group,
                                               std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers,
                                               const ReplicatedOptions& options) {
  if (!group) return bad("there is no group");
  if (options.bucket_bytes == 0) return bad("bucket_bytes is 0; a bucket has at least one byte");
  if (auto good = check_tensors(parameters); !good) return good.error();
  if (auto good = check_tensors(buffers); !good) return good.error();
  if (!buffers.empty() && options.uneven_inputs && options.broadcast_buffers) {
    return bad(
        "the module has buffers, and with uneven_inputs a replica that has joined computes no forward: set "
        "broadcast_buffers = false");
  }
  std::shared_ptr<Replica> replica(
      new Replica(site, std::move(group), std::move(parameters), std::move(buffers), options));
  if (replica->leaves_.empty()) return bad("the module has no parameter that needs a gradient");
  for (const std::string& name : options.sparse_parameters) {
    const auto& names = replica->names_;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return bad("sparse_parameters names '" + name + "', which is no parameter that needs a gradient");
    }
  }
  return replica;
}

/// Overwrites parameters and buffers with those of `root`, some at a time.
Result<void> Replica::take_values_of(int root) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> all;
  for (const auto* const list : {&parameters_, &buffers_}) {
    for (const NamedTensor& named : *list) all.push_back(named.tensor);
  }
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    for (std::uint64_t bytes = 0;
         end < all.size() && (end == begin || bytes + all[end].nbytes() <= options_.bucket_bytes); ++end) {
      bytes += all[end].nbytes();
    }
    const Tensors some(all.begin() + static_cast<std::ptrdiff_t>(begin),
                       all.begin() + static_cast<std::ptrdiff_t>(end));
    const auto values = group_->broadcast(some, root).result();
    if (!values) return values.error();
    for (std::size_t i = 0; i < some.size(); ++i) all[begin + i].copy_((*values)[i]);
    begin = end;
  }
  return {};
}

Result<void> Replica::start() {
  if (auto taken = take_values_of(0); !taken) return taken;
  return check_equal();
}

Result<std::unique_ptr<autograd::LeafPass>> Replica::begin() {
  if (is_busy_.exchange(true, std::memory_order_acq_rel)) return pass_open();
  return std::unique_ptr<autograd::LeafPass>(std::make_unique<ReplicaPass>(shared_from_this()));
}

Result<void> Replica::enter_context() {
  if (!at::GradMode::is_enabled()) return {};
  const auto context = autograd::Context::try_current(site_);
  if (!context) return context.error();
  if (auto added = context->record()->add_exchange(shared_from_this()); !added) return added;
  return options_.broadcast_buffers ? take_buffers() : Result<void>();
}

Result<void> Replica::take_buffers() {
  if (buffers_.empty()) return {};
  const at::NoGradGuard no_grad;
  Tensors all;
  for (const NamedTensor& named : buffers_) all.push_back(named.tensor);
  const auto values = group_->broadcast(all, 0).result();
  if (!values) return values.error();
  if (group_->rank() == 0) return {};
  for (std::size_t i = 0; i < all.size(); ++i) all[i].copy_((*values)[i]);
  return {};
}

std::uint64_t Replica::hash() const { return hash_of(buffers_, hash_of(parameters_, base::fnv1a(""))); }

Result<void> Replica::check_equal() {
  const auto all = group_->all_gather({at::tensor({static_cast<std::int64_t>(hash())}, at::kLong)}).result();
  if (!all) return all.error();
  std::string others;
  const auto hash_at = [&](std::size_t rank) { return (*all)[rank].front().item<std::int64_t>(); };
  for (std::size_t rank = 1; rank < all->size(); ++rank) {
    if (hash_at(rank) != hash_at(0)) others += (others.empty() ? "" : ", ") + group_->members()[rank];
  }
  if (others.empty()) return {};
  return Error(Errc::invalid_config, "the replicated module at " + others + " differs from that at " +
                                         group_->members().front() + ", in names or in bits");
}

Tensors Replica::presence(bool has_data) const {
  at::Tensor present = at::zeros({group_->size()}, at::kLong);
  if (has_data) present[group_->rank()].fill_(1);
  return {present};
}

/// Takes part in one pass of the replicas that have data. Returns whether there was one.
/// @param last  who had data in it
Result<bool> Replica::shadow_pass(std::vector<std::int64_t>& last) {
  const auto present = group_->all_reduce(presence(false), Reduction::sum).result();
  if (!present) return present.error();
  if (present->front().sum().item<std::int64_t>() == 0) return false;
  const at::Tensor& who = present->front();
  last.assign(who.const_data_ptr<std::int64_t>(), who.const_data_ptr<std::int64_t>() + who.numel());
  const bool over_active = options_.mean_over == ReplicatedOptions::MeanOver::active;
  for (const auto& bucket : plan_.buckets()) {
    if (bucket.is_sparse) {
      if (const auto gathered = group_->all_gather({}).result(); !gathered) return gathered.error();
      continue;
    }
    const at::Tensor none = at::zeros({bucket.size}, at::TensorOptions().dtype(bucket.dtype));
    const auto reduced = group_->all_reduce({none}, over_active ? Reduction::sum : Reduction::mean).result();
    if (!reduced) return reduced.error();
  }
  if (options_.find_unused_parameters) {
    const at::Tensor none = at::zeros({static_cast<std::int64_t>(leaves_.size())}, at::kLong);
    if (const auto used = group_->all_reduce({none}, Reduction::sum).result(); !used) return used.error();
  }
  return true;
}

Result<void> Replica::join() {
  if (!options_.uneven_inputs) return bad("join needs ReplicatedOptions::uneven_inputs at all replicas");
  if (is_busy_.exchange(true, std::memory_order_acq_rel)) return pass_open();
  std::vector<std::int64_t> last;
  for (;;) {
    const auto shadowed = shadow_pass(last);
    if (!shadowed || !*shadowed) {
      end();
      if (!shadowed) return shadowed.error();
      break;
    }
  }
  // A replica that computed last has seen no pass from here: all learn who it was from those that have.
  at::Tensor seen = at::zeros({group_->size()}, at::kLong);
  for (std::size_t rank = 0; rank < last.size(); ++rank) seen[static_cast<std::int64_t>(rank)].fill_(last[rank]);
  const auto known = group_->all_reduce({seen}, Reduction::sum).result();
  if (!known) return known.error();
  int root = 0;
  while (root < group_->size() && known->front()[root].item<std::int64_t>() == 0) ++root;
  return take_values_of(root == group_->size() ? 0 : root);
}

// ---- ReplicaHandle

Result<std::shared_ptr<Replica>> ReplicaHandle::make_replica(const CallSite& site,
                                                             std::shared_ptr<collectives::Collectives> group,
                                                             std::vector<NamedTensor> parameters,
                                                             std::vector<NamedTensor> buffers,
                                                             const ReplicatedOptions& options) {
  auto replica = Replica::make(site, std::move(group), std::move(parameters), std::move(buffers), options);
  if (!replica) return replica;
  if (auto started = (*replica)->start(); !started) return started.error();
  return replica;
}

ReplicaHandle::ReplicaHandle(const CallSite& site, std::shared_ptr<Replica> replica) : replica_(std::move(replica)) {
  for (const at::Tensor& leaf : replica_->leaves()) references_.push_back(site.make_rref(leaf));
}

collectives::Collectives& ReplicaHandle::group() const noexcept { return replica_->group(); }
Result<void> ReplicaHandle::enter_context() const { return replica_->enter_context(); }
std::uint64_t ReplicaHandle::hash() const { return replica_->hash(); }
Result<void> ReplicaHandle::check_equal() const { return replica_->check_equal(); }
Result<void> ReplicaHandle::join() const { return replica_->join(); }

}  // namespace caftan::nn
