/// `Script`: a TorchScript file that was read and checked, whose methods run here. Users register one with
/// `Registry::add_script`. Rules: docs/protocols/script.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/rpc/operators.hpp"

namespace caftan::rpc {

/// What a script may do, which its graphs are held to before anything of it runs (SC-4 to SC-7).
enum class ScriptUse : std::uint8_t {
  functions,  ///< called by any number of threads: no state, no random numbers
  module,     ///< one call at a time: it may change its own state, and draw random numbers
};

/// A larger file is refused unread.
inline constexpr std::uint64_t kMaxScriptBytes = std::uint64_t{4} << 30;

/// Threads: any, where `use` is functions; else one at a time.
class Script {
 public:
  /// Reads a file that torch.jit.save wrote. Its tensors come to the CPU.
  /// @param file  of this machine; never one that a peer names
  /// Errors: io_error (no such file, or unreadable); invalid_config (no script, damaged, too large, of another schema,
  ///   or one that calls what is not allowed, with the operator, the method and the way out). Texts are one line.
  static Result<std::shared_ptr<Script>> load(const std::filesystem::path& file, ScriptUse use);

  ~Script();
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  /// Returns the names of the methods that may be called, in the order of the file.
  const std::vector<std::string>& methods() const noexcept { return methods_; }
  /// Returns the place of a method in methods(), or its size.
  std::size_t find(std::string_view method) const noexcept;

  /// Returns the module's parameters under the names of the file, those of submodules as "encoder.weight".
  std::vector<std::pair<std::string, at::Tensor>> parameters() const;
  /// Returns its buffers, as parameters does.
  std::vector<std::pair<std::string, at::Tensor>> buffers() const;
  /// Sets the mode of the module and its submodules. Precondition: read for use as a module.
  void train(bool on);
  /// Returns the mode that the module has.
  bool is_training() const;

  /// Runs a method, on this thread alone, and returns its result; of a tuple its parts.
  /// @param method  its place in methods()
  /// @param name    as the caller knows it, for texts
  /// Errors: bad_arguments (they do not fit the method's schema), remote_exception (the script's own error),
  ///   limit_exceeded (no memory), unsupported (a result that does not travel).
  Result<OperatorValues> run(std::size_t method, std::string_view name,
                             const std::vector<OperatorArgument>& arguments) const;

 private:
  struct Loaded;
  explicit Script(std::unique_ptr<Loaded> loaded);

  std::unique_ptr<Loaded> loaded_;
  std::vector<std::string> methods_;
};

}  // namespace caftan::rpc
