#include "graph_program.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>
#include <tuple>
#include <utility>

#include "caftan/base/ids.hpp"

namespace caftan::autograd::test {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

constexpr int kSide = 4;              // every tensor of the pool is kSide x kSide
constexpr double kLargest = 1 << 20;  // values of small-integer programs

/// A node that hands its inputs' gradients on unchanged.
class Identity final : public Node {
  variable_list apply(variable_list&& gradients) override { return std::move(gradients); }
};
/// A node with two results of one tensor. Hands on the gradient of the first result only, undefined if it is undefined.
class Fork final : public Node {
  variable_list apply(variable_list&& gradients) override { return {gradients[0]}; }
};

std::vector<at::Tensor> results_of(const std::shared_ptr<Node>& node, const std::vector<at::Tensor>& values) {
  std::vector<at::Tensor> results;
  for (const at::Tensor& value : values) {
    // The copy has the strides that the codec would keep. A tensor that overlaps itself cannot be changed in place, so
    // it may be shared.
    results.push_back(value.is_non_overlapping_and_dense() ? value.detach().clone() : value.detach());
    torch::autograd::create_gradient_edge(results.back(), node);
  }
  return results;
}

std::vector<at::Tensor> fork(const at::Tensor& value) {
  if (!value.requires_grad()) return {value, value};
  std::shared_ptr<Node> node(new Fork, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(value));
  return results_of(node, {value, value});
}

struct Value {
  at::Tensor tensor;
  double bound = 0;    ///< of its elements
  std::size_t id = 0;  ///< in the tape
};

class Writer {
 public:
  Writer(std::uint64_t seed, Numbers numbers, int workers, Hops& hops)
      : random_(seed), seed_(seed), exact_(numbers == Numbers::small_integers), hops_(hops) {
    program_.leaves.resize(workers);
    pools_.resize(workers);
    for (int worker = 0; worker < workers; ++worker) make_leaves(worker);
  }

  Program write(int spans, Roots roots) {
    for (int i = 0; i < spans; ++i) {
      const int worker = draw(static_cast<int>(pools_.size()));
      fetch(worker, 1 + draw(3));
      hops_.run_span(worker, next_key(), [&] {
        for (int n = 3 + draw(6); n > 0; --n) operate(worker);
      });
    }
    fetch(0, 2 * static_cast<int>(pools_.size()));
    if (roots == Roots::all) {
      for (int worker = 1; worker < static_cast<int>(pools_.size()); ++worker) bring(worker, 0, pools_[worker]);
    }
    hops_.run_span(0, next_key(), [&] { roots == Roots::all ? make_all_roots() : make_roots(); });
    bound_gradients();
    return std::move(program_);
  }

 private:
  int draw(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
  std::uint64_t next_key() { return mix64(seed_ * 1000003 + ++keys_); }
  Value& pick(int worker) {
    auto& pool = pools_[worker];
    // Takes mostly one of the last results, so that graphs grow deep as well as wide.
    const int size = static_cast<int>(pool.size());
    return draw(4) == 0 ? pool[draw(size)] : pool[size - 1 - draw(std::min(size, 5))];
  }

  at::Tensor numbers(std::int64_t rows) {
    const auto dtype = exact_ ? at::kDouble : at::kFloat;
    at::Tensor made = at::zeros({rows, kSide}, dtype);
    for (std::int64_t i = 0; i < rows * kSide; ++i) {
      const double value = exact_ ? draw(5) - 2 : (draw(2001) - 1000) / 700.0;
      if (exact_) {
        made.mutable_data_ptr<double>()[i] = value;
      } else {
        made.mutable_data_ptr<float>()[i] = static_cast<float>(value);
      }
    }
    return made;
  }

  at::Tensor indices(std::int64_t below, at::IntArrayRef sizes) {
    at::Tensor made = at::zeros(sizes, at::kLong);
    for (std::int64_t i = 0; i < made.numel(); ++i) made.mutable_data_ptr<std::int64_t>()[i] = draw(below);
    return made;
  }

  void make_leaves(int worker) {
    for (int i = 0; i < 2; ++i) {
      Value leaf{numbers(kSide), 2, ++values_};
      if (i == 0 || draw(3) != 0) leaf.tensor.set_requires_grad(true);
      if (leaf.tensor.requires_grad()) program_.leaves[worker].push_back(leaf.tensor);
      pools_[worker].push_back(leaf);
    }
    embeddings_.push_back(numbers(6).set_requires_grad(true));
    program_.leaves[worker].push_back(embeddings_.back());
  }

  /// Brings tensors from up to `peers` other workers.
  void fetch(int worker, int peers) {
    for (int i = 0; i < peers; ++i) {
      const int from = draw(static_cast<int>(pools_.size()));
      if (from == worker) continue;
      std::vector<Value> sent;
      for (int n = 1 + draw(3); n > 0; --n) sent.push_back(pick(from));
      bring(from, worker, sent);
    }
  }

  void bring(int from, int to, const std::vector<Value>& sent) {
    const std::uint64_t key = next_key();
    std::vector<at::Tensor> came;
    hops_.run_span(from, key, [&] { came = send(from, to, sent, mix64(key)); });
    ++program_.hops;
    for (std::size_t n = 0; n < came.size(); ++n) {
      // Changes in place only what arrived alone (several tensors may share memory): the node of the hop must not
      // notice the change.
      const bool in_place =
          draw(2) == 0 && came.size() == 1 && came[n].requires_grad() && came[n].is_non_overlapping_and_dense();
      if (in_place) hops_.run_span(to, next_key(), [&] { came[n].add_(came[n].detach()); });
      add(to, came[n], in_place ? 2 * sent[n].bound : sent[n].bound, {{sent[n].id, 1}});
    }
  }

  /// A tensor that stands in `values` twice is one entry of the message, and one tensor at the receiver.
  std::vector<at::Tensor> send(int from, int to, const std::vector<Value>& values, std::uint64_t order_key) {
    std::vector<at::Tensor> entries;
    std::vector<std::ptrdiff_t> places;
    for (const Value& value : values) {
      const auto same = [&value](const at::Tensor& entry) { return entry.is_same(value.tensor); };
      places.push_back(std::find_if(entries.begin(), entries.end(), same) - entries.begin());
      if (places.back() == std::ssize(entries)) entries.push_back(value.tensor);
    }
    const std::vector<at::Tensor> arrived = hops_.move(from, to, entries, order_key);
    std::vector<at::Tensor> came;
    for (const std::ptrdiff_t place : places) came.push_back(arrived[place]);
    return came;
  }

  struct Use {
    std::size_t of;
    /// Upper bound of the gradient of one element of the used tensor, for a gradient of 1 on the result.
    double factor;
  };

  void add(int worker, at::Tensor tensor, double bound, std::vector<Use> uses) {
    Value value{std::move(tensor), bound, ++values_};
    for (const Use& use : uses) tape_.push_back({use.of, value.id, use.factor});
    pools_[worker].push_back(std::move(value));
  }

  void operate(int worker) {
    ++program_.operations;
    const Value a = pick(worker);
    const Value b = pick(worker);
    const bool small = !exact_ || a.bound * b.bound * kSide <= 64;
    switch (draw(exact_ ? 12 : 15)) {
      case 0:
      case 1:
        if (a.bound + b.bound > kLargest) return wrap(worker, a);
        return add(worker, a.tensor + b.tensor, a.bound + b.bound, {{a.id, 1}, {b.id, 1}});
      case 2:
        if (a.bound + b.bound > kLargest) return wrap(worker, b);
        return add(worker, a.tensor - b.tensor, a.bound + b.bound, {{a.id, 1}, {b.id, 1}});
      case 3:
        if (!small) return wrap(worker, a);
        return add(worker, a.tensor * b.tensor * scale(0.5), a.bound * b.bound, {{a.id, b.bound}, {b.id, a.bound}});
      case 4:
        if (!small) return wrap(worker, b);
        return add(worker, a.tensor.matmul(b.tensor) * scale(0.25), kSide * a.bound * b.bound,
                   {{a.id, kSide * b.bound}, {b.id, kSide * a.bound}});
      case 5:
        return add(worker, a.tensor.t(), a.bound, {{a.id, 1}});
      case 6: {
        const std::vector<at::Tensor> halves = a.tensor.chunk(2, 1);
        const at::Tensor& left = halves[draw(2)];
        return add(worker, at::cat({left, left}, 1), a.bound, {{a.id, 2}});
      }
      case 7:
        if (kSide * a.bound > kLargest) return wrap(worker, a);
        return add(worker, a.tensor.sum(0).expand({kSide, kSide}), kSide * a.bound, {{a.id, kSide}});
      case 8: {
        at::Tensor changed = a.tensor.clone();
        changed.select(0, draw(kSide)).add_(b.tensor.select(1, draw(kSide)));
        return add(worker, std::move(changed), a.bound + b.bound, {{a.id, 1}, {b.id, 1}});
      }
      case 9:
        return add(worker, a.tensor.gather(1, indices(kSide, {kSide, kSide})), a.bound, {{a.id, kSide}});
      case 10: {
        const at::Tensor rows = indices(6, {kSide});
        const at::Tensor taken = at::embedding(embeddings_[worker], rows, -1, false, /*sparse=*/true);
        return add(worker, taken + b.tensor.detach(), 2 + b.bound, {{0, kSide}});
      }
      case 11:
        return wrap(worker, a);
      case 12:
        return add(worker, at::tanh(a.tensor), 1, {{a.id, 1}});
      case 13: {
        const auto [values, positions] = a.tensor.max(1);
        return add(worker, values.unsqueeze(1).expand({kSide, kSide}) - b.tensor, 0, {});
      }
      default: {
        const std::vector<at::Tensor> forked = fork(a.tensor);
        return add(worker, forked[draw(2)], 0, {});
      }
    }
  }

  at::Scalar scale(double rounding) const { return exact_ ? 1.0 : rounding; }

  /// Makes a value small again: an integer becomes its remainder modulo 4, through which the gradient passes unchanged.
  void wrap(int worker, const Value& value) {
    if (!exact_) return add(worker, at::tanh(value.tensor), 1, {});
    const at::Tensor whole = (value.tensor.detach() / 4).floor() * 4;
    add(worker, value.tensor - whole, 4, {{value.id, 1}});
  }

  void make_roots() {
    const auto& pool = pools_[0];
    const int wanted = 2 + draw(3);
    for (int i = 0; i < wanted || program_.roots.empty(); ++i) {
      const std::size_t last = pool.size() - 1 - draw(std::min<int>(6, static_cast<int>(pool.size())));
      add_root(i < 20 ? pool[last] : pool[0]);
    }
  }

  void make_all_roots() {
    for (const Value& value : pools_[0]) add_root(value);
  }

  void add_root(const Value& value) {
    if (!value.tensor.requires_grad()) return;
    program_.roots.push_back(value.tensor.sum());
    tape_.push_back({value.id, kRoot, 1});
  }

  void bound_gradients() {
    std::vector<double> bounds(values_ + 1, 0);
    for (auto entry = tape_.rbegin(); entry != tape_.rend(); ++entry) {
      const double above = entry->to == kRoot ? 1 : bounds[entry->to];
      bounds[entry->from] += above * entry->factor;
      program_.gradient_bound = std::max(program_.gradient_bound, bounds[entry->from]);
    }
  }

  static constexpr std::size_t kRoot = ~std::size_t{0};
  struct Entry {
    std::size_t from;
    std::size_t to;
    double factor;
  };

  std::mt19937_64 random_;
  const std::uint64_t seed_;
  const bool exact_;
  Hops& hops_;
  std::uint64_t keys_ = 0;
  std::size_t values_ = 0;  ///< id 0 stands for all embeddings
  std::vector<std::vector<Value>> pools_;
  std::vector<at::Tensor> embeddings_;
  std::vector<Entry> tape_;
  Program program_;
};

}  // namespace

void IdentityHops::run_span(int, std::uint64_t, const std::function<void()>& code) { code(); }

std::vector<at::Tensor> IdentityHops::move(int, int, const std::vector<at::Tensor>& tensors, std::uint64_t) {
  std::vector<at::Tensor> recorded;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.requires_grad()) recorded.push_back(tensor);
  }
  std::vector<at::Tensor> came;
  if (!recorded.empty()) {
    std::shared_ptr<Node> node(new Identity, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(recorded));
    came = results_of(node, recorded);
  }
  std::vector<at::Tensor> all;
  std::size_t next = 0;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.requires_grad() ? came[next++] : tensor);
  }
  return all;
}

Program run_program(std::uint64_t seed, Numbers numbers, int workers, int spans, Roots roots, Hops& hops) {
  return Writer(seed, numbers, workers, hops).write(spans, roots);
}

std::string bit_difference(const at::Tensor& expected, const at::Tensor& actual) {
  if (expected.defined() != actual.defined()) {
    return expected.defined() ? "a gradient is missing" : "a gradient that is not expected";
  }
  if (!expected.defined()) return {};
  if (expected.layout() != actual.layout() || expected.sizes() != actual.sizes() ||
      expected.scalar_type() != actual.scalar_type()) {
    std::ostringstream text;
    text << expected.layout() << expected.sizes() << expected.scalar_type() << " became " << actual.layout()
         << actual.sizes() << actual.scalar_type();
    return text.str();
  }
  if (expected.is_sparse()) {
    std::string what = bit_difference(expected._indices(), actual._indices());
    return what.empty() ? bit_difference(expected._values(), actual._values()) : "indices: " + what;
  }
  const at::Tensor left = expected.contiguous();
  const at::Tensor right = actual.contiguous();
  if (left.nbytes() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0) return {};
  std::ostringstream text;
  text << "values differ, by up to " << (left - right).abs().max().item<double>();
  return text.str();
}

}  // namespace caftan::autograd::test
