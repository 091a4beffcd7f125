// Roles of a program on Workers of one process: how they take turns, wait for each other and stop.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "gate.hpp"
#include "one_process_run.hpp"

namespace caftan::test::role_test {
namespace {

using RoleRun = OneProcessRun;

/// A role whose method answers a batch of calls.
class Doubler {
 public:
  explicit Doubler(RoleContext&) {}
  std::vector<int> doubled(const Batch<int>& numbers) {
    std::vector<int> results;
    for (const int x : numbers) results.push_back(2 * x);
    return results;
  }
};
class Asker {
 public:
  explicit Asker(RoleContext& context) : context_(context), doubler_(context.uses<Doubler>("doubler")) {}
  Result<void> run(std::stop_token) {
    const auto doubled = doubler_.front().try_rpc_sync<&Doubler::doubled>(21);
    if (!doubled) return doubled.error();
    context_.report(std::to_string(*doubled));
    return {};
  }

 private:
  RoleContext& context_;
  std::vector<RRef<Doubler>> doubler_;
};

TEST_F(RoleRun, BT1_MethodsOfRolesMayBeBatched) {
  program_.role<Doubler>("doubler").batched<&Doubler::doubled>("doubled",
                                                               {.max_size = 2, .max_wait = std::chrono::hours(1)});
  program_.role<Asker>("asker").uses<Doubler>("doubler");
  EXPECT_TRUE(
      run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.doubler]\ntype = \"doubler\"\n"
          "[roles.asker]\ntype = \"asker\"\nreplicas = 2\n[roles.asker.uses]\ndoubler = \"doubler\"\n",
          2));
  std::vector<std::string> reports;
  for (const auto& report : all<run::Report>()) reports.push_back(report.text);
  EXPECT_THAT(reports, ::testing::ElementsAre("42", "42"));
}

/// Returns the sizes of the batches that its method has answered.
class Sizes {
 public:
  struct Config {
    int most = 0;
  };
  static void settings(auto& s, Config& c) { s("most", c.most, "calls in a run, 0 = as many as there are callers"); }
  static BatchLimits limits(const Config& config, const app::RolePlace& place) {
    const std::size_t all = place.uses.at("callers").size();
    return {.max_size = config.most > 0 ? static_cast<std::size_t>(config.most) : all,
            .max_wait = std::chrono::hours(1)};
  }
  Sizes(RoleContext&, Config) {}
  std::vector<std::int64_t> call(const Batch<int>& numbers) {
    return std::vector<std::int64_t>(numbers.size(), static_cast<std::int64_t>(numbers.size()));
  }
};
class SizeAsker {
 public:
  explicit SizeAsker(RoleContext& context) : context_(context), sizes_(context.use<Sizes>("sizes")) {}
  Result<void> run(std::stop_token) {
    const auto size = sizes_.try_rpc_sync<&Sizes::call>(context_.replica());
    if (!size) return size.error();
    context_.report(context_.name() + " " + std::to_string(*size));
    return {};
  }

 private:
  RoleContext& context_;
  RRef<Sizes> sizes_;
};

/// A role that lowers the size of its batches when it is asked to.
class Lowering {
 public:
  explicit Lowering(RoleContext& context) : context_(context) {}
  std::vector<std::int64_t> call(const Batch<int>& numbers) {
    return std::vector<std::int64_t>(numbers.size(), static_cast<std::int64_t>(numbers.size()));
  }
  Result<void> lower(std::int64_t size) {
    return context_.set_max_batch_size<&Lowering::call>(static_cast<std::size_t>(size));
  }

 private:
  RoleContext& context_;
};
class LowerAsker {
 public:
  explicit LowerAsker(RoleContext& context) : context_(context), lowering_(context.use<Lowering>("lowering")) {}
  Result<void> run(std::stop_token) {
    auto asked = lowering_.rpc_async<&Lowering::call>(context_.replica());
    if (context_.replica() == 0) {
      const auto none = lowering_.try_rpc_sync<&Lowering::lower>(0);
      context_.report(none ? "0 was taken" : std::string(to_string(none.error().code())) + ": " + none.error().text());
      if (auto lowered = lowering_.try_rpc_sync<&Lowering::lower>(2); !lowered) return lowered;
    }
    const auto size = std::move(asked).result();
    if (!size) return size.error();
    context_.report(std::to_string(*size));
    return {};
  }

 private:
  RoleContext& context_;
  RRef<Lowering> lowering_;
};

TEST_F(RoleRun, BT13_BatchesNeedNotWaitForMoreThanARoleSays) {
  program_.role<Lowering>("lowering")
      .batched<&Lowering::call>("call", {.max_size = 3, .max_wait = std::chrono::hours(1)})
      .method<&Lowering::lower>("lower");
  program_.role<LowerAsker>("asker").uses<Lowering>("lowering");
  EXPECT_TRUE(
      run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.lowering]\ntype = \"lowering\"\n"
          "[roles.asker]\ntype = \"asker\"\nreplicas = 2\n[roles.asker.uses]\nlowering = \"lowering\"\n",
          2));
  std::vector<std::string> reports;
  for (const auto& report : all<run::Report>()) reports.push_back(report.text);
  EXPECT_THAT(reports,
              ::testing::UnorderedElementsAre(
                  "2", "2", "bad_arguments: 'lowering.call' is batched with max_size 0: it must be 1 to 65536"));
}

class RoleBatches : public RoleRun {
 protected:
  /// Returns what three callers report. @param config  the table of the role that batches, or nothing
  std::vector<std::string> reports(const std::string& config) {
    program_.role<Sizes>("sizes").batched<&Sizes::call>("call", &Sizes::limits).uses<SizeAsker>("callers", at_least(1));
    program_.role<SizeAsker>("asker").uses<Sizes>("sizes");
    EXPECT_TRUE(run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.sizes]\ntype = \"sizes\"\n" + config +
                        "[roles.sizes.uses]\ncallers = \"asker\"\n[roles.asker]\ntype = \"asker\"\nreplicas = 3\n"
                        "[roles.asker.uses]\nsizes = \"sizes\"\n",
                    3));
    std::vector<std::string> texts;
    for (const auto& report : all<run::Report>()) texts.push_back(report.text);
    std::ranges::sort(texts);
    return texts;
  }
};

TEST_F(RoleBatches, BT1_LimitsMayFollowFromWhoUsesTheRole) {
  EXPECT_THAT(reports(""), ::testing::ElementsAre("asker-0 3", "asker-1 3", "asker-2 3"));
}

TEST_F(RoleBatches, BT1_LimitsMayFollowFromTheSettings) {
  EXPECT_THAT(reports("[roles.sizes.config]\nmost = 1\n"),
              ::testing::ElementsAre("asker-0 1", "asker-1 1", "asker-2 1"));
}

Gate stop_callbacks;

/// A role that stops when it is asked to, but whose stop callback waits until the test opens `stop_callbacks`.
class Reluctant {
 public:
  explicit Reluctant(RoleContext&) {}
  Result<void> run(std::stop_token stop) {
    std::promise<void> asked;
    const std::stop_callback callback(stop, [&] {
      asked.set_value();
      EXPECT_TRUE(stop_callbacks.pass());
    });
    running.open();
    asked.get_future().get();
    return {};
  }
  static inline Gate running;
};

TEST_F(RoleRun, T16_WhoAsksRolesToStopDoesNotWaitForTheirStopCallbacks) {
  stop_callbacks.close();
  Reluctant::running.close();
  program_.role<Reluctant>("reluctant");
  const std::string file = "caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.reluctant]\ntype = \"reluctant\"\n";
  EXPECT_TRUE(run(file, 1, [](actors::WorkerSet& workers) {
    EXPECT_TRUE(Reluctant::running.pass());
    workers.stop();
    workers.stop();
    stop_callbacks.wait_for(1);
    stop_callbacks.open();
  }));
  EXPECT_EQ(count<run::Left>(), 1U);
}

/// A role that makes a reference to its own tensor in its constructor.
class Keeper {
 public:
  explicit Keeper(RoleContext& context)
      : context_(context), self_(context.self<Keeper>()), kept_(context.make_rref(at::ones({2}))) {}
  Result<void> run(std::stop_token) {
    const auto strand_of = [](const auto& rref) { return rref.handle()->local_value().get()->shared_strand(); };
    context_.metric("shared", strand_of(kept_) == strand_of(self_) ? 1 : 0);
    return {};
  }

 private:
  RoleContext& context_;
  RRef<Keeper> self_;
  RRef<at::Tensor> kept_;
};

TEST_F(RoleRun, A4_WhatARolesConstructorRefersToTakesItsTurnsWithTheRole) {
  program_.role<Keeper>("keeper");
  const std::string file = "caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.keeper]\ntype = \"keeper\"\n";
  EXPECT_TRUE(run(file, 1));
  std::size_t shared = 0;
  for (const auto& metrics : all<run::Metrics>()) {
    for (const auto& [name, value, step] : metrics.values) shared += name == "shared" && value == 1.0 ? 1 : 0;
  }
  EXPECT_EQ(shared, 1U);
}

/// Holds each caller until all of them have called; then lets all go on.
class Hall {
 public:
  struct Config {
    int guests = 1;
  };
  static void settings(auto& s, Config& c) { s("guests", c.guests, "how many come"); }
  Hall(RoleContext&, Config config) : config_(config) {}
  Future<int> come_in() {
    Future<int> all_are_there = guests_.emplace_back().future();
    if (static_cast<int>(guests_.size()) == config_.guests) {
      for (auto& guest : guests_) guest.set(config_.guests);
    }
    return all_are_there;
  }

 private:
  Config config_;
  std::vector<Promise<int>> guests_;
};

/// Waits in its constructor.
class Guest {
 public:
  explicit Guest(RoleContext& context) { context.use<Hall>("hall").rpc_sync<&Hall::come_in>(); }
  Result<void> run(std::stop_token) { return {}; }
  static constexpr int kGuests = 200;
};

TEST_F(RoleRun, U7_T8_TwoHundredRolesOfAProcessMayWaitForOthersInTheirConstructors) {
  program_.role<Hall>("hall").method<&Hall::come_in>("come_in");
  program_.role<Guest>("guest").uses<Hall>("hall");
  const std::string guests = std::to_string(Guest::kGuests);
  EXPECT_TRUE(
      run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.hall]\ntype = \"hall\"\n[roles.hall.config]\n"
          "guests = " +
              guests + "\n[roles.guest]\ntype = \"guest\"\nreplicas = " + guests +
              "\n[roles.guest.uses]\nhall = \"hall\"\n",
          Guest::kGuests));
  EXPECT_EQ(failures(), 0U);
  EXPECT_EQ(count<run::Made>(), Guest::kGuests + 1U);
}

}  // namespace
}  // namespace caftan::test::role_test
