#include "caftan/optim/distributed_optimizer.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "caftan/rpc/wait.hpp"
#include "distributed_state.hpp"
#include "option_check.hpp"

namespace caftan::optim {
namespace {

Error moved_away() { return Error(Errc::bad_arguments, "this optimizer was moved away"); }

std::string name_of(std::size_t number) { return "parameter " + std::to_string(number); }

Result<void> check_options(const StepOptions& options) {
  return OptionCheck("StepOptions")
      .not_negative("clip_norm", options.clip_norm)
      .not_negative("clip_value", options.clip_value)
      .result();
}

/// Checks the names of all parameters. Errors: bad_arguments (some have none, or one comes twice).
Result<void> check_names(const std::vector<RemoteParameterGroup>& groups) {
  std::unordered_set<std::string_view> known;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<std::string>& names = groups[g].names;
    if (names.empty() != groups[0].names.empty() || (!names.empty() && names.size() != groups[g].parameters.size())) {
      return Error(Errc::bad_arguments, "group " + std::to_string(g) + " has " + std::to_string(names.size()) +
                                            " names for " + std::to_string(groups[g].parameters.size()) +
                                            " parameters: name all parameters of all groups, or none");
    }
    for (const std::string& name : names) {
      if (known.insert(name).second) continue;
      return Error(Errc::bad_arguments, "two parameters have the name " + name + ": give each its own");
    }
  }
  return {};
}

/// Divides the parameters of all groups into shares, one for each owner.
/// Errors: bad_arguments (options, an empty reference, a parameter that is listed twice); what a reference failed of.
Result<std::vector<Share>> divide(const std::vector<RemoteParameterGroup>& groups, double clip_value) {
  if (Result<void> named = check_names(groups); !named) return named.error();
  std::vector<Share> shares;
  std::unordered_map<RRefId, std::size_t> numbers;
  std::size_t number = 0;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (Result<void> fits = check_options(groups[g].algorithm); !fits) return fits.error();
    for (std::size_t i = 0; i < groups[g].parameters.size(); ++i) {
      const RRef<at::Tensor>& parameter = groups[g].parameters[i];
      if (!parameter) return Error(Errc::bad_arguments, name_of(number) + " is an empty RRef");
      if (const auto failed = parameter.failed()) {
        return Error(failed->code(), failed->worker(), name_of(number) + ": " + failed->text());
      }
      if (const auto [known, is_new] = numbers.emplace(parameter.id(), number); !is_new) {
        return Error(Errc::bad_arguments, name_of(number) + " is the same reference as " + name_of(known->second) +
                                              ", it would be stepped twice: list each parameter once");
      }
      const Peer owner = parameter.owner();
      auto share =
          std::find_if(shares.begin(), shares.end(), [&](const Share& s) { return s.peer.id() == owner.id(); });
      if (share == shares.end()) share = shares.insert(shares.end(), Share{owner, {{}, clip_value}, {}, {}, {}});
      if (share->groups.empty() || share->groups.back() != g) {
        share->groups.push_back(g);
        share->spec.groups.push_back({{}, groups[g].algorithm});
      }
      share->spec.groups.back().parameters.push_back(parameter);
      share->numbers.push_back(number++);
      if (!groups[g].names.empty()) share->names.push_back(groups[g].names[i]);
    }
  }
  if (shares.empty()) return Error(Errc::bad_arguments, "an optimizer without a parameter");
  return shares;
}

/// Adds the owner's name and the numbers of its parameters in the user's list: an owner numbers only its own.
Error refused_by(const Share& share, const Error& error) {
  const Error placed = error.at(share.peer.name());
  return Error(error.code(), placed.worker(),
               error.text() + " (of the parameters at " + share.peer.name() + numbers_of(share.numbers) + ")");
}

/// Checks what an algorithm that needs a closure wants of all groups and owners together.
Result<void> check_closure(const std::vector<RemoteParameterGroup>& groups, const std::vector<Share>& shares,
                           const StepOptions& options) {
  const auto closed = std::find_if(groups.begin(), groups.end(),
                                   [](const RemoteParameterGroup& group) { return needs_closure(group.algorithm); });
  if (closed == groups.end()) return {};
  const std::string name(name_of(closed->algorithm));
  const auto refuse = [&name](const std::string& why) { return Error(Errc::bad_arguments, name + " " + why); };
  if (groups.size() > 1) {
    return refuse("steps all parameters together: give it one group, here are " + std::to_string(groups.size()));
  }
  if (shares.size() > 1) {
    return refuse("needs all parameters at one owner; they are at " + shares[0].peer.name() + " and " +
                  shares[1].peer.name() + ": use another algorithm, or an optimizer for each owner");
  }
  if (options.clip_norm > 0 || options.clip_value > 0) {
    return refuse("takes no clipped gradients, which do not belong to its loss: leave clip_norm and clip_value out");
  }
  return {};
}

}  // namespace

Result<DistributedOptimizer> DistributedOptimizer::try_make(const CallSite& site,
                                                            const std::vector<RemoteParameterGroup>& groups,
                                                            const StepOptions& options) {
  if (Result<void> fits = check_options(options); !fits) return fits.error();
  auto caller = site.alive();
  if (!caller) return caller.error();
  auto shares = divide(groups, options.clip_value);
  if (!shares) return shares.error();
  if (Result<void> fits = check_closure(groups, *shares, options); !fits) return fits.error();
  std::vector<Future<RRef<RemoteOptimizer>>> futures;
  {
    // The optimizer may be made inside of a context and lives longer, so it is made as a part of none.
    Ambient ambient = outside_contexts();
    const AmbientSwap swap(&ambient);
    const CallSite calls = site.with({.timeout = options.timeout, .fail_when_full = false});
    for (const Share& share : *shares) futures.push_back(calls.rpc_async(kMakeOptimizer, share.peer, share.spec));
  }
  std::vector<Owner> owners;
  std::optional<Error> refused;
  for (std::size_t i = 0; i < futures.size(); ++i) {
    const Share& share = (*shares)[i];
    auto made = std::move(futures[i]).result();
    if (made) {
      owners.push_back({{share.peer.name(), share.groups, share.numbers, share.names}, *std::move(made), {}});
    } else if (!refused) {
      refused = refused_by(share, made.error());
    }
  }
  if (refused) return *std::move(refused);
  std::vector<Algorithm> algorithms;
  for (const RemoteParameterGroup& group : groups) algorithms.push_back(group.algorithm);
  return DistributedOptimizer(std::make_shared<State>(*caller, std::move(owners), std::move(algorithms), options));
}

Future<StepReport> DistributedOptimizer::step_async(const autograd::ContextView& context) {
  if (!state_) return make_ready_future<StepReport>(moved_away());
  if (!context.record()) {
    return make_ready_future<StepReport>(Error(Errc::bad_arguments, "the autograd context is empty, or moved away"));
  }
  return state_->step(context.record());
}

Result<StepReport> DistributedOptimizer::try_step(const Closure& closure) {
  if (!state_) return moved_away();
  if (!closure) return Error(Errc::bad_arguments, "the closure is empty");
  return state_->step(closure);
}

StepReport DistributedOptimizer::last_report() const { return state_->last_report(); }

Result<wire::Bytes> DistributedOptimizer::try_save() {
  if (!state_) return moved_away();
  return state_->save().result();
}

Result<void> DistributedOptimizer::try_load(wire::ByteView state) {
  if (!state_) return moved_away();
  return state_->load(state).result();
}

Result<void> DistributedOptimizer::try_add_param_group(const RemoteParameterGroup& group) {
  if (!state_) return moved_away();
  if (group.parameters.empty()) return Error(Errc::bad_arguments, "a group without a parameter");
  if (needs_closure(group.algorithm) || state_->rates().need_closure()) {
    return Error(Errc::bad_arguments,
                 "LBFGS steps one group: none can be added to it, and it is none that can be added");
  }
  auto shares = divide({group}, state_->clip_value());
  if (!shares) return shares.error();
  return state_->add_group(*std::move(shares), group.algorithm).result();
}

std::size_t DistributedOptimizer::groups() const noexcept { return state_->rates().groups(); }

double DistributedOptimizer::lr(std::size_t group) const {
  check_group(group);
  return state_->rates().lr(group);
}

void DistributedOptimizer::set_lr(std::size_t group, double lr) {
  check_group(group);
  state_->rates().set_lr(group, lr);
}

std::optional<double> DistributedOptimizer::momentum(std::size_t group) const {
  check_group(group);
  return state_->rates().momentum(group);
}

void DistributedOptimizer::set_momentum(std::size_t group, double momentum) {
  check_group(group);
  state_->rates().set_momentum(group, momentum);
}

std::vector<double> DistributedOptimizer::initial_lrs() {
  if (!state_) throw RpcException(moved_away());
  return state_->rates().initial_lrs();
}

void DistributedOptimizer::check_group(std::size_t group) const {
  if (!state_) throw RpcException(moved_away());
  if (group < state_->rates().groups()) return;
  throw RpcException(Error(Errc::bad_arguments, "there is no group " + std::to_string(group) +
                                                    " of parameters: there are " +
                                                    std::to_string(state_->rates().groups())));
}

}  // namespace caftan::optim
