#include "graph_oracle.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <iostream>

namespace caftan::autograd::test {

std::optional<LocalRun> run_locally(const Case& one) {
  IdentityHops identity;
  const Program program = one.run(identity);
  if (program.gradient_bound >= kExact) return std::nullopt;
  torch::autograd::backward(program.roots, {}, /*retain_graph=*/false);
  LocalRun run{{}, program.operations};
  for (const auto& leaves : program.leaves) {
    run.gradients.emplace_back();
    for (const at::Tensor& leaf : leaves) run.gradients.back().push_back(leaf.grad());
  }
  return run;
}

LeafGradients to_dense(LeafGradients gradients) {
  for (auto& leaves : gradients) {
    for (at::Tensor& gradient : leaves) {
      if (gradient.defined()) gradient = gradient.to_dense();
    }
  }
  return gradients;
}

std::string first_difference(const LeafGradients& expected, const LeafGradients& actual) {
  if (actual.size() != expected.size()) return "gradients of another number of workers";
  for (std::size_t worker = 0; worker < expected.size(); ++worker) {
    if (actual[worker].size() != expected[worker].size()) {
      return "worker " + std::to_string(worker) + ": another number of leaves";
    }
    for (std::size_t leaf = 0; leaf < expected[worker].size(); ++leaf) {
      const std::string what = bit_difference(expected[worker][leaf], actual[worker][leaf]);
      if (!what.empty()) return "worker " + std::to_string(worker) + ", leaf " + std::to_string(leaf) + ": " + what;
    }
  }
  return {};
}

std::size_t Histogram::median() const {
  std::size_t all = 0;
  for (const auto& [value, count] : counts_) all += count;
  std::size_t seen = 0;
  for (const auto& [value, count] : counts_) {
    seen += count;
    if (2 * seen > all) return value;
  }
  return 0;
}

std::size_t Histogram::above_zero() const {
  std::size_t sum = 0;
  for (const auto& [value, count] : counts_) sum += value > 0 ? count : 0;
  return sum;
}

void Histogram::print() const {
  std::map<std::size_t, std::size_t> buckets;
  for (const auto& [value, count] : counts_) buckets[value / bucket_] += count;
  std::cout << what_ << ':';
  for (const auto& [bucket, count] : buckets) {
    std::cout << "  " << bucket_ * bucket;
    if (bucket_ > 1) std::cout << '-' << bucket_ * bucket + bucket_ - 1;
    std::cout << ": " << count;
  }
  std::cout << '\n';
}

}  // namespace caftan::autograd::test
