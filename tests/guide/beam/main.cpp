// An environment of one's own, which actors, a learner and an evaluator train on. Their file is beam.toml.
#include <array>
#include <caftan/agents/actor_critic.hpp>
#include <caftan/caftan.hpp>
#include <caftan/rl/environment.hpp>
#include <caftan/rl/random.hpp>
#include <cmath>
#include <cstdint>
#include <span>

class Beam final : public caftan::rl::Environment {  // a ball on a beam, which is tilted to the left or to the right
 public:
  const caftan::rl::EnvironmentSpec& spec() const noexcept override { return spec_; }

  caftan::rl::FirstObservation reset(std::uint64_t seed) override {
    random_ = caftan::rl::Pcg64(seed);
    return reset();
  }
  caftan::rl::FirstObservation reset() override {
    place_ = random_.uniform(-0.1, 0.1);
    speed_ = random_.uniform(-0.01, 0.01);
    ended_ = false;
    return observe();
  }

  caftan::Result<caftan::rl::Transition> step(int action) override {
    if (ended_) return caftan::rl::step_after_end(spec_);
    if (auto fits = caftan::rl::check_action(spec_, action); !fits) return fits.error();
    speed_ += (action == 1 ? 0.01 : -0.01) + 0.02 * place_;  // the beam bends where the ball is
    place_ += speed_;
    ended_ = std::abs(place_) > 1;
    return caftan::rl::Transition{.observation = observe(), .reward = 1.0, .terminated = ended_};
  }

 private:
  std::span<const float> observe() { return observation_ = {static_cast<float>(place_), static_cast<float>(speed_)}; }

  caftan::rl::EnvironmentSpec spec_{.id = "Beam", .observation_size = 2, .actions = 2};
  caftan::rl::Pcg64 random_{0};
  double place_ = 0;  // of the ball; the ends of the beam are -1 and 1
  double speed_ = 0;
  bool ended_ = true;
  std::array<float, 2> observation_{};
};

int main(int argc, char** argv) {
  caftan::Program program("beam");
  program.environment<Beam>("Beam", {.max_steps = 200});
  caftan::agents::add_actor_critic(program);  // three role types, and the command play
  return program.main(argc, argv);
}
