/// The part of group calls that does not depend on what is called: the members, the replies of all of them, and calls
/// one after the other behind one future. Users start with group.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/rpc/call.hpp"
#include "caftan/rpc/wait.hpp"

namespace caftan::rpc {

/// The members of a group in their order, and how they are called. Threads: any; constant.
class GroupMembers {
 public:
  /// Members that are called by functions. @param peers  of the worker `caller`
  GroupMembers(std::weak_ptr<Caller> caller, std::vector<Peer> peers);
  /// Members that are the values of references.
  explicit GroupMembers(std::vector<std::shared_ptr<RRefHandle>> objects);

  /// Returns how many members there are.
  std::size_t size() const noexcept { return members_.size(); }
  /// Returns why no group call can be made: bad_arguments (no members, one that is there twice, an empty reference).
  const std::optional<Error>& refused() const noexcept { return refused_; }
  /// Returns the name of the worker that is, or has, that member. Precondition: not refused, member < size().
  const std::string& name(std::size_t member) const;
  /// Returns how each member is called. Precondition: not refused.
  std::vector<CallTarget> targets(const CallOptions& options) const;
  /// Returns `error` of a call to that member with the member's name, its place in the group and `what`.
  Error of_member(std::size_t member, std::string_view what, const Error& error) const;
  /// Returns bad_arguments unless there is one element for each member.
  Result<void> check_elements(std::size_t elements) const;

 private:
  struct Member {
    Peer peer;                           // of a function's
    std::shared_ptr<RRefHandle> object;  // of a method's
  };
  std::weak_ptr<Caller> caller_;
  std::vector<Member> members_;
  std::optional<Error> refused_;
};

/// Gets the reply of each member of a group call.
class GroupSink {
 public:
  /// Called exactly once for each member, as ReplySink::on_reply.
  virtual void on_member_reply(std::size_t member, Result<InPayload> reply) = 0;

 protected:
  ~GroupSink() = default;
};

/// The sink of one member's reply.
class MemberSink final : public ReplySink {
 public:
  MemberSink(GroupSink& group, std::size_t member) : group_(group), member_(member) {}
  void on_reply(Result<InPayload> reply) override { group_.on_member_reply(member_, std::move(reply)); }

 private:
  GroupSink& group_;
  const std::size_t member_;
};

/// What becomes of the replies of all members: their values, or the first error. The other kinds have the same names.
template <class R>
struct AllValues {
  /// The value of the group call's future.
  using Value = Values<R>;
  /// Whether the call ends with the first error; else when all have replied.
  static constexpr bool kFailsAtOnce = true;
  /// Whether replies are kept for `take`.
  static constexpr bool kKeepsReplies = true;
  /// Decodes the replies. @param named  makes the error of a member from its place and the error
  template <class Named>
  static Result<Value> take(std::vector<Result<InPayload>>& replies, const Named& named) {
    if constexpr (std::is_void_v<R>) {
      for (std::size_t i = 0; i < replies.size(); ++i) {
        if (const Result<void> one = decode_reply<void>(*replies[i]); !one) return named(i, one.error());
      }
      return {};
    } else {
      std::vector<R> values;
      values.reserve(replies.size());
      for (std::size_t i = 0; i < replies.size(); ++i) {
        Result<R> one = decode_reply<R>(*replies[i]);
        if (!one) return named(i, one.error());
        values.push_back(*std::move(one));
      }
      return values;
    }
  }
};
/// Every outcome.
template <class R>
struct EachResult {
  /// As AllValues::Value.
  using Value = std::vector<Result<R>>;
  /// As AllValues::kFailsAtOnce.
  static constexpr bool kFailsAtOnce = false;
  /// As AllValues::kKeepsReplies.
  static constexpr bool kKeepsReplies = true;
  /// As AllValues::take.
  template <class Named>
  static Result<Value> take(std::vector<Result<InPayload>>& replies, const Named& named) {
    Value results;
    results.reserve(replies.size());
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (!replies[i]) {
        results.push_back(replies[i].error());
        continue;
      }
      Result<R> one = decode_reply<R>(*replies[i]);
      results.push_back(one ? std::move(one) : Result<R>(named(i, one.error())));
    }
    return results;
  }
};
/// Only whether all have succeeded; results are dropped as they come.
struct NoValues {
  /// As AllValues::Value.
  using Value = void;
  /// As AllValues::kFailsAtOnce.
  static constexpr bool kFailsAtOnce = true;
  /// As AllValues::kKeepsReplies.
  static constexpr bool kKeepsReplies = false;
  /// As AllValues::take.
  template <class Named>
  static Result<void> take(std::vector<Result<InPayload>>&, const Named&) {
    return {};
  }
};

/// The state of a group call: that of its future, and the sinks of all replies. The replies are decoded by the thread
/// that first reads the result, as those of other calls are.
template <class Take>
class GroupState final : public FutureState<typename Take::Value>, public GroupSink {
 public:
  GroupState(std::weak_ptr<Caller> caller, std::shared_ptr<const GroupMembers> members, const OutRequest& request)
      : FutureState<typename Take::Value>(std::move(caller)),
        members_(std::move(members)),
        what_(request.what),
        what_owner_(request.what_owner),
        tokens_(members_->size()),
        left_(members_->size()) {
    replies_.reserve(members_->size());
    sinks_.reserve(members_->size());
    for (std::size_t i = 0; i < members_->size(); ++i) {
      replies_.emplace_back(InPayload());
      sinks_.emplace_back(*this, i);
    }
  }

  /// Returns the sink of that member's reply, which keeps this state.
  std::shared_ptr<ReplySink> sink(std::size_t member) {
    return {std::static_pointer_cast<GroupState>(this->shared_from_this()), &sinks_[member]};
  }
  /// As CallState::set_token.
  void set_token(std::size_t member, CallToken token) noexcept { tokens_[member] = std::move(token); }

  void on_member_reply(std::size_t member, Result<InPayload> reply) override {
    if (!reply) {
      reply = members_->of_member(member, what_, reply.error());
      if (Take::kFailsAtOnce) this->complete(reply.error());
    } else if (Take::kKeepsReplies) {
      reply->keep_body();
    }
    if (Take::kKeepsReplies) replies_[member] = std::move(reply);
    if (left_.fetch_sub(1) != 1) return;
    base::UniqueLock lock(this->mutex_);
    if (this->ready()) return;
    auto after = this->mark_undecoded();
    lock.unlock();
    this->follow_up(std::move(after));
  }

  bool cancel() override {
    if (!FutureState<typename Take::Value>::cancel()) return false;
    for (const CallToken& token : tokens_) cancel_request(this->caller(), token);
    return true;
  }

  /// The last member that was called replies last, as a rule: a thread that waits reads its replies.
  std::shared_ptr<base::ReadableSource> source() const override { return tokens_.back().source.lock(); }

 private:
  bool ends_by_complete() const noexcept override { return false; }
  Result<typename Take::Value> decode() override {
    return Take::take(
        replies_, [&](std::size_t member, const Error& error) { return members_->of_member(member, what_, error); });
  }
  void report_unobserved() noexcept override {
    report_unobserved_error(this->caller(), what_, this->outcome().error());
  }

  const std::shared_ptr<const GroupMembers> members_;
  const std::string_view what_;
  const std::shared_ptr<const std::string> what_owner_;
  std::vector<CallToken> tokens_;
  std::vector<MemberSink> sinks_;
  std::vector<Result<InPayload>> replies_;  // each is written once, by the thread that brings the reply
  std::atomic<std::size_t> left_;
};

/// Returns the first target that can be called; null if none can.
const CallTarget* first_callable(std::span<const CallTarget> targets);
/// Moves the body of a request that is packed to where all requests of the group call share it.
void share_arguments(OutRequest& request);
/// Returns the request of one member: what all have in common, and its own object.
OutRequest request_for(const OutRequest& common, const CallTarget& target);

/// Sends one request to each member, in their order. A call that fails at once as a whole is not sent to the members
/// that are left then.
/// @param make  returns the request of a member
template <class Take, class Make>
Future<typename Take::Value> send_to_members(const std::shared_ptr<const GroupMembers>& members,
                                             std::span<const CallTarget> targets, const OutRequest& common,
                                             const Make& make) {
  const CallTarget* const any = first_callable(targets);
  auto state = std::make_shared<GroupState<Take>>(any ? any->caller : nullptr, members, common);
  for (std::size_t i = 0; Take::kFailsAtOnce && i < targets.size(); ++i) {
    if (!targets[i].peer) state->complete(members->of_member(i, common.what, targets[i].peer.error()));
  }
  for (std::size_t i = 0; i < targets.size() && !state->ready(); ++i) {
    if (!targets[i].peer) {
      state->on_member_reply(i, targets[i].peer.error());
    } else {
      state->set_token(i, start_call(targets[i], make(i), state->sink(i)));
    }
  }
  return Future<typename Take::Value>(std::move(state));
}

/// Returns the key of F as find_key does, for a call by any of the targets. Errors: as find_key; that of the first
/// target, if none can be called.
template <auto F, class Class>
Result<const FunctionKey*> find_group_key(std::span<const CallTarget> targets) {
  const CallTarget* const any = first_callable(targets);
  return find_key<F, Class>(any ? *any : targets.front());
}

/// Fills what the requests of all members have in common, without arguments. Where no member can be called, only the
/// name: nothing is sent then.
Result<void> fill_common(OutRequest& request, std::span<const CallTarget> targets, const FunctionKey& key);
/// As fill_common, for fetches of the members' values.
Result<void> fill_fetches(OutRequest& request, std::span<const CallTarget> targets);

/// Calls the function `key` of each member with the same arguments, which are encoded once.
template <class Take, class... P, class... A>
Future<typename Take::Value> call_members(const std::shared_ptr<const GroupMembers>& members,
                                          std::span<const CallTarget> targets, const Result<const FunctionKey*>& key,
                                          TypeList<P...> types, const A&... arguments) {
  using Value = typename Take::Value;
  if (!key) return make_ready_future<Value>(key.error());
  OutRequest request;
  Result<void> done = fill_common(request, targets, **key);
  if (done) done = pack_arguments(types, request, arguments...);
  if (!done) return make_ready_future<Value>(done.error());
  share_arguments(request);
  return send_to_members<Take>(members, targets, request,
                               [&](std::size_t member) { return request_for(request, targets[member]); });
}

/// Calls the function `key` of each member with its own element. Precondition: one element for each member.
template <class Take, class... P, class E>
Future<typename Take::Value> scatter_to_members(const std::shared_ptr<const GroupMembers>& members,
                                                std::span<const CallTarget> targets,
                                                const Result<const FunctionKey*>& key, TypeList<P...> types,
                                                const std::vector<E>& elements) {
  using Value = typename Take::Value;
  if (!key) return make_ready_future<Value>(key.error());
  OutRequest common;
  if (const Result<void> done = fill_common(common, targets, **key); !done) {
    return make_ready_future<Value>(done.error());
  }
  std::vector<OutRequest> requests;
  requests.reserve(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    requests.push_back(request_for(common, targets[i]));
    const E& element = elements[i];
    if (const Result<void> packed = pack_arguments(types, requests.back(), element); !packed) {
      return make_ready_future<Value>(members->of_member(i, common.what, packed.error()));
    }
  }
  return send_to_members<Take>(members, targets, common,
                               [&](std::size_t member) { return std::move(requests[member]); });
}

/// Sends a request that is packed to all members one way.
/// Errors: the first one in the order of the members; the others get the request.
Result<void> send_tells(const GroupMembers& members, std::span<const CallTarget> targets, OutRequest&& request);

/// Calls the function `key` of each member one way with the same arguments, which are encoded once.
template <class... P, class... A>
Result<void> tell_members(const GroupMembers& members, std::span<const CallTarget> targets,
                          const Result<const FunctionKey*>& key, TypeList<P...> types, const A&... arguments) {
  if (!key) return key.error();
  OutRequest request;
  Result<void> done = fill_common(request, targets, **key);
  if (done) done = pack_arguments(types, request, arguments...);
  return done ? send_tells(members, targets, std::move(request)) : done;
}

/// Fetches the value of each member.
template <class Take>
Future<typename Take::Value> fetch_members(const std::shared_ptr<const GroupMembers>& members,
                                           std::span<const CallTarget> targets) {
  OutRequest common;
  if (const Result<void> done = fill_fetches(common, targets); !done) {
    return make_ready_future<typename Take::Value>(done.error());
  }
  return send_to_members<Take>(members, targets, common,
                               [&](std::size_t member) { return request_for(common, targets[member]); });
}

/// A future of two calls, one after the other: cancelling it cancels the one that is under way.
template <class T>
class StagedState final : public FutureState<T> {
 public:
  using FutureState<T>::FutureState;

  /// `stage` is under way from now on.
  void set_stage(const std::shared_ptr<FutureCore>& stage) {
    {
      const base::LockGuard lock(stage_mutex_);
      stage_ = stage;
    }
    if (this->ready()) stage->cancel();
  }
  bool cancel() override {
    if (!FutureState<T>::cancel()) return false;
    std::shared_ptr<FutureCore> stage;
    {
      const base::LockGuard lock(stage_mutex_);
      stage = stage_.lock();
    }
    if (stage) stage->cancel();
    return true;
  }

 private:
  base::Mutex stage_mutex_;
  std::weak_ptr<FutureCore> stage_ CAFTAN_GUARDED_BY(stage_mutex_);
};

/// Returns `options` with the time that is left of their time-out. @param begun  when the first call began
/// Errors: timeout.
Result<CallOptions> rest_of(const CallOptions& options, const std::weak_ptr<Caller>& caller, base::TimePoint begun);
/// Returns the time of the worker's clock.
base::TimePoint now_of(const std::weak_ptr<Caller>& caller);

}  // namespace caftan::rpc
