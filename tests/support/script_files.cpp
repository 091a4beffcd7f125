#include "script_files.hpp"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <unistd.h>

#include <atomic>
#include <memory>

namespace caftan::test {
namespace {

/// Knows `torch` as C++ code does, and `fork`, which only files of scripts do.
struct Names final : torch::jit::Resolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction&,
                                                         const torch::jit::SourceRange&) override {
    if (name == "torch") return std::make_shared<torch::jit::BuiltinModule>("aten");
    if (name == "fork") return torch::jit::SpecialFormValue::create(c10::prim::fork);
    return nullptr;
  }
};

torch::jit::Module make_module(const std::string& name, const std::string& code, const ScriptSource& source) {
  torch::jit::Module module(name);
  for (const auto& [parameter, value] : source.parameters) {
    const at::Tensor own = value.detach().clone().set_requires_grad(value.requires_grad());
    module.register_parameter(parameter, own, false);
  }
  for (const auto& [buffer, value] : source.buffers) module.register_buffer(buffer, value.clone());
  module.register_attribute("training", c10::BoolType::get(), source.training);
  module.register_attribute("steps", c10::IntType::get(), 0);
  if (!source.inner.empty() && name == "Net") {
    module.register_module("inner", make_module("Inner", source.inner, source));
  }
  module.define(code, std::make_shared<Names>());
  return module;
}

}  // namespace

void save_script(const std::filesystem::path& file, const ScriptSource& source) {
  make_module("Net", source.code, source).save(file.string());
}

void save_archive(const std::filesystem::path& file, const std::vector<std::pair<std::string, std::string>>& records,
                  std::uint64_t version) {
  caffe2::serialize::PyTorchStreamWriter writer(file.string());
  if (version > 0) writer.setMinVersion(version);
  for (const auto& [name, bytes] : records) writer.writeRecord(name, bytes.data(), bytes.size());
  writer.writeEndOfFile();
}

ScriptFolder::ScriptFolder() {
  static std::atomic<int> number{0};
  path_ = std::filesystem::temp_directory_path() /
          ("caftan_scripts_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
  std::filesystem::create_directories(path_);
}
ScriptFolder::~ScriptFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
std::filesystem::path ScriptFolder::save(const std::string& name, const ScriptSource& source) const {
  save_script(path_ / name, source);
  return path_ / name;
}

}  // namespace caftan::test
