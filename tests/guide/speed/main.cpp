// What makes calls fast: where the two workers are, calls in flight, short functions, batches, large tensors.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <caftan/caftan.hpp>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

std::int64_t square(std::int64_t x) { return x * x; }

/// Answers all calls that have come with one operation.
std::vector<at::Tensor> probabilities(const caftan::Batch<at::Tensor>& states) {
  return at::stack(states.requests()).softmax(1).unbind();
}

at::Tensor row_sums(const at::Tensor& rows) { return rows.sum(1); }
double mean_of(const caftan::RRef<at::Tensor>& images) { return images.local_value()->mean().item<double>(); }
at::Tensor keep(at::Tensor images) { return images; }

caftan::Registry functions() {
  caftan::Registry registry;
  registry.add<&square>("square", caftan::brief);
  registry.add_batched<&probabilities>("probabilities", {.max_size = 32, .max_wait = 1ms});
  registry.add<&row_sums>("row_sums");
  registry.add<&mean_of>("mean_of");
  registry.add<&keep>("keep");
  return registry;
}

/// Keeps up to 64 calls open, and takes their results in order.
std::int64_t sum_of_squares(const caftan::Worker& worker, std::int64_t count) {
  constexpr std::size_t kInFlight = 64;
  std::deque<caftan::Future<std::int64_t>> open;
  std::int64_t sum = 0;
  for (std::int64_t x = 1; x <= count; ++x) {
    if (open.size() == kInFlight) {
      sum += open.front().get();
      open.pop_front();
    }
    open.push_back(worker.rpc_async<&square>("server", x));
  }
  for (auto& call : open) sum += call.get();
  return sum;
}

bool answers_in_batches(const caftan::Worker& worker) {
  std::vector<caftan::Future<at::Tensor>> calls;
  for (int i = 0; i < 64; ++i) calls.push_back(worker.rpc_async<&probabilities>("server", at::ones({4}) * i));
  for (const at::Tensor& row : caftan::wait_all(std::move(calls))) {
    if (!row.allclose(at::ones({4}) / 4)) return false;
  }
  return true;
}

bool one_call_for_all_rows(const caftan::Worker& worker) {
  const at::Tensor rows = at::arange(4096.0).view({1024, 4});
  return worker.rpc_sync<&row_sums>("server", rows).equal(rows.sum(1));
}

bool stays_where_it_is_used(const caftan::Worker& worker) {
  const caftan::RRef<at::Tensor> images = worker.remote<&keep>("server", at::ones({64, 28, 28}));  // sent once
  double sum = 0;
  for (int epoch = 0; epoch < 3; ++epoch) sum += worker.rpc_sync<&mean_of>("server", images);
  return sum == 3.0;
}

/// Starts a worker that talks over `kind`, "shm" or "unix", at a socket in the current folder.
std::unique_ptr<caftan::Worker> launch(const std::string& name, const std::string& kind) {
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"server", kind + ":speed.sock"}, {"client", ""}};
  return caftan::Worker::launch(options, functions()).value();
}

bool runs_over(const std::string& kind) {
  std::filesystem::remove("speed.sock");  // left by a run that was killed
  const auto server = launch("server", kind);
  const auto client = launch("client", kind);
  server->wait_until_ready().value();
  client->wait_until_ready().value();
  const bool right = sum_of_squares(*client, 1000) == 333'833'500 && answers_in_batches(*client) &&
                     one_call_for_all_rows(*client) && stays_where_it_is_used(*client);
  std::printf("%s: %s\n", client->channel_kind("server").c_str(), right ? "right" : "wrong");
  return right;
}

int main() {
  const bool right = runs_over("unix") && runs_over("shm");
  return right ? 0 : 1;
}
