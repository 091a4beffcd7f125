// Tests of bank.hpp. `bank_test` runs them with the seeds 1 to 20, `bank_test 7` with the seed 7.
#include <algorithm>
#include <caftan/testing/cluster.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "bank.hpp"

using caftan::Errc;
using caftan::testing::Cluster;
using caftan::wire::FrameKind;
using std::chrono::milliseconds;
using std::chrono::seconds;

int failures = 0;
void expect(bool holds, const char* what, unsigned long long seed) {
  if (holds) return;
  std::printf("failed with seed %llu: %s\n", seed, what);
  ++failures;
}

void two_customers_lose_no_money(unsigned long long seed) {
  Cluster cluster(seed, {"bank", "ann", "bob"}, make_registry);
  const auto account = cluster["ann"].remote<Account>("bank");
  auto first = cluster["ann"].rpc_async<&deposit>("ann", account, 1, 50);
  auto second = cluster["ann"].rpc_async<&deposit>("bob", account, 2, 30);
  expect(std::max(first.get(), second.get()) == 80, "both deposits are in the balance", seed);
}

void a_lost_reply_deposits_once(unsigned long long seed) {
  Cluster cluster(seed, {"bank", "ann"}, make_registry);
  const auto account = cluster["ann"].remote<Account>("bank");
  cluster.run_until_idle();  // the account is made, and its reply has come
  const auto begun = cluster.now();
  cluster.network().link("bank", "ann").drop(FrameKind::response, 1);
  const auto balance = deposit(account, 1, 50);
  expect(balance && *balance == 50, "the second request changes nothing", seed);
  expect(cluster.now() - begun >= seconds(1), "the first reply was waited for", seed);
}

void a_late_request_is_waited_for(unsigned long long seed) {
  Cluster cluster(seed, {"bank", "ann"}, make_registry);
  const auto account = cluster["ann"].remote<Account>("bank");
  cluster.run_until_idle();
  const auto begun = cluster.now();
  cluster.network().link("ann", "bank").set_delay(milliseconds(400));
  const auto balance = deposit(account, 1, 50);
  expect(balance && *balance == 50, "the request arrives", seed);
  expect(cluster.now() - begun == milliseconds(400), "it takes as long as the link, and is sent once", seed);
}

void a_bank_that_is_cut_off_costs_a_second_for_each_request(unsigned long long seed) {
  Cluster cluster(seed, {"bank", "ann"}, make_registry);
  const auto account = cluster["ann"].remote<Account>("bank");
  cluster.run_until_idle();
  const auto begun = cluster.now();
  cluster.network().cut_off("bank");
  auto request = account.with({.timeout = seconds(1)}).rpc_async<&Account::deposit>(1, 50);
  cluster.advance(milliseconds(900));
  expect(!request.ready(), "the request is under way", seed);
  cluster.advance(milliseconds(200));
  expect(request.ready() && request.result().error().code() == Errc::timeout, "it is given up", seed);
  const auto balance = deposit(account, 1, 50);
  expect(!balance && balance.error().code() == Errc::timeout, "three more are given up", seed);
  expect(cluster.now() - begun == milliseconds(4100), "each after a second", seed);
  cluster.network().reconnect("bank");
  expect(deposit(account, 1, 50).value() == 50, "all requests together deposit once", seed);
}

void a_bank_that_dies_is_noticed_at_once(unsigned long long seed) {
  Cluster cluster(seed, {"bank", "ann"}, make_registry);
  const auto account = cluster["ann"].remote<Account>("bank");
  cluster.run_until_idle();
  const auto begun = cluster.now();
  auto under_way = account.rpc_async<&Account::deposit>(1, 50);
  cluster.network().kill("bank");
  expect(under_way.result().error().code() == Errc::peer_down, "the call under way ends", seed);
  expect(deposit(account, 2, 30).error().code() == Errc::peer_down, "a later one is refused", seed);
  expect(cluster.now() == begun, "no time-out was waited for", seed);
}

int main(int argc, char** argv) {
  const unsigned long long only = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  for (unsigned long long seed = 1; seed <= 20; ++seed) {
    const unsigned long long used = only != 0 ? only : seed;
    two_customers_lose_no_money(used);
    a_lost_reply_deposits_once(used);
    a_late_request_is_waited_for(used);
    a_bank_that_is_cut_off_costs_a_second_for_each_request(used);
    a_bank_that_dies_is_noticed_at_once(used);
    if (only != 0) break;
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
