/// The settings of an observer, the same in all CartPole applications.
#pragma once

namespace caftan::cartpole {

/// What the role types "cartpole.observer" and "cartpole_batch.observer" read.
struct ObserverConfig {
  enum class Environment { cartpole_v0, cartpole_v1 };
  enum class Seeding { per_worker, same };

  Environment environment = Environment::cartpole_v1;
  Seeding seeding = Seeding::per_worker;

  static void settings(auto& s, ObserverConfig& c) {
    s("environment", c.environment, "what the observer steps").one_of({{"CartPole-v0"}, {"CartPole-v1"}});
    s("seeding", c.seeding, "where episodes start")
        .one_of({{"per_worker"}, {"same", "all observers play the same episodes"}});
  }
};

}  // namespace caftan::cartpole
