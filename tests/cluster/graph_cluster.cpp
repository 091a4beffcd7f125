#include "graph_cluster.hpp"

#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "caftan/autograd/context.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/testing/network.hpp"
#include "pass_frames.hpp"

namespace caftan::test {
namespace {

using autograd::Context;
using autograd::test::LeafGradients;
using autograd::test::Program;

/// All workers are in this process, so calls can name code and results by address.
using Address = std::uint64_t;
Address address_of(const void* object) { return reinterpret_cast<Address>(object); }
template <class T>
T& at_address(Address address) {
  return *reinterpret_cast<T*>(address);
}

using Code = std::function<void()>;
using Tensors = std::vector<at::Tensor>;

/// A call at `worker` that runs as long as the program, and executes all code that run() gives it.
class Seat {
 public:
  explicit Seat(Worker& worker) : worker_(worker) { wait_for_more(); }

  /// Runs `code` inside of the call that this seat keeps open at its worker, and waits until the code has ended.
  /// Threads: any but the one that serves the call.
  void run(const Code& code) {
    done_ = Promise<void>(worker_.caller());
    Future<void> done = done_.future();
    hand_over(&code);
    std::move(done).get();
  }
  void end() { hand_over(nullptr); }

  void serve() {
    for (;;) {
      std::move(handed_).get();
      const Code* const code = code_;
      if (!code) return;
      wait_for_more();
      (*code)();
      done_.set(ok_);
    }
  }

 private:
  void hand_over(const Code* code) {
    code_ = code;
    more_.set(ok_);
  }
  void wait_for_more() {
    more_ = Promise<void>(worker_.caller());
    handed_ = more_.future();
  }

  Worker& worker_;
  const Result<void> ok_;  // a member, because g++ 12 warns of a temporary as uninitialized
  const Code* code_ = nullptr;
  Promise<void> more_;
  Future<void> handed_;
  Promise<void> done_;
};

void run_code(Address code) { at_address<const Code>(code)(); }
void serve(Address seat) { at_address<Seat>(seat).serve(); }
void put(Address where, const Tensors& tensors) { at_address<Tensors>(where) = tensors; }
Tensors get(Address from) { return at_address<const Tensors>(from); }
void fetch(Worker& worker, const std::string& from, Address sent, Address came) {
  at_address<Tensors>(came) = worker.rpc_sync<&get>(from, sent);
}

Registry make_registry() {
  Registry registry;
  registry.add<&run_code>("run_code");
  registry.add<&serve>("serve");
  registry.add<&put>("put");
  registry.add<&get>("get");
  registry.add<&fetch>("fetch");
  return registry;
}

std::vector<std::string> names(int workers) {
  std::vector<std::string> names;
  for (int i = 0; i < workers; ++i) names.push_back("worker" + std::to_string(i));
  return names;
}

class GraphCluster final : public autograd::test::Hops {
 public:
  GraphCluster(int workers, Spans spans, std::uint64_t order)
      : names_(names(workers)), spans_(spans), cluster_(order, names_, &make_registry) {
    for (int i = 0; i < workers; ++i) seats_.push_back(std::make_unique<Seat>(cluster_[i]));
  }

  GraphRun run(const autograd::test::Case& one) {
    {
      const Context context(cluster_[0]);
      const Program program = record(one);
      trace();
      context.backward(program.roots, {.retain_graph = true});
      net_.filter_all(nullptr);
      run_.gradients = collect(program);
      count_recorded();
      run_.fast = context.try_backward(program.roots, {.mode = autograd::Mode::fast});
      run_.both = collect(program);
    }
    cluster_.run_until_idle();
    for (std::size_t i = 0; i < names_.size(); ++i) run_.left += cluster_[i].autograd_contexts().size();
    return std::move(run_);
  }

 private:
  Program record(const autograd::test::Case& one) {
    if (spans_ == Spans::calls) return one.run(*this);
    std::vector<Future<void>> calls;
    for (std::size_t i = 1; i < names_.size(); ++i) {
      calls.push_back(cluster_[0].rpc_async<&serve>(names_[i], address_of(seats_[i].get())));
    }
    Program program = one.run(*this);
    for (std::size_t i = 1; i < names_.size(); ++i) seats_[i]->end();
    for (Future<void>& call : calls) std::move(call).get();
    return program;
  }

  void run_span(int worker, std::uint64_t key, const Code& code) override {
    // The creator's own code is a span, too, and so is each call that the creator makes to itself.
    if (worker == 0 && (spans_ == Spans::one_each || key % 2 == 0)) return code();
    if (spans_ == Spans::one_each) return seats_[worker]->run(code);
    call(worker, code);
  }

  Tensors move(int from, int to, const Tensors& tensors, std::uint64_t order_key) override {
    Tensors came;
    if (spans_ == Spans::one_each || order_key % 2 == 0) {
      cluster_[from].rpc_sync<&put>(names_[to], address_of(&came), tensors);
    } else {
      cluster_[from].rpc_sync<&fetch>(names_[to], names_[from], address_of(&tensors), address_of(&came));
    }
    return came;
  }

  void call(int worker, const Code& code) { cluster_[0].rpc_sync<&run_code>(names_[worker], address_of(&code)); }

  void trace() {
    for (const std::string& from : names_) {
      for (const std::string& to : names_) {
        if (from == to) continue;
        net_.link(from, to).set_filter([this, from, to](const testing::Frame& frame) {
          const auto message = pass_message(frame);
          if (!message) return true;
          run_.trace.push_back(from + " -> " + to + ": " + to_string(*message));
          if (!std::holds_alternative<autograd::Grad>(*message)) return true;
          ++run_.marked;
          reached_.insert(to);
          run_.returned += to == "worker0" ? 1 : 0;
          return true;
        });
      }
    }
  }

  LeafGradients collect(const Program& program) {
    LeafGradients all;
    for (std::size_t worker = 0; worker < program.leaves.size(); ++worker) {
      autograd::Gradients gradients;
      call(static_cast<int>(worker), [&] { gradients = Context::current(cluster_[worker]).gradients(); });
      all.emplace_back();
      for (const at::Tensor& leaf : program.leaves[worker]) {
        all.back().push_back(leaf.grad().defined() ? at::Tensor() : gradients.of(leaf));  // Row 16.05
      }
    }
    return all;
  }

  void count_recorded() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (const autograd::ContextInfo& info : cluster_[i].autograd_contexts()) {
        run_.recorded += info.sent;
        if (reached_.count(names_[i]) > 0) run_.awaited += info.sent;
      }
    }
  }

  const std::vector<std::string> names_;
  const Spans spans_;
  std::set<std::string> reached_{"worker0"};  // by the pass
  GraphRun run_;  // run_ and reached_ are declared before net_, because its filters use them
  testing::Cluster cluster_;
  testing::Network& net_ = cluster_.network();
  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace

GraphRun run_over_cluster(const autograd::test::Case& one, Spans spans, std::uint64_t order) {
  return GraphCluster(one.workers, spans, order).run(one);
}

}  // namespace caftan::test
