// A program with environments that do something wrong after a while, and with the roles of actor_critic.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "caftan/agents/actor_critic.hpp"
#include "caftan/caftan.hpp"
#include "caftan/rl/environment.hpp"

namespace {

/// Episodes of ten steps; at its 400th step an environment does what its name says.
class Faulty final : public caftan::rl::Environment {
 public:
  explicit Faulty(std::string fault) : fault_(std::move(fault)) {}

  const caftan::rl::EnvironmentSpec& spec() const noexcept override { return spec_; }
  caftan::rl::FirstObservation reset(std::uint64_t) override { return reset(); }
  caftan::rl::FirstObservation reset() override {
    left_ = 10;
    return std::span<const float>(observation_).first(2);
  }
  caftan::Result<caftan::rl::Transition> step(int action) override {
    if (left_ == 0) return caftan::rl::step_after_end(spec_);
    if (auto fits = caftan::rl::check_action(spec_, action); !fits) return fits.error();
    --left_;
    const bool is_now = ++steps_ == 400;
    if (is_now && fault_ == "Throws") throw std::runtime_error("no more fuel");
    while (is_now && fault_ == "Hangs") ::pause();
    if (is_now && fault_ == "Spec") spec_.actions = 3;
    caftan::rl::Transition taken{.observation = std::span<const float>(observation_).first(2),
                                 .reward = action == 1 ? 1.0 : 0.0,
                                 .terminated = left_ == 0};
    if (is_now && fault_ == "Shape") taken.observation = observation_;
    if (is_now && fault_ == "Nan") taken.reward = std::numeric_limits<double>::quiet_NaN();
    return taken;
  }

 private:
  std::string fault_;
  caftan::rl::EnvironmentSpec spec_{.id = "Faulty", .observation_size = 2, .actions = 2};
  std::array<float, 3> observation_{0.5F, -0.5F, 0.0F};
  int left_ = 0;
  int steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  caftan::Program program("faulty");
  for (const std::string fault : {"Throws", "Hangs", "Spec", "Shape", "Nan"}) {
    program.environment(fault, [fault]() -> caftan::Result<std::unique_ptr<caftan::rl::Environment>> {
      return std::unique_ptr<caftan::rl::Environment>(std::make_unique<Faulty>(fault));
    });
  }
  caftan::agents::add_actor_critic(program);
  return program.main(argc, argv);
}
