// The program: an account at one worker, and customers who ask again when no reply comes.
#pragma once

#include <caftan/caftan.hpp>
#include <chrono>
#include <set>

class Account {  // one object at the bank; its methods run one at a time
 public:
  int deposit(int id, int amount) {  // adds once for each id, however often called
    if (seen_.insert(id).second) balance_ += amount;
    return balance_;
  }

 private:
  std::set<int> seen_;
  int balance_ = 0;
};

// Returns the balance after a deposit. Asks three times at most, and waits a second for each reply.
inline caftan::Result<int> deposit(const caftan::RRef<Account>& account, int id, int amount) {
  const auto patient = account.with({.timeout = std::chrono::seconds(1)});
  for (int attempt = 1;; ++attempt) {
    caftan::Result<int> balance = patient.try_rpc_sync<&Account::deposit>(id, amount);
    if (balance || balance.error().code() != caftan::Errc::timeout || attempt == 3) return balance;
  }
}

inline caftan::Registry make_registry() {
  caftan::Registry registry;
  registry.add<Account>("account").constructor<>().method<&Account::deposit>("deposit");
  registry.add<&deposit>("deposit");
  return registry;
}
