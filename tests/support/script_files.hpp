/// TorchScript files, made while a test runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace caftan::test {

/// A module of TorchScript.
struct ScriptSource {
  std::string code;  ///< its methods; `torch`, `fork` and `print` are known
  std::vector<std::pair<std::string, at::Tensor>> parameters{};
  std::vector<std::pair<std::string, at::Tensor>> buffers{};
  std::string inner{};   ///< methods of a submodule `inner`, with parameters and buffers of the same names and values;
                         ///< empty = no submodule
  bool training = true;  ///< its attribute
};

/// Writes the module as torch.jit.save does.
void save_script(const std::filesystem::path& file, const ScriptSource& source);

/// Writes an archive of PyTorch with these records: no script, or one of another schema.
/// @param version  of the format, at least that of this libtorch
void save_archive(const std::filesystem::path& file, const std::vector<std::pair<std::string, std::string>>& records,
                  std::uint64_t version = 0);

/// A folder of this process, which goes with this object.
class ScriptFolder {
 public:
  ScriptFolder();
  ~ScriptFolder();
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Writes the module to a file of that name. Returns the file.
  std::filesystem::path save(const std::string& name, const ScriptSource& source) const;

 private:
  std::filesystem::path path_;
};

}  // namespace caftan::test
