/// `Group<T>`: one call to several objects, usually the replicas of a role, with one future; `WorkerGroup`: to several
/// workers.
///     Group<Counter> counters(context.uses<Counter>("counters"));
///     Future<std::vector<int>> sums = counters.rpc_all<&Counter::add>(1);
///     worker.group({"worker1", "worker2"}).rpc_all<&add>(1, 2);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/rpc/call_site.hpp"
#include "caftan/rpc/group_call.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan {

/// The values behind references, or, where T is void, workers (`WorkerGroup`), in a fixed order. All members are called
/// at once; the arguments are encoded once, tensors too. The time-out of CallOptions bounds each group call as a whole.
///
/// A group call fails as soon as the call of one member has failed, with the error of that call, whose text and
/// `worker()` name the member; the calls of the other members run on. A member of which it is known already that it
/// cannot be called ends the call before anything is sent to it or to a later one. `rpc_all_results` waits for all and
/// gives the outcome of each.
/// Cancelling the future of a group call cancels the calls of all members.
/// Copies are cheap. Threads: any. Autograd records a group call as the single calls.
/// Errors of all: as CallSite; bad_arguments (no members, one that is there twice, an empty reference).
/// Source: collectives of torch.distributed. Difference: one worker calls, the members only serve.
template <class T>
class Group {
 public:
  /// Makes a group of these values.
  explicit Group(const std::vector<RRef<T>>& members) requires(!std::is_void_v<T>)
      : members_(std::make_shared<const rpc::GroupMembers>(handles_of(members))) {}
  explicit Group(std::shared_ptr<const rpc::GroupMembers> members, CallOptions options = {})
      : members_(std::move(members)), options_(options) {}

  /// Returns how many members there are.
  std::size_t size() const noexcept { return members_->size(); }
  /// Returns the same group with options for its calls.
  Group with(CallOptions options) const { return Group(members_, options); }

  /// Calls F at all members with the same arguments. The future gets their results, in the order of the members (or
  /// nothing, where F returns nothing).
  template <auto F, class... A>
  auto rpc_all(const A&... arguments) const {  // no overload, no template
    return call<rpc::AllValues<ValueOf<F>>, F>(arguments...);
  }
  /// As rpc_all; the future gets the outcome of each member, value or error, when all have ended.
  template <auto F, class... A>
  auto rpc_all_results(const A&... arguments) const {  // no overload, no template
    return call<rpc::EachResult<ValueOf<F>>, F>(arguments...);
  }
  /// As rpc_all, without the results: what F returns is dropped as it arrives.
  /// Source: torch.distributed.broadcast.
  template <auto F, class... A>
  Future<void> broadcast(const A&... arguments) const {  // no overload, no template
    return call<rpc::NoValues, F>(arguments...);
  }
  /// Calls F one way at all members, as CallSite::tell. A member that cannot be called does not keep the others from
  /// the call. Errors (thrown; try_tell returns them): the first error in the order of the members.
  template <auto F, class... A>
  void tell(const A&... arguments) const {  // no overload, no template
    try_tell<F>(arguments...).value();
  }
  template <auto F, class... A>
  Result<void> try_tell(const A&... arguments) const {  // no overload, no template
    check_callable<F>();
    if (members_->refused()) return *members_->refused();
    const std::vector<rpc::CallTarget> targets = members_->targets(options_);
    return rpc::tell_members(*members_, targets, rpc::find_group_key<F, T>(targets), typename TypesOf<F>::Wire{},
                             arguments...);
  }
  /// Calls F at each member with its own element: that of the same place. All elements are encoded before the first is
  /// sent. The future gets the results, in the order of the members.
  /// Errors: as all; bad_arguments (not one element for each member).
  /// Source: torch.distributed.scatter.
  template <auto F, class E>
  auto scatter(const std::vector<E>& elements) const {
    return scatter_of<F>(elements);
  }
  /// Fetches the values themselves, in the order of the members. Errors: as all; unsupported, rref_deleted.
  /// Source: torch.distributed.gather. For the results of a function: rpc_all.
  auto gather() const requires(!std::is_void_v<T>) {
    static_assert(rpc::enable_sending<rpc::Stored<T>>,
                  "the values of this group cannot travel, since they have no serialize: rpc_all gathers the results "
                  "of a method");
    return fetch_all();
  }
  /// Calls F at all members and folds their results in the order of the members: `op(op(first, second), third)`. The
  /// future gets the total.
  /// @param op  associative: `std::plus<>()`; runs on a runner of this worker. What it throws is a user_error
  /// Source: torch.distributed.reduce.
  template <auto F, class Op, class... A>
  auto reduce(Op op, const A&... arguments) const {
    using R = ValueOf<F>;
    const auto state = std::make_shared<rpc::StagedState<R>>(caller());
    fold<F, R>(
        state, std::move(op), [state](Result<R> total) { state->complete(std::move(total)); }, arguments...);
    return Future<R>(state);
  }
  /// As reduce, and then calls `Take` at all members with the total. The future gets the total when all have taken it.
  /// A member that fails in the second step leaves others with the total. The time-out bounds both steps together.
  ///     group.all_reduce<&Model::loss, &Model::set_mean_loss>(std::plus<>());
  /// Source: torch.distributed.all_reduce.
  template <auto F, auto Take, class Op, class... A>
  auto all_reduce(Op op, const A&... arguments) const {
    using R = ValueOf<F>;
    const auto state = std::make_shared<rpc::StagedState<R>>(caller());
    const auto hand_over = [state, group = *this, begun = rpc::now_of(caller())](Result<R> total) {
      if (!total) return static_cast<void>(state->complete(total.error()));
      const Result<CallOptions> rest = rpc::rest_of(group.options_, group.caller(), begun);
      if (!rest) return static_cast<void>(state->complete(rest.error()));
      Future<void> taken = group.with(*rest).template broadcast<Take>(*total);
      state->set_stage(taken.state());
      std::move(taken)
          .then([state, total = *std::move(total)](Result<void> done) mutable {
            state->complete(done ? Result<R>(std::move(total)) : Result<R>(done.error()));
          })
          .forget();
    };
    fold<F, R>(state, std::move(op), hand_over, arguments...);
    return Future<R>(state);
  }

 private:
  template <auto F>
  using TypesOf = rpc::CallTypes<decltype(F)>;
  template <auto F>
  using ValueOf = typename TypesOf<F>::Value;

  static std::vector<std::shared_ptr<rpc::RRefHandle>> handles_of(const std::vector<RRef<T>>& members) requires(
      !std::is_void_v<T>) {
    std::vector<std::shared_ptr<rpc::RRefHandle>> handles;
    for (const RRef<T>& member : members) handles.push_back(member.handle());
    return handles;
  }

  template <auto F>
  static constexpr void check_callable() {
    if constexpr (std::is_void_v<T>) {
      static_assert(rpc::kIsFunction<decltype(F)>,
                    "a group of workers is called by functions; methods are called on a Group of references");
    } else {
      static_assert(!rpc::kIsFunction<decltype(F)>,
                    "a group of references is called by methods; functions are called on worker.group({...})");
      static_assert(std::is_base_of_v<typename TypesOf<F>::Traits::Class, T>,
                    "this is not a method of the referenced type");
    }
    static_assert(rpc::enable_sending<rpc::Stored<ValueOf<F>>>,
                  "the result of this function cannot travel, since it has no serialize");
  }

  std::weak_ptr<rpc::Caller> caller() const {
    if (members_->refused()) return {};
    const std::vector<rpc::CallTarget> targets = members_->targets(options_);
    const rpc::CallTarget* const any = rpc::first_callable(targets);
    return any ? any->caller : nullptr;
  }

  template <class Take, auto F, class... A>
  Future<typename Take::Value> call(const A&... arguments) const {
    check_callable<F>();
    if (members_->refused()) return make_ready_future<typename Take::Value>(*members_->refused());
    const std::vector<rpc::CallTarget> targets = members_->targets(options_);
    return rpc::call_members<Take>(members_, targets, rpc::find_group_key<F, T>(targets), typename TypesOf<F>::Wire{},
                                   arguments...);
  }

  template <auto F, class E>
  Future<rpc::Values<ValueOf<F>>> scatter_of(const std::vector<E>& elements) const {
    check_callable<F>();
    using Take = rpc::AllValues<ValueOf<F>>;
    using Value = typename Take::Value;
    if (members_->refused()) return make_ready_future<Value>(*members_->refused());
    if (const Result<void> fits = members_->check_elements(elements.size()); !fits) {
      return make_ready_future<Value>(fits.error());
    }
    const std::vector<rpc::CallTarget> targets = members_->targets(options_);
    return rpc::scatter_to_members<Take>(members_, targets, rpc::find_group_key<F, T>(targets),
                                         typename TypesOf<F>::Wire{}, elements);
  }

  Future<rpc::Values<T>> fetch_all() const {
    using Take = rpc::AllValues<T>;
    if (members_->refused()) return make_ready_future<typename Take::Value>(*members_->refused());
    const std::vector<rpc::CallTarget> targets = members_->targets(options_);
    return rpc::fetch_members<Take>(members_, targets);
  }

  /// Calls F at all members and gives `done` the folded results, or the error.
  template <auto F, class R, class Op, class Done, class... A>
  void fold(const std::shared_ptr<rpc::StagedState<R>>& state, Op op, Done done, const A&... arguments) const {
    static_assert(!std::is_void_v<R>, "a function that returns nothing has nothing to reduce");
    static_assert(std::is_invocable_r_v<R, Op&, R, R>, "op takes two results of the function and returns one");
    Future<std::vector<R>> all = call<rpc::AllValues<R>, F>(arguments...);
    state->set_stage(all.state());
    std::move(all)
        .then([op = std::move(op), done = std::move(done)](Result<std::vector<R>> results) mutable {
          if (!results) return done(Result<R>(results.error()));
          done(rpc::run_user_code(
              {}, "reduce",
              [&]() -> R {
                R total = std::move(results->front());
                for (std::size_t i = 1; i < results->size(); ++i) {
                  total = op(std::move(total), std::move((*results)[i]));
                }
                return total;
              },
              Errc::user_error));
        })
        .forget();
  }

  std::shared_ptr<const rpc::GroupMembers> members_;
  CallOptions options_;
};

}  // namespace caftan
