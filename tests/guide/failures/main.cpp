// Failures between two workers, and the errors that the caller gets.
#include <caftan/caftan.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

class Bank {
 public:
  caftan::Result<int> withdraw(int amount) {
    if (amount > balance_) return caftan::user_error("bank.no_funds", "there are " + std::to_string(balance_));
    return balance_ -= amount;
  }
  int audit() { throw std::runtime_error("the books are wet"); }
  caftan::Future<int> loan(int amount) {  // stays open: this bank never decides
    requests_.push_back(amount);
    return decisions_.emplace_back().future();
  }

 private:
  int balance_ = 100;
  std::vector<int> requests_;
  std::vector<caftan::Promise<int>> decisions_;
};

std::unique_ptr<caftan::Worker> launch(const std::string& name, const std::string& bank) {
  caftan::Registry registry;
  registry.add<Bank>("bank")
      .constructor<>()
      .method<&Bank::withdraw>("withdraw")
      .method<&Bank::audit>("audit")
      .method<&Bank::loan>("loan");
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"bank", bank}, {"customer", ""}};
  options.stop_timeout = std::chrono::milliseconds(100);
  options.on_peer_down = [name](const std::string& peer, const caftan::Error& reason) {
    std::printf("%s lost %s: %s\n", name.c_str(), peer.c_str(), reason.message().c_str());
  };
  return caftan::Worker::launch(options, registry).value();
}

bool an_error_is_a_value(const caftan::RRef<Bank>& bank) {
  const caftan::Result<int> balance = bank.try_rpc_sync<&Bank::withdraw>(500);
  if (balance) return false;
  return balance.error().kind() == "bank.no_funds" && balance.error().text() == "there are 100";
}

bool or_an_exception(const caftan::RRef<Bank>& bank) {
  try {
    bank.rpc_sync<&Bank::audit>();
  } catch (const caftan::RpcException& exception) {
    return exception.error().code() == caftan::Errc::remote_exception && exception.error().worker() == "bank";
  }
  return false;
}

bool a_call_takes_no_longer_than_it_may(const caftan::RRef<Bank>& bank) {
  const auto hurried = bank.with({.timeout = std::chrono::milliseconds(50)});
  const caftan::Result<int> loan = hurried.try_rpc_sync<&Bank::loan>(1000);
  return !loan && loan.error().code() == caftan::Errc::timeout;
}

bool several_at_once(const caftan::RRef<Bank>& bank) {
  std::vector<caftan::Future<int>> calls;
  for (const int amount : {60, 60}) calls.push_back(bank.rpc_async<&Bank::withdraw>(amount));
  const std::vector<caftan::Result<int>> balances = caftan::wait_all_results(calls);
  return balances[0].has_value() != balances[1].has_value();  // the balance is enough for one only
}

bool a_worker_ends(caftan::Worker& owner, const caftan::RRef<Bank>& bank) {
  caftan::Future<int> loan = bank.rpc_async<&Bank::loan>(1);
  owner.stop();
  return !loan.status() && !bank.try_rpc_sync<&Bank::withdraw>(1);  // both the call under way and a later one fail
}

int main() {
  const auto owner = launch("bank", "tcp:127.0.0.1:0");
  const auto customer = launch("customer", owner->address());
  owner->wait_until_ready().value();
  customer->wait_until_ready().value();
  const auto bank = customer->remote<Bank>("bank");
  const bool right = an_error_is_a_value(bank) && or_an_exception(bank) && a_call_takes_no_longer_than_it_may(bank) &&
                     several_at_once(bank) && a_worker_ends(*owner, bank);
  return right ? 0 : 1;
}
