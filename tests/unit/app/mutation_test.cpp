// Thousands of broken files: reading a file always ends with an application or with errors, and an accepted application
// stays the same when it is written and read again.
#include <gtest/gtest.h>

#include <random>

#include "caftan/app/internal/plan.hpp"
#include "caftan/app/internal/resolved.hpp"
#include "role_types.hpp"

namespace caftan::app::testing::mutation_test {
namespace {

constexpr std::string_view kSeedFile = R"(caftan = 1
[run]
name = "servers"
seed = 7
placement = "processes"
wall = "1h"
[roles.agent]
type = "cartpole.agent"
[roles.agent.config]
gamma = 0.5
protocol = "rollout"
[roles.agent.uses]
observers = "observer"
[roles.observer]
type = "cartpole.observer"
replicas = 3
torch_threads = 2
hosts = ["head", "node1"]
[roles.server]
type = "parameter_server.server"
config = { model = "small", max_staleness = 3, optimizer.type = "adam" }
[roles.trainer]
type = "parameter_server.trainer"
uses.server = "server"
[hosts.head]
address = "127.0.0.1:29500"
[hosts.node1]
address = "192.0.2.11"
[cluster]
secret_file = "x.secret"
[limits]
message = "64MiB"
[output]
every = "100ms"
)";

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::uint64_t count = 1 + below(3); count > 0; --count) mutate_once(text);
    return text;
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void mutate_once(std::string& text) {
    static constexpr std::string_view kPieces[] = {"0",           "-1",   "nan",    "\"\"", "[]", "{}",    "= ",
                                                   "[roles.x]\n", "'",    "\"\"\"", "\n",   "#",  "1e999", "true",
                                                   "hosts",       ".a.b", "\xff",   "\\",   "2h", "1KiB",  "observer"};
    const std::uint64_t at = text.empty() ? 0 : below(text.size());
    const std::uint64_t length = std::min<std::uint64_t>(below(12), text.size() - at);
    switch (below(4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 2:
        text.replace(at, length, kPieces[below(std::size(kPieces))]);
        break;
      default:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
    }
  }

  std::mt19937_64 random_;
};

TEST(MutatedFiles, AreReadOrRefusedAndWhatIsReadIsStable) {
  const RoleTypes types = make_types();
  const auto load_text = [&](std::string_view text) {
    return parse_application(text, "/apps/app.toml", {}, types, {.mode = LoadMode::check, .cores = 64});
  };
  ASSERT_TRUE(load_text(kSeedFile).diagnostics.ok()) << load_text(kSeedFile).diagnostics.render(true);
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::string text = Mutator(seed).mutate(std::string(kSeedFile));
    const LoadedApplication loaded = load_text(text);
    const std::string rendered = loaded.diagnostics.render(true);
    ASSERT_EQ(rendered.ends_with(" is not valid\n"), !loaded.diagnostics.ok()) << "seed " << seed;
    if (!loaded.diagnostics.ok()) continue;
    ++accepted;
    const std::string resolved = resolved_text(loaded.application, types);
    const LoadedApplication again = load_text(resolved);
    ASSERT_TRUE(again.diagnostics.ok()) << "seed " << seed << "\n" << text << again.diagnostics.render(true);
    ASSERT_EQ(resolved_text(again.application, types), resolved) << "seed " << seed;
    ASSERT_EQ(render_plan(again.application, make_plan(again.application)),
              render_plan(loaded.application, make_plan(loaded.application)))
        << "seed " << seed;
  }
  EXPECT_GT(accepted, 100) << "mutations that leave a valid file are needed too";
  EXPECT_LT(accepted, 5800);
}

}  // namespace
}  // namespace caftan::app::testing::mutation_test
