// Starts the bank and a customer as two workers of this process, and deposits once.
#include <caftan/transport/threaded_executor.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bank.hpp"

int main() {
  using Executor = caftan::transport::ThreadedExecutor;
  const auto executor = std::make_shared<Executor>(Executor::Options{});
  const auto network = std::make_shared<caftan::LocalNetwork>();
  std::vector<std::unique_ptr<caftan::Worker>> workers;
  for (const std::string name : {"bank", "ann"}) {
    caftan::WorkerOptions options;
    options.name = name;
    options.world = {{"bank", ""}, {"ann", ""}};
    options.executor = executor;
    options.network = network;
    workers.push_back(caftan::Worker::launch(std::move(options), make_registry()).value());
  }
  for (const auto& worker : workers) worker->wait_until_ready().value();
  const auto account = workers[1]->remote<Account>("bank");
  std::printf("balance: %d\n", deposit(account, 1, 50).value());
}
