/// What the RRef tests register on each worker: a counter, and a shelf where references stay beyond a call.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "caftan/tensor/operators.hpp"
#include "caftan/testing/cluster.hpp"

namespace caftan::test {

class Counter {
 public:
  explicit Counter(int start) : value_(start) {
    if (start < 0) throw std::invalid_argument("a counter starts at 0 or above");
  }
  int add(int n) { return value_ += n; }
  int value() const { return value_; }

 private:
  int value_;
};

class Shelf {
 public:
  void put(const RRef<int>& rref) { kept_.push_back(rref); }
  int read_all() const {
    int sum = 0;
    for (const auto& rref : kept_) sum += rref.to_here();
    return sum;
  }
  RRef<int> first() const { return kept_.at(0); }
  bool all_confirmed() const {
    for (const auto& rref : kept_) {
      if (!rref.confirmed_by_owner()) return false;
    }
    return true;
  }
  /// Puts the first reference of this shelf on another shelf.
  void give_first_to(const RRef<Shelf>& other) const { other.rpc_sync<&Shelf::put>(kept_.at(0)); }
  void clear() { kept_.clear(); }

 private:
  std::vector<RRef<int>> kept_;
};

inline int add(int a, int b) { return a + b; }
inline int weigh(const at::Tensor& tensor) { return static_cast<int>(tensor.numel()); }
inline int fails(int) { throw std::runtime_error("no luck"); }
/// Makes a value at `owner` and returns the reference.
inline RRef<int> make_at(Worker& worker, const std::string& owner, int value) {
  return worker.remote<&add>(owner, value, 0);
}
/// Makes the callee the owner.
inline RRef<int> make_here(Worker& worker, int value) { return worker.make_rref(value); }
inline int fetch(const RRef<int>& rref) { return rref.to_here(); }
inline int fetch_both(const RRef<int>& a, const RRef<int>& b) { return a.to_here() + b.to_here(); }
inline bool is_owner(const RRef<int>& rref) { return rref.is_owner(); }
inline int read_local(const RRef<int>& rref) { return *rref.local_value(); }
inline int bump(const RRef<Counter>& counter, int n) { return counter.rpc_sync<&Counter::add>(n); }
/// Hands the reference on from worker to worker, then reads it at the end.
inline int pass_on(Worker& worker, const RRef<int>& rref, std::vector<std::string> way) {
  if (way.empty()) return rref.to_here();
  const std::string next = way.back();
  way.pop_back();
  return worker.rpc_sync<&pass_on>(next, rref, way);
}
inline RRef<int> echo(const RRef<int>& rref) { return rref; }

/// While a gate exists, calls of `wait_for_gate` wait until the gate is opened. At most one gate exists at a time.
class Gate {
 public:
  Gate() { current() = this; }
  ~Gate() { current() = nullptr; }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  static Gate*& current() {
    static Gate* gate = nullptr;
    return gate;
  }
  void open() {
    for (Promise<void>& promise : std::exchange(waiting_, {})) promise.set({});
  }
  Future<void> wait() { return waiting_.emplace_back().future(); }

 private:
  std::vector<Promise<void>> waiting_;
};
inline Future<int> wait_for_gate(int value) {
  return Gate::current()->wait().then([value](Result<void>) { return value; });
}

inline Registry make_rref_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<&weigh>("weigh");
  registry.add<&fails>("fails");
  registry.add<&make_at>("make_at");
  registry.add<&make_here>("make_here");
  registry.add<&fetch>("fetch");
  registry.add<&fetch_both>("fetch_both");
  registry.add<&is_owner>("is_owner");
  registry.add<&read_local>("read_local");
  registry.add<&bump>("bump");
  registry.add<&pass_on>("pass_on");
  registry.add<&echo>("echo");
  registry.add<&wait_for_gate>("wait_for_gate");
  registry.add<Counter>("counter").constructor<int>().method<&Counter::add>("add").method<&Counter::value>("value");
  registry.add<Shelf>("shelf")
      .constructor<>()
      .method<&Shelf::put>("put")
      .method<&Shelf::read_all>("read_all")
      .method<&Shelf::first>("first")
      .method<&Shelf::all_confirmed>("all_confirmed")
      .method<&Shelf::give_first_to>("give_first_to")
      .method<&Shelf::clear>("clear");
  return registry;
}

/// Returns how many references of each worker are alive: "owner/user owner/user ...".
inline std::string live(testing::Cluster& cluster, std::size_t workers) {
  std::string text;
  for (std::size_t i = 0; i < workers; ++i) {
    const auto counters = cluster[i].counters();
    text += (i == 0 ? "" : " ") + std::to_string(counters.owner_rrefs) + "/" + std::to_string(counters.user_rrefs);
  }
  return text;
}

}  // namespace caftan::test
