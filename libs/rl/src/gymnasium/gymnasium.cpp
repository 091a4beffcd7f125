#include "caftan/rl/gymnasium.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "gymnasium/process.hpp"

namespace caftan::rl {
namespace {

using gymnasium::Kind;
using gymnasium::Process;
using gymnasium::ResetOrder;

/// The n environments of one process.
class RemoteEnvironments {
 public:
  /// Starts the process and asks for the spec.
  static Result<std::unique_ptr<RemoteEnvironments>> start(std::string_view id, std::size_t n, bool resets,
                                                           const GymnasiumOptions& options) {
    constexpr std::size_t kMostSpec = 16U << 20;
    if (n == 0 || n > 65536) {
      return Error(Errc::bad_arguments, "a process of Gymnasium has 1 to 65536 environments, not " + std::to_string(n));
    }
    auto process = Process::start(std::string(id), options);
    if (!process) return process.error();
    const auto hello = gymnasium::encode_hello(static_cast<std::uint32_t>(n), resets, id);
    const auto body =
        (*process)->request(Kind::hello, hello, Kind::spec, kMostSpec, {"start_limit", options.start_limit});
    if (!body) return body.error();
    auto spec = gymnasium::decode_spec(*body, std::string(kGymnasiumPrefix) + std::string(id));
    if (!spec) return spec.error();
    constexpr std::size_t kMostFloats = std::size_t{1} << 28;  // 1 GiB in a frame
    if (n * std::max(spec->observation_size, spec->action_size()) > kMostFloats) {
      return Error(Errc::limit_exceeded,
                   "environment '" + spec->id + "': " + std::to_string(n) + " of them, with observations of " +
                       std::to_string(spec->observation_size) +
                       " values, are more than 1 GiB in a frame: fewer environments in each vector");
    }
    return std::unique_ptr<RemoteEnvironments>(
        new RemoteEnvironments(*std::move(process), *std::move(spec), n, resets, options));
  }

  const EnvironmentSpec& spec() const noexcept { return spec_; }
  std::size_t size() const noexcept { return buffers_.rewards.size(); }

  Result<std::span<const float>> reset(std::span<const ResetOrder> orders) {
    started_ = false;
    const auto body = process_->request(Kind::reset, gymnasium::encode_reset(orders), Kind::observations,
                                        buffers_.observations.size() * sizeof(float), reply_limit());
    if (!body) return body.error();
    if (auto fit = gymnasium::decode_observations(*body, buffers_.observations); !fit) return refused(fit.error());
    if (auto finite = gymnasium::check_finite(spec_, buffers_); !finite) return refused(finite.error());
    started_ = true;
    return std::span<const float>(buffers_.observations);
  }

  /// @param actions  checked before
  template <class T>
  Result<VectorStep> step(std::span<const T> actions) {
    if (!started_) return step_after_end(spec_);
    const auto body = process_->request(Kind::step, std::as_bytes(actions), Kind::outcome,
                                        gymnasium::most_outcome(resets_, buffers_), reply_limit());
    if (!body) return body.error();
    if (auto fit = gymnasium::decode_outcome(*body, resets_, buffers_); !fit) return refused(fit.error());
    if (auto finite = gymnasium::check_finite(spec_, buffers_); !finite) return refused(finite.error());
    if (!resets_) started_ = !buffers_.view().ended(0);
    return buffers_.view();
  }

 private:
  RemoteEnvironments(std::unique_ptr<Process> process, EnvironmentSpec spec, std::size_t n, bool resets,
                     const GymnasiumOptions& options)
      : process_(std::move(process)),
        spec_(std::move(spec)),
        resets_(resets),
        limit_(options.reply_limit),
        buffers_(n, spec_.observation_size) {}

  Process::Limit reply_limit() const { return {"reply_limit", limit_}; }
  Error refused(const Error& error) { return process_->fail(error); }

  std::unique_ptr<Process> process_;
  EnvironmentSpec spec_;
  bool resets_;
  base::Duration limit_;
  VectorBuffers buffers_;
  bool started_ = false;
};

class GymnasiumEnvironments final : public VectorEnvironment {
 public:
  explicit GymnasiumEnvironments(std::unique_ptr<RemoteEnvironments> remote) : remote_(std::move(remote)) {}

  const EnvironmentSpec& spec() const noexcept override { return remote_->spec(); }
  std::size_t size() const noexcept override { return remote_->size(); }
  Result<std::span<const float>> reset(std::uint64_t seed) override {
    std::vector<ResetOrder> orders;
    for (std::uint32_t i = 0; i < size(); ++i) orders.push_back({i, seed + i});
    return remote_->reset(orders);
  }
  Result<VectorStep> step(std::span<const std::int32_t> actions) override { return take(actions); }
  Result<VectorStep> step_continuous(std::span<const float> actions) override { return take(actions); }

 private:
  template <class T>
  Result<VectorStep> take(std::span<const T> actions) {
    if (auto fit = check_actions(spec(), size(), actions); !fit) return fit.error();
    return remote_->step(actions);
  }

  std::unique_ptr<RemoteEnvironments> remote_;
};

class GymnasiumEnvironment final : public Environment {
 public:
  explicit GymnasiumEnvironment(std::unique_ptr<RemoteEnvironments> remote) : remote_(std::move(remote)) {}

  const EnvironmentSpec& spec() const noexcept override { return remote_->spec(); }
  FirstObservation reset(std::uint64_t seed) override { return begin(seed); }
  FirstObservation reset() override { return begin(std::nullopt); }
  Result<Transition> step(int action) override {
    if (auto fits = check_action(spec(), action); !fits) return fits.error();
    return transition(remote_->step(std::span<const std::int32_t>(&action, 1)));
  }
  Result<Transition> step_continuous(std::span<const float> action) override {
    if (auto fits = check_action(spec(), action); !fits) return fits.error();
    return transition(remote_->step(action));
  }

 private:
  FirstObservation begin(std::optional<std::uint64_t> seed) {
    const ResetOrder order{0, seed};
    return remote_->reset(std::span(&order, 1));
  }
  static Result<Transition> transition(const Result<VectorStep>& step) {
    if (!step) return step.error();
    return Transition{.observation = step->observations,
                      .reward = step->rewards[0],
                      .terminated = step->terminated[0] != 0,
                      .truncated = step->truncated[0] != 0};
  }

  std::unique_ptr<RemoteEnvironments> remote_;
};

}  // namespace

Result<std::unique_ptr<VectorEnvironment>> make_gymnasium(std::string_view id, std::size_t n,
                                                          const GymnasiumOptions& options) {
  auto remote = RemoteEnvironments::start(id, n, true, options);
  if (!remote) return remote.error();
  return std::unique_ptr<VectorEnvironment>(std::make_unique<GymnasiumEnvironments>(*std::move(remote)));
}

Result<std::unique_ptr<Environment>> make_single_gymnasium(std::string_view id, const GymnasiumOptions& options) {
  auto remote = RemoteEnvironments::start(id, 1, false, options);
  if (!remote) return remote.error();
  return std::unique_ptr<Environment>(std::make_unique<GymnasiumEnvironment>(*std::move(remote)));
}

}  // namespace caftan::rl
