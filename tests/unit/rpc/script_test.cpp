// Files of TorchScript: which are refused, and how their methods run. Rules: docs/protocols/script.md.
#include "caftan/rpc/internal/script.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "caftan/tensor/operators.hpp"
#include "fake_caller.hpp"
#include "script_files.hpp"

namespace caftan::script_test {
namespace {

using rpc::kwarg;
using rpc::Script;
using rpc::ScriptUse;
using test::FakeJob;
using test::ScriptFolder;
using test::ScriptSource;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const at::Tensor kThree = at::ones({3});

struct Scripts : ::testing::Test {
  Result<std::shared_ptr<Script>> load(const ScriptSource& source, ScriptUse use = ScriptUse::functions) const {
    return Script::load(folder.save("net.pt", source), use);
  }
  std::string refusal(const ScriptSource& source, ScriptUse use = ScriptUse::functions) const {
    const auto script = load(source, use);
    if (script) return "it was loaded";
    EXPECT_EQ(script.error().code(), Errc::invalid_config);
    return script.error().text();
  }
  Error refused(const std::filesystem::path& file) const {
    const auto script = Script::load(file, ScriptUse::functions);
    return script ? Error() : script.error();
  }
  ScriptFolder folder;
};

/// A worker that serves one script, and one that calls.
struct ServedScripts : Scripts {
  Worker& serve(const ScriptSource& source) {
    job.add(Registry());
    Registry registry;
    registry.add_script("net", folder.save("net.pt", source));
    EXPECT_TRUE(registry.freeze());
    job.add(std::move(registry));
    return job.at(0).worker();
  }
  FakeJob job;
};

TEST_F(Scripts, SC2_FilesThatCannotBeReadAreNamedErrors) {
  EXPECT_EQ(refused(folder / "none.pt").code(), Errc::io_error);
  EXPECT_EQ(refused(folder / "none.pt").text(), "cannot be read: No such file or directory");
  EXPECT_EQ(refused(folder / ".").text(), "is a directory, not a file");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refused(folder / "pipe").text(), "is no regular file");
}

TEST_F(Scripts, SC2_AFileThatIsTooLargeIsRefusedUnread) {
  const auto file = folder / "large.pt";
  std::ofstream(file) << "x";
  std::filesystem::resize_file(file, rpc::kMaxScriptBytes + 1);  // a hole: no bytes on the disk
  EXPECT_EQ(refused(file).text(), "is larger than 4 GiB");
  EXPECT_EQ(refused(file).code(), Errc::invalid_config);
}

TEST_F(Scripts, SC3_OtherAndDamagedFilesAreRefused) {
  std::ofstream(folder / "text.pt") << std::string(1000, 'x');
  EXPECT_THAT(refused(folder / "text.pt").text(), StartsWith("is no TorchScript file, or is damaged: "));
  std::ofstream(folder / "empty.pt") << "";
  EXPECT_THAT(refused(folder / "empty.pt").text(), StartsWith("is no TorchScript file, or is damaged: "));
  const auto whole = folder.save("whole.pt", {.code = "def forward(self, x):\n  return x\n"});
  EXPECT_EQ(refused(whole).code(), Errc::ok);
  for (const int parts : {1, 2, 3}) {
    std::filesystem::copy_file(whole, folder / "cut.pt", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder / "cut.pt", std::filesystem::file_size(whole) * parts / 4);
    const Error error = refused(folder / "cut.pt");
    EXPECT_EQ(error.code(), Errc::invalid_config);
    EXPECT_EQ(error.text().find('\n'), std::string::npos) << error.text();
  }
}

TEST_F(Scripts, SC3_ArchivesOfAnotherSchemaAreRefused) {
  test::save_archive(folder / "tensors.pt", {{"data.pkl", "x"}});
  EXPECT_EQ(refused(folder / "tensors.pt").text(),
            "holds values without code: torch.jit.save writes scripts, torch.save does not");
  test::save_archive(folder / "other.pt", {{"notes", "x"}});
  EXPECT_EQ(refused(folder / "other.pt").text(), "is no TorchScript file: it has neither code nor values");
  test::save_archive(folder / "old.pt", {{"model.json", "{}"}});
  EXPECT_EQ(refused(folder / "old.pt").text(), "was written before PyTorch 1.4: save it again with torch.jit.save");
  test::save_archive(folder / "new.pt", {{"data.pkl", "x"}, {"constants.pkl", "x"}}, 99);
  EXPECT_THAT(refused(folder / "new.pt").text(), HasSubstr("version 99"));
  test::save_archive(folder / "nonsense.pt", {{"data.pkl", "x"}, {"constants.pkl", "x"}});
  EXPECT_THAT(refused(folder / "nonsense.pt").text(), StartsWith("is no TorchScript file, or is damaged: "));
}

TEST_F(Scripts, SC3_NothingOfAFileRunsWhileItIsLoaded) {
  EXPECT_THAT(refusal({.code = "def __getstate__(self):\n  return 1\n"
                               "def __setstate__(self, s : int):\n  self.steps = s\n"
                               "def forward(self, x):\n  return x\n"}),
              StartsWith("has a class with __setstate__"));
  test::save_archive(folder / "object.pt",
                     {{"data.pkl", "c__torch__.torch.classes.quantized\nConv\n"}, {"constants.pkl", "x"}});
  EXPECT_THAT(refused(folder / "object.pt").text(), StartsWith("has an object of a class of C++ (torch.classes)"));
}

TEST_F(Scripts, SC4_SC5_AnOperatorThatPeersMayNotCallRefusesTheFile) {
  EXPECT_EQ(refusal({.code = "def forward(self, x):\n  return x + torch.from_file('/etc/passwd', None, 4)\n"}),
            "method 'forward' calls aten::from_file (<string>:2): it touches the callee's files, devices or process; "
            "take the call out");
  EXPECT_THAT(
      refusal({.code = "def forward(self, x):\n  return x + torch.rand_like(x)\n"}),
      HasSubstr("aten::rand_like (<string>:2): it draws from the callee's random generator; save the module after "));
  EXPECT_THAT(refusal({.code = "def forward(self, x):\n  return torch.empty([3])\n"}),
              HasSubstr("aten::empty (<string>:2): it returns memory that is not initialised"));
  EXPECT_THAT(refusal({.code = "def forward(self, x):\n  torch.save(x, '/tmp/stolen')\n  return x\n"}),
              HasSubstr("calls aten::save"));
  EXPECT_THAT(refusal({.code = "def forward(self, x):\n  print(x)\n  return x\n"}), HasSubstr("calls prim::Print"));
  EXPECT_THAT(refusal({.code = "def forward(self, x):\n  return torch.bernoulli(x)\n"}),
              HasSubstr("calls aten::bernoulli"));
}

TEST_F(Scripts, SC4_EveryMethodBlockSubmoduleAndForkIsLookedAt) {
  const std::string fine = "def forward(self, x):\n  return x\n";
  EXPECT_THAT(refusal({.code = fine + "def other(self, x):\n  return torch.rand_like(x)\n"}),
              HasSubstr("method 'other' calls aten::rand_like"));
  EXPECT_THAT(refusal({.code = "def forward(self, x, n : int):\n"
                               "  for i in range(n):\n    if i > 2:\n      x = torch.rand_like(x)\n  return x\n"}),
              HasSubstr("calls aten::rand_like"));
  const std::string inner = "def inside(self, x):\n  return torch.rand_like(x)\n";
  EXPECT_THAT(refusal({.code = "def forward(self, x):\n  return self.inner.inside(x)\n", .inner = inner}),
              HasSubstr("method 'forward' calls aten::rand_like"));
  EXPECT_THAT(refusal({.code = "def forward(self, x):\n  f = fork(self.inner.inside, x)\n  return torch.wait(f)\n",
                       .inner = inner}),
              HasSubstr("method 'forward' calls aten::rand_like"));
  EXPECT_TRUE(load({.code = fine, .inner = inner}));  // no method that peers can call comes there
}

TEST_F(Scripts, SC4_ABlockThatNoCallEntersIsNotLookedAt) {
  ScriptSource source{.code =
                          "def forward(self, x):\n"
                          "  if self.training:\n    x = torch.rand_like(x)\n"
                          "  return torch.dropout(x, 0.5, self.training)\n"};
  EXPECT_THAT(refusal(source), HasSubstr("calls aten::rand_like"));
  source.training = false;
  EXPECT_TRUE(load(source));
  source.code = "def forward(self, x, training : bool):\n  return torch.dropout(x, 0.5, training)\n";
  EXPECT_THAT(refusal(source), HasSubstr("calls aten::dropout"));
}

TEST_F(Scripts, SC6_AFunctionChangesOnlyWhatItMadeItself) {
  const auto with = [](const std::string& line) {
    return ScriptSource{.code = "def forward(self, x, xs : List[Tensor]):\n  " + line + "\n  return x\n",
                        .buffers = {{"b", kThree}}};
  };
  const char* const why = "it changes an argument, a value of the module, or one taken out of a list, tuple or dict";
  for (const char* const line :
       {"x.add_(1)", "x.view([-1]).add_(1)", "self.b.add_(1)", "xs.append(x)", "xs[0].add_(1)", "x[0] = 1"}) {
    EXPECT_THAT(refusal(with(line)), HasSubstr(why)) << line;
  }
  for (const char* const line :
       {"x = (x + 1).add_(1)", "x = x.clone()\n  x[0] = 5", "ys = [x]\n  ys.append(x)", "x = torch.cat(xs).relu_()",
        "d = {1 : x}\n  d[2] = x", "y = torch.mul(x, 2)\n  y = torch.relu_(y)\n  y += x\n  x = torch.relu_(y)"}) {
    EXPECT_EQ(refusal(with(line)), "it was loaded") << line;
    EXPECT_EQ(refusal(with(line), ScriptUse::module), "it was loaded") << line;
  }
  EXPECT_EQ(refusal(with("self.b.add_(1)"), ScriptUse::module), "it was loaded");
}

TEST_F(Scripts, SC7_AFunctionChangesNoAttributeAndNoStatistics) {
  EXPECT_THAT(refusal({.code = "def forward(self, x):\n  self.steps = self.steps + 1\n  return x\n"}),
              HasSubstr("prim::SetAttr: it changes the module, which other calls use at the same time; return the "
                        "value, or let peers make modules of the file ([roles.NAME.modules])"));
  ScriptSource norm{.code =
                        "def forward(self, x):\n"
                        "  return torch.batch_norm(x, None, None, self.b, self.b, self.training, 0.1, 1e-5, False)\n",
                    .buffers = {{"b", kThree}}};
  EXPECT_THAT(refusal(norm), HasSubstr("aten::batch_norm (<string>:2): it changes running statistics of the module"));
  EXPECT_EQ(refusal(norm, ScriptUse::module), "it was loaded");
  norm.training = false;
  EXPECT_EQ(refusal(norm), "it was loaded");
}

TEST_F(Scripts, SC8_ARegistryNamesTheScriptItsFileAndWhatIsWrong) {
  Registry registry;
  const auto file = folder.save("net.pt", {.code = "def forward(self, x):\n  return torch.rand_like(x)\n"});
  registry.add_script("net", file);
  registry.add_script("none", folder / "none.pt");
  const Error error = registry.freeze().error();
  EXPECT_EQ(error.code(), Errc::invalid_config);
  EXPECT_THAT(error.text(), StartsWith("script 'net', " + file.string() + ": method 'forward' calls aten::rand_like"));
  EXPECT_THAT(error.text(), HasSubstr("; script 'none', " + (folder / "none.pt").string() + ": cannot be read"));
}

TEST_F(Scripts, SC8_AMethodHasOneOwnerOfItsName) {
  Registry registry;
  registry.add_script("net", folder.save("net.pt", {.code = "def forward(self, x):\n  return x\n"}));
  registry.add_script("net", folder / "net.pt");
  EXPECT_EQ(registry.freeze().error().text(), "'net.forward' is registered twice");
}

constexpr const char* kCode = R"(
def scaled(self, x, by : float = 2.0, twice : bool = False):
    y = x * by
    if twice:
        y = y * by
    return y
def several(self, x : Tensor, s : str, n : int, t : Tensor, u : str = "u", m : int = 7):
    return x + t, s + u, n + m
def numbers(self, xs : List[Tensor], ns : List[int], o : Optional[Tensor]):
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    for n in ns:
        total = total * n
    if o is not None:
        total = total + o
    return total
def boom(self, x):
    assert x.numel() > 100, "too small"
    return x
def forked(self, x):
    one = fork(self.scaled, x, 3.0)
    two = fork(self.scaled, x, 4.0)
    return torch.wait(one) + torch.wait(two)
def forked_boom(self, x):
    return torch.wait(fork(self.boom, x))
def table(self, x):
    return {"a" : x}
def nested(self, x):
    return x, (x, 2)
def words(self, x):
    return ["a", "b"]
def from_table(self, x, table : Dict[str, Tensor]):
    return x + table["a"]
def from_pair(self, pair : Tuple[Tensor, Tensor]):
    return pair[0]
def from_words(self, x, words : Optional[List[str]] = None, by : float = 1.0):
    return x * by
def nothing(self, x : Tensor):
    pass
def recorded(self, x):
    return torch.is_grad_enabled()
def __hidden__(self, x):
    return x
)";

TEST_F(ServedScripts, SC5_AWarningOfAScriptIsNoOutput) {
  const Worker& worker = serve({.code = "def forward(self, x, text : str):\n  torch.warn(text)\n  return x\n"});
  ::testing::internal::CaptureStderr();
  const at::Tensor y = worker.rpc_script("worker1", "net.forward", kThree, std::string("written by the caller"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("written by the caller")));
  EXPECT_TRUE(y.equal(kThree));
}

TEST_F(ServedScripts, SC9_DefaultsAndKeywordsAreThoseOfTheSchema) {
  const Worker& worker = serve({.code = kCode});
  EXPECT_TRUE(worker.rpc_script("worker1", "net.scaled", kThree).equal(kThree * 2));
  EXPECT_TRUE(worker.rpc_script("worker1", "net.scaled", kThree, 3.0).equal(kThree * 3));
  EXPECT_TRUE(worker.rpc_script("worker1", "net.scaled", kThree, kwarg("twice", true)).equal(kThree * 4));
  EXPECT_TRUE(worker.rpc_script("worker1", "net.scaled", kwarg("by", 3.0), kwarg("x", kThree)).equal(kThree * 3));
  const std::vector<at::Tensor> list{kThree, kThree};
  const std::vector<std::int64_t> ints{2, 3};
  EXPECT_TRUE(worker.rpc_script("worker1", "net.numbers", list, ints, std::monostate()).equal(kThree * 12));
  EXPECT_TRUE(worker.rpc_script("worker1", "net.numbers", list, ints, kThree).equal(kThree * 13));
}

TEST_F(ServedScripts, SC9_ArgumentsThatDoNotFitRunNothing) {
  const Worker& worker = serve({.code = kCode});
  const auto refusal_of = [&](auto&&... arguments) {
    const Error error = worker.try_rpc_script("worker1", arguments...).error();
    EXPECT_EQ(error.code(), Errc::bad_arguments);
    return error.text();
  };
  EXPECT_THAT(refusal_of("net.scaled"), HasSubstr("missing value for argument 'x'"));
  EXPECT_THAT(refusal_of("net.scaled", kThree, 2), HasSubstr("'by'"));
  EXPECT_THAT(refusal_of("net.scaled", kThree, 2.0, true, 1), HasSubstr("at most"));
  EXPECT_THAT(refusal_of("net.scaled", kThree, kwarg("no", 1)), HasSubstr("'no'"));
  EXPECT_THAT(refusal_of("net.scaled", kThree, kwarg("by", 1.0), kwarg("by", 1.0)), HasSubstr("given twice"));
}

TEST_F(ServedScripts, SC10_ATupleIsSeveralResults) {
  const Worker& worker = serve({.code = kCode});
  const auto results = worker.rpc_script_async("worker1", "net.several", kThree, "s", 1, kThree, kwarg("m", 2)).get();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(std::get<at::Tensor>(results[0]).equal(kThree * 2));
  EXPECT_EQ(std::get<std::string>(results[1]), "su");
  EXPECT_EQ(std::get<std::int64_t>(results[2]), 3);
  const Error error = worker.try_rpc_script("worker1", "net.several", kThree, "s", 1, kThree).error();
  EXPECT_EQ(error.code(), Errc::wrong_type);
  EXPECT_EQ(error.text(), "net.several does not return one tensor; use rpc_script_async");
  const auto nothing = worker.rpc_script_async("worker1", "net.nothing", kThree).get();
  ASSERT_EQ(nothing.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(nothing[0]));
}

TEST_F(ServedScripts, SC10_AResultThatDoesNotTravelIsNamedWithItsTypeAndTheWayOut) {
  const Worker& worker = serve({.code = kCode});
  const auto refusal_of = [&](const char* method) {
    const Error error = worker.rpc_script_async("worker1", method, kThree).result().error();
    EXPECT_EQ(error.code(), Errc::unsupported);
    return error.text();
  };
  EXPECT_EQ(
      refusal_of("net.table"),
      "net.table: its result has the type Dict[str, Tensor], which does not travel: return one value or one tuple of "
      "tensors, numbers, strings, none, or lists of tensors, bools, ints or floats instead");
  EXPECT_THAT(refusal_of("net.nested"),
              StartsWith("net.nested: part 2 of its result has the type Tuple[Tensor, int], which "));
  EXPECT_THAT(refusal_of("net.words"),
              StartsWith("net.words: its result has the type List[str], which does not travel: "));
}

TEST_F(ServedScripts, SC9_AnArgumentThatDoesNotTravelIsNamedWithItsTypeAndTheWayOut) {
  const Worker& worker = serve({.code = kCode});
  const auto refusal_of = [&](auto&&... arguments) {
    const Error error = worker.try_rpc_script("worker1", arguments...).error();
    EXPECT_EQ(error.code(), Errc::bad_arguments);
    return error.text();
  };
  const std::string table =
      "net.from_table: argument 'table' has the type Dict[str, Tensor], which does not travel: let the method take "
      "tensors, numbers, strings, none, or lists of tensors, bools, ints or floats instead";
  EXPECT_EQ(refusal_of("net.from_table", kThree), table);
  EXPECT_EQ(refusal_of("net.from_table", kThree, kThree), table);
  EXPECT_EQ(refusal_of("net.from_table", kwarg("table", kThree), kwarg("x", kThree)), table);
  EXPECT_THAT(refusal_of("net.from_pair", kThree),
              HasSubstr("argument 'pair' has the type Tuple[Tensor, Tensor], which "));
  EXPECT_THAT(refusal_of("net.from_words", kThree, "a"),
              HasSubstr("argument 'words' has the type Optional[List[str]], which "));
  EXPECT_TRUE(worker.rpc_script("worker1", "net.from_words", kThree, kwarg("by", 2.0)).equal(kThree * 2));
  EXPECT_THAT(refusal_of("net.from_words", kThree, kwarg("by", 2)), HasSubstr("'by'")) << "words has its default";
  EXPECT_THAT(refusal_of("net.from_words", kThree, std::monostate(), 2), HasSubstr("'by'")) << "none travels";
}

TEST_F(ServedScripts, SC10_AResultCanStayThere) {
  const Worker& worker = serve({.code = kCode});
  const RRef<at::Tensor> there = worker.remote_script("worker1", "net.scaled", kThree);
  EXPECT_EQ(there.owner_name(), "worker1");
  EXPECT_TRUE(there.to_here().equal(kThree * 2));
  const auto several = worker.remote_script("worker1", "net.several", kThree, "s", 1, kThree);
  EXPECT_EQ(several.try_to_here().error().code(), Errc::wrong_type);
}

TEST_F(ServedScripts, SC11_ForksRunOnTheThreadOfTheCall) {
  const Worker& worker = serve({.code = kCode});
  EXPECT_TRUE(worker.rpc_script("worker1", "net.forked", kThree).equal(kThree * 7));
  EXPECT_THAT(worker.try_rpc_script("worker1", "net.forked_boom", kThree).error().text(), HasSubstr("too small"));
}

TEST_F(ServedScripts, SC11_TheSameBitsEachTime) {
  const Worker& worker =
      serve({.code = "def forward(self, x):\n  return torch.sum(torch.exp(x * 0.3).sin() / 3 + x)\n"});
  const at::Tensor x = at::eye(37) * 0.7 + 0.1;
  const at::Tensor first = worker.rpc_script("worker1", "net.forward", x);
  EXPECT_TRUE(first.equal((((x * 0.3).exp().sin() / 3) + x).sum()));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(worker.rpc_script("worker1", "net.forward", x).equal(first));
}

TEST_F(Scripts, SC12_ManyThreadsRunOneScriptAtTheSameTime) {
  const auto script = load({.code = kCode}).value();
  const std::size_t forked = script->find("forked");
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 1; i <= 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        const auto result = script->run(forked, "net.forked", {kThree * i});
        if (result && std::get<at::Tensor>(result->at(0)).equal(kThree * (7 * i))) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST_F(ServedScripts, SC13_GradModeIsTheCallers) {
  const Worker& worker = serve({.code = kCode});
  EXPECT_TRUE(std::get<bool>(worker.rpc_script_async("worker1", "net.recorded", kThree).get()[0]));
  const at::NoGradGuard off;
  EXPECT_FALSE(std::get<bool>(worker.rpc_script_async("worker1", "net.recorded", kThree).get()[0]));
}

TEST_F(ServedScripts, SC14_AnErrorOfTheScriptHasItsTextAndPlace) {
  const Worker& worker = serve({.code = kCode});
  const Error error = worker.try_rpc_script("worker1", "net.boom", kThree).error();
  EXPECT_EQ(error.code(), Errc::remote_exception);
  EXPECT_EQ(error.worker(), "worker1");
  EXPECT_EQ(error.text(), "net.boom: AssertionError: too small (File \"<string>\", line 19, in boom)");
  EXPECT_EQ(worker
                .try_rpc_script("worker1", "net.numbers", std::vector{kThree, at::ones({2})},
                                std::vector<std::int64_t>{}, std::monostate())
                .error()
                .code(),
            Errc::remote_exception);
}

TEST_F(ServedScripts, SC1_WhatIsNotServedIsUnknown) {
  const Worker& worker = serve({.code = kCode});
  const Error error = worker.try_rpc_script("worker1", "other.forward", kThree).error();
  EXPECT_EQ(error.code(), Errc::unknown_function);
  EXPECT_THAT(error.text(), StartsWith("this worker serves no script with the method \"other.forward\": "
                                       "[roles.NAME.scripts] other = \"FILE.pt\""));
  EXPECT_THAT(error.text(), HasSubstr("it serves: net.boom, net.forked"));
  EXPECT_EQ(worker.try_rpc_script("worker1", "net.__hidden__", kThree).error().code(), Errc::unknown_function);
  EXPECT_EQ(worker.try_rpc_script("worker0", "net.scaled", kThree).error().code(), Errc::unknown_function);
}

}  // namespace
}  // namespace caftan::script_test
