// Futures, asynchronous functions, and one that answers a batch of requests by promises.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <caftan/caftan.hpp>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

int square(int x) { return x * x; }

/// Returns before the sum is known; no thread waits for it.
caftan::Future<int> sum_of_squares(caftan::Worker& worker, int count) {
  std::vector<caftan::Future<int>> squares;
  for (int x = 1; x <= count; ++x) squares.push_back(worker.rpc_async<&square>(worker.name(), x));
  return caftan::collect_all(std::move(squares)).then([](caftan::Result<std::vector<int>> all) -> caftan::Result<int> {
    if (!all) return all.error();
    return std::accumulate(all->begin(), all->end(), 0);
  });
}

class Batcher {
 public:
  Batcher(at::Tensor weight, std::size_t size) : weight_(std::move(weight)), size_(size) {}

  caftan::Future<at::Tensor> forward(at::Tensor row) {
    rows_.push_back(std::move(row));
    caftan::Future<at::Tensor> product = products_.emplace_back().future();
    if (rows_.size() == size_) flush();
    return product;
  }

  void flush() {
    const std::vector<at::Tensor> rows = std::exchange(rows_, {});
    std::vector<caftan::Promise<at::Tensor>> products = std::exchange(products_, {});
    if (rows.empty()) return;
    const at::Tensor product = at::stack(rows).matmul(weight_);
    for (std::size_t i = 0; i < rows.size(); ++i) products[i].set(product.select(0, static_cast<std::int64_t>(i)));
  }

 private:
  at::Tensor weight_;
  std::size_t size_;
  std::vector<at::Tensor> rows_;
  std::vector<caftan::Promise<at::Tensor>> products_;  // one for each row
};

bool several_at_once(const caftan::Worker& worker) {
  std::vector<caftan::Future<int>> squares;
  for (int x = 1; x <= 3; ++x) squares.push_back(worker.rpc_async<&square>("alone", x));
  return caftan::wait_all(std::move(squares)) == std::vector<int>{1, 4, 9};
}

bool answers_a_batch(const caftan::RRef<Batcher>& batcher, const at::Tensor& weight) {
  std::vector<caftan::Future<at::Tensor>> products;
  for (int i = 0; i < 4; ++i) products.push_back(batcher.rpc_async<&Batcher::forward>(at::ones({2}) * i));
  const std::vector<at::Tensor> rows = caftan::wait_all(std::move(products));
  return rows[3].equal((at::ones({2}) * 3).matmul(weight));
}

bool gives_up(const caftan::RRef<Batcher>& batcher) {
  caftan::Future<at::Tensor> alone = batcher.rpc_async<&Batcher::forward>(at::ones({2}));  // waits for three others
  alone.cancel();
  batcher.rpc_sync<&Batcher::flush>();
  return alone.status().error().code() == caftan::Errc::cancelled;
}

int main() {
  caftan::Registry registry;
  registry.add<&square>("square");
  registry.add<&sum_of_squares>("sum_of_squares");
  registry.add<Batcher>("batcher")
      .constructor<at::Tensor, std::size_t>()
      .method<&Batcher::forward>("forward")
      .method<&Batcher::flush>("flush");
  caftan::WorkerOptions options;
  options.name = "alone";
  options.world = {{"alone", ""}};
  const auto worker = caftan::Worker::start(std::move(options), std::move(registry)).value();
  const at::Tensor weight = at::arange(6.0).view({2, 3});
  const auto batcher = worker->remote<Batcher>("alone", weight, std::size_t{4});
  const bool right = several_at_once(*worker) && worker->rpc_sync<&sum_of_squares>("alone", 3) == 14 &&
                     answers_a_batch(batcher, weight) && gives_up(batcher);
  return right ? 0 : 1;
}
