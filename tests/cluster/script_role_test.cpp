// Scripts that an application file names: a role serves them, another one calls (docs/protocols/script.md).
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "caftan/nn/script_module.hpp"
#include "one_process_run.hpp"
#include "script_files.hpp"

namespace caftan::test::script_role_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Server {
 public:
  explicit Server(RoleContext&) {}
};
class Client {
 public:
  explicit Client(RoleContext& context) : context_(context) {}
  Result<void> run(std::stop_token) {
    const auto y = context_.try_rpc_script("server", "net.forward", at::ones({2}));
    if (!y) return y.error();
    context_.report(std::to_string(y->sum().item<double>()));
    context_.report(context_.try_rpc_script("client", "net.forward", at::ones({2})).error().text());
    return {};
  }

 private:
  RoleContext& context_;
};

/// Makes a module of the server's file.
class Trainer {
 public:
  explicit Trainer(RoleContext& context) : context_(context) {}
  Result<void> run(std::stop_token) {
    const nn::RemoteModule<nn::ScriptModule> net(context_, "server", "net");
    context_.report(std::to_string(net.forward(at::ones({2})).sum().item<double>()));
    context_.report(context_.try_rpc_script("server", "net.forward", at::ones({2})).error().text());
    return {};
  }

 private:
  RoleContext& context_;
};

class ScriptRun : public OneProcessRun {
 protected:
  ScriptRun() {
    program_.role<Server>("server");
    program_.role<Client>("client").uses<Server>("server");
    program_.role<Trainer>("trainer").uses<Server>("server");
  }
  std::string file(const std::filesystem::path& script) const {
    return "caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.server]\ntype = \"server\"\n[roles.server.scripts]\n"
           "net = \"" +
           script.string() + "\"\n[roles.client]\ntype = \"client\"\nuses.server = \"server\"\n";
  }
  /// Returns what a command finds in the file.
  std::string findings(const std::filesystem::path& script, app::LoadMode mode) const {
    const auto types = program_.catalog().types().value();
    return app::parse_application(file(script), "/test.toml", {}, types, {.mode = mode}).diagnostics.render(false);
  }
  ScriptFolder folder_;
};

TEST_F(ScriptRun, SC1_OnlyTheRoleThatTheFileNamesServesAScript) {
  const auto script = folder_.save("net.pt", {.code = "def forward(self, x):\n  return x * 3\n"});
  EXPECT_TRUE(run(file(script), 1));
  EXPECT_EQ(failures(), 0U);
  std::vector<std::string> reports;
  for (const auto& report : all<run::Report>()) reports.push_back(report.text);
  EXPECT_THAT(reports, ElementsAre("6.000000", HasSubstr("this worker serves no script with the method")));
}

TEST_F(ScriptRun, SC15_PeersMakeModulesOfWhatARoleNamesForModules) {
  const auto script = folder_.save("net.pt", {.code = "def forward(self, x):\n  self.steps = self.steps + 1\n"
                                                      "  return x * self.steps\n"});
  EXPECT_TRUE(
      run("caftan = 1\n[run]\nplacement = \"one_process\"\n[roles.server]\ntype = \"server\"\n[roles.server.modules]\n"
          "net = \"" +
              script.string() + "\"\n[roles.trainer]\ntype = \"trainer\"\nuses.server = \"server\"\n",
          1));
  EXPECT_EQ(failures(), 0U);
  std::vector<std::string> reports;
  for (const auto& report : all<run::Report>()) reports.push_back(report.text);
  EXPECT_THAT(reports, ElementsAre("2.000000", HasSubstr("this worker serves no script with the method")));
}

TEST_F(ScriptRun, SC8_CheckAndRunNameTheKeyThePathAndTheOperator) {
  const auto script = folder_.save("net.pt", {.code = "def forward(self, x):\n  return x + torch.rand_like(x)\n"});
  const std::string text =
      ": role 'server': scripts.net = \"" + script.string() +
      "\" method 'forward' calls aten::rand_like (<string>:2): it draws from the callee's random "
      "generator; save the module after eval(), or torch.jit.freeze it, which takes such calls out";
  EXPECT_THAT(findings(script, app::LoadMode::check), HasSubstr("/test.toml:7:7: warning" + text));
  EXPECT_THAT(findings(script, app::LoadMode::run), HasSubstr("/test.toml:7:7: error" + text));
  EXPECT_THAT(findings(folder_ / "none.pt", app::LoadMode::run), HasSubstr("none.pt\" cannot be read: No such file"));
}

TEST_F(ScriptRun, SC8_AFileThatIsGoneWhenItsWorkerStartsFailsTheRun) {
  const auto script = folder_.save("net.pt", {.code = "def forward(self, x):\n  return x\n"});
  const auto types = program_.catalog().types().value();
  app::LoadedApplication loaded = app::parse_application(file(script), "/test.toml", {}, types, {});
  ASSERT_TRUE(loaded.diagnostics.ok());
  std::filesystem::remove(script);
  const app::Plan plan = app::make_plan(loaded.application);
  actors::WorkerSetOptions options{.catalog = program_.catalog(), .application = loaded.application, .plan = plan};
  options.workers.push_back(plan.workers[0].id);
  options.members.push_back({plan.workers[0].name, ""});
  options.executor = actors::make_runners(1);
  options.network = std::make_shared<LocalNetwork>();
  options.sink = [this](const run::Event& event) { events_.push_back(event); };
  actors::WorkerSet workers(std::move(options));
  workers.leave();
  (void)workers.run();
  ASSERT_EQ(failures(), 1U);
  const Error error = all<run::Failed>()[0].error;
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_THAT(error.text(), HasSubstr("script 'net', " + script.string() + ": cannot be read"));
}

}  // namespace
}  // namespace caftan::test::script_role_test
