#include "exchanged_leaves.hpp"

#include <utility>

namespace caftan::autograd {

Result<void> ExchangedLeaves::begin() {
  for (const auto& exchange : exchanges_) {
    auto pass = exchange->begin();
    if (!pass) return pass.error();
    for (std::size_t leaf = 0; leaf < exchange->leaves().size(); ++leaf) {
      places_.try_emplace(exchange->leaves()[leaf].unsafeGetTensorImpl(), Place{passes_.size(), leaf});
    }
    passes_.push_back(*std::move(pass));
  }
  return {};
}

bool ExchangedLeaves::take(const at::Tensor& leaf, at::Tensor& gradient, std::uint32_t rank, bool is_part) {
  if (passes_.empty()) return false;
  const auto place = places_.find(leaf.unsafeGetTensorImpl());
  if (place == places_.end()) return false;
  if (is_part) {
    parts_.add(leaf, std::move(gradient), rank);
  } else {
    const auto taken = passes_[place->second.pass]->on_gradient(place->second.leaf, gradient);
    if (!taken) throw RpcException(taken.error());
  }
  return true;
}

void ExchangedLeaves::put(const std::shared_ptr<Inbox>& inbox, std::size_t pass,
                          Result<std::vector<at::Tensor>> gradients) {
  std::function<void()> ready;
  {
    const base::LockGuard lock(inbox->mutex);
    inbox->returned[pass] = std::move(gradients);
    if (--inbox->missing == 0) ready = std::exchange(inbox->ready, {});
  }
  if (ready) ready();
}

/// Gives the exchanges the sums of checkpointed segments, and asks them for what comes back.
Result<void> ExchangedLeaves::ask() {
  const GradientBook sums = parts_.take();
  for (const auto& entry : sums.entries()) {
    const Place& place = places_.at(entry.leaf.unsafeGetTensorImpl());
    if (auto taken = passes_[place.pass]->on_gradient(place.leaf, entry.gradient); !taken) return taken;
  }
  {
    const base::LockGuard lock(inbox_->mutex);
    inbox_->returned.resize(passes_.size());
    inbox_->missing = passes_.size();
  }
  asked_ = true;
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    passes_[i]->finish(
        [inbox = inbox_, i](Result<std::vector<at::Tensor>> gradients) { put(inbox, i, std::move(gradients)); });
  }
  return {};
}

Result<bool> ExchangedLeaves::finish(StagedGradients& staged) {
  if (is_over_ || passes_.empty()) return true;
  if (!asked_) {
    if (auto asked = ask(); !asked) return asked.error();
  }
  std::vector<std::optional<Result<std::vector<at::Tensor>>>> returned;
  {
    const base::LockGuard lock(inbox_->mutex);
    if (inbox_->missing > 0) return false;
    returned.swap(inbox_->returned);
  }
  is_over_ = true;
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    if (!*returned[i]) return returned[i]->error();
    std::vector<at::Tensor>& gradients = **returned[i];
    for (std::size_t leaf = 0; leaf < gradients.size(); ++leaf, ++rank) {
      if (gradients[leaf].defined()) staged.add(exchanges_[i]->leaves()[leaf], std::move(gradients[leaf]), rank);
    }
  }
  return true;
}

void ExchangedLeaves::when_ready(std::function<void()> ready) {
  {
    const base::LockGuard lock(inbox_->mutex);
    if (inbox_->missing > 0 && !inbox_->is_awake) {
      inbox_->ready = std::move(ready);
      return;
    }
  }
  ready();
}

void ExchangedLeaves::wake() noexcept {
  std::function<void()> ready;
  {
    const base::LockGuard lock(inbox_->mutex);
    inbox_->is_awake = true;
    ready = std::exchange(inbox_->ready, {});
  }
  if (ready) ready();
}

ExchangedLeaves::~ExchangedLeaves() {
  abandon(Error(Errc::cancelled, "the backward pass ended before its gradients were exchanged"));
}

void ExchangedLeaves::abandon(const Error& reason) noexcept {
  if (std::exchange(is_over_, true)) return;
  for (const auto& pass : passes_) pass->abandon(reason);
}

}  // namespace caftan::autograd
