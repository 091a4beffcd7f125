#include "ps_bench/bucket_rule.hpp"

#include <string>
#include <utility>

#include "caftan/nn/gradient_mean.hpp"

namespace caftan::ps_bench {
namespace {

bool fits(const at::Tensor& gradient, const ParameterShape& shape) {
  return gradient.defined() && gradient.scalar_type() == at::kFloat && gradient.is_cpu() &&
         gradient.sizes() == at::IntArrayRef(shape.sizes) &&
         gradient.layout() == (shape.sparse ? at::kSparse : at::kStrided);
}

}  // namespace

BucketRule::BucketRule(const Options& options, std::vector<ParameterShape> shapes, std::vector<at::Tensor> parameters)
    : options_(options), shapes_(std::move(shapes)), parameters_(std::move(parameters)) {}

Result<void> BucketRule::check(std::uint32_t trainer, std::int64_t batch,
                               const std::vector<at::Tensor>& gradients) const {
  const std::string name = "trainer " + std::to_string(trainer);
  if (!options_.trainers.contains(trainer)) {
    return Error(Errc::bad_arguments, name + " is none of this server: it has " +
                                          std::to_string(options_.trainers.count) + " from " +
                                          std::to_string(options_.trainers.first) + " on");
  }
  bool all_fit = gradients.size() == shapes_.size();
  for (std::size_t i = 0; all_fit && i < shapes_.size(); ++i) all_fit = fits(gradients[i], shapes_[i]);
  if (!all_fit) return Error(Errc::bad_arguments, name + ": these are gradients of another bucket or model");
  if (options_.rule == Rule::immediate) return {};
  if (batch != batch_) {
    return Error(Errc::bad_arguments, name + ": a gradient of batch " + std::to_string(batch) + ", the open round is " +
                                          std::to_string(batch_));
  }
  if (arrived_.contains(trainer)) {
    return Error(Errc::bad_arguments, name + ": a second gradient of batch " + std::to_string(batch));
  }
  return {};
}

Result<bool> BucketRule::take(std::uint32_t trainer, std::int64_t batch, std::vector<at::Tensor> gradients) {
  if (auto checked = check(trainer, batch, gradients); !checked) return checked.error();
  if (options_.rule == Rule::average_batch) {
    kept_.emplace(trainer, std::move(gradients));
  } else {
    add(std::move(gradients));
  }
  arrived_.insert(trainer);
  return options_.rule == Rule::immediate || arrived_.size() == options_.trainers.count;
}

/// Adds gradients to the sums. What has arrived is never written: the first sum makes new tensors.
void BucketRule::add(std::vector<at::Tensor>&& gradients) {
  if (arrived_.empty()) {
    sums_ = std::move(gradients);
    return;
  }
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (arrived_.size() > 1 && !shapes_[i].sparse) {
      sums_[i].add_(gradients[i]);
    } else {
      sums_[i] = sums_[i].add(gradients[i]);
    }
  }
}

Result<std::vector<at::Tensor>> BucketRule::mean() {
  if (options_.rule == Rule::average_batch) {
    std::vector<std::vector<at::Tensor>> contributions;  // in the order of the trainers, whichever came first
    for (auto& [trainer, gradients] : kept_) contributions.push_back(std::move(gradients));
    kept_.clear();
    return nn::gradient_mean(contributions);
  }
  const auto count = static_cast<double>(arrived_.size());
  for (std::size_t i = 0; i < sums_.size() && arrived_.size() > 1; ++i) {
    sums_[i] = shapes_[i].sparse ? sums_[i].div(count) : sums_[i].div_(count);
  }
  return std::exchange(sums_, {});
}

Result<std::vector<at::Tensor>> BucketRule::finish() {
  if (options_.rule == Rule::immediate) {
    for (std::size_t i = 0; i < sums_.size(); ++i) parameters_[i] = parameters_[i].add(sums_[i], -options_.lr);
    sums_.clear();
    arrived_.clear();
    return parameters_;
  }
  auto means = mean();
  arrived_.clear();
  ++batch_;
  if (!means) return means;
  for (std::size_t i = 0; i < means->size(); ++i) {
    if (shapes_[i].sparse) (*means)[i] = (*means)[i].coalesce();
  }
  return means;
}

}  // namespace caftan::ps_bench
