// Futures, functions that answer later, and one that answers several calls with one product.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <caftan/caftan.hpp>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

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

/// One product answers all calls that have come: its row i is the result of call i.
class Layer {
 public:
  explicit Layer(at::Tensor weight) : weight_(std::move(weight)) {}
  std::vector<at::Tensor> forward(const caftan::Batch<at::Tensor>& rows) {
    return at::stack(rows.requests()).matmul(weight_).unbind();
  }

 private:
  at::Tensor weight_;
};

/// Each call of take is answered by the next put.
class Mailbox {
 public:
  caftan::Future<int> take() { return waiting_.emplace_back().future(); }
  /// Returns how many calls of take this put has answered.
  std::size_t put(int value) {
    std::vector<caftan::Promise<int>> answered = std::exchange(waiting_, {});
    for (caftan::Promise<int>& one : answered) one.set(value);
    return answered.size();
  }

 private:
  std::vector<caftan::Promise<int>> waiting_;
};

bool several_at_once(const caftan::Worker& worker) {
  std::vector<caftan::Future<int>> squares;
  for (int x = 1; x <= 3; ++x) squares.push_back(worker.rpc_async<&square>("alone", x));
  return caftan::wait_all(std::move(squares)) == std::vector<int>{1, 4, 9};
}

bool answers_a_batch(const caftan::RRef<Layer>& layer, const at::Tensor& weight) {
  std::vector<caftan::Future<at::Tensor>> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(layer.rpc_async<&Layer::forward>(at::ones({2}) * i));
  const std::vector<at::Tensor> products = caftan::wait_all(std::move(calls));
  return products[3].equal((at::ones({2}) * 3).matmul(weight));
}

bool answers_later(const caftan::RRef<Mailbox>& mailbox) {
  caftan::Future<int> value = mailbox.rpc_async<&Mailbox::take>();
  while (mailbox.rpc_sync<&Mailbox::put>(7) == 0) continue;  // the other call may not have begun
  return value.get() == 7;
}

bool gives_up(const caftan::RRef<Mailbox>& mailbox) {
  caftan::Future<int> value = mailbox.rpc_async<&Mailbox::take>();  // waits for a put that never comes
  value.cancel();
  return value.status().error().code() == caftan::Errc::cancelled;
}

int main() {
  caftan::Registry registry;
  registry.add<&square>("square");
  registry.add<&sum_of_squares>("sum_of_squares");
  registry.add<Layer>("layer")
      .constructor<at::Tensor>()  // the types of its arguments
      .batched<&Layer::forward>("forward", {.max_size = 4, .max_wait = 5ms});
  registry.add<Mailbox>("mailbox").constructor<>().method<&Mailbox::take>("take").method<&Mailbox::put>("put");
  caftan::WorkerOptions options;
  options.name = "alone";
  options.world = {{"alone", ""}};
  const auto worker = caftan::Worker::start(options, registry).value();
  const at::Tensor weight = at::arange(6.0).view({2, 3});
  const auto layer = worker->remote<Layer>("alone", weight);
  const auto mailbox = worker->remote<Mailbox>("alone");
  const bool right = several_at_once(*worker) && worker->rpc_sync<&sum_of_squares>("alone", 3) == 14 &&
                     answers_a_batch(layer, weight) && answers_later(mailbox) && gives_up(mailbox);
  return right ? 0 : 1;
}
