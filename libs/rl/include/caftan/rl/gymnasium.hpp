/// Environments of Gymnasium: a process of Python that this library starts and talks to over a socket, with n
/// environments in it. Start with `Environments::make_vector("gymnasium:LunarLander-v3", n)`. Rules:
/// docs/protocols/gymnasium.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"
#include "caftan/rl/vector_environment.hpp"

namespace caftan::rl {

/// How a process of Gymnasium is started and waited for. As part of a role's Config it is a table of the file:
/// `s("gymnasium", c.gymnasium, "...")`.
struct GymnasiumOptions {
  std::string python = "python3";  ///< the interpreter, a path or a name that is looked up in PATH
  base::Duration start_limit = std::chrono::seconds(60);  ///< until the environments are there; imports take long
  base::Duration reply_limit = std::chrono::seconds(60);  ///< for a reset or a step of all environments
  /// A program that speaks the protocol in place of the one that ships; empty = that one. No key of files.
  std::filesystem::path script{};

  static void settings(auto& s, GymnasiumOptions& c) {
    s("python", c.python, "interpreter that has Gymnasium, a path or a name in PATH");
    s("start_limit", c.start_limit, "until the environments of a process are there").greater_than(base::Duration(0));
    s("reply_limit", c.reply_limit, "for a reset or a step of the environments of a process")
        .greater_than(base::Duration(0));
  }
};

/// The name of an environment of Gymnasium begins so: "gymnasium:LunarLander-v3".
inline constexpr std::string_view kGymnasiumPrefix = "gymnasium:";

/// Starts a process with n environments, which resets by itself those whose episode ends.
/// @param id  as gymnasium.make takes it, without the prefix; of a module, "module:Name-v0", as there
/// @param n   at least 1
/// Errors: invalid_config (no such interpreter, Gymnasium is not installed there, no such environment, spaces that are
/// not supported; the text says what to install), timeout (start_limit), limit_exceeded, peer_down (it ended),
/// malformed_payload. Steps and resets: timeout (reply_limit), peer_down, remote_exception (the environment raised),
/// user_error (its kind as CheckedEnvironment's), malformed_payload; after all but bad_arguments the process is ended,
/// and each call fails alike. Threads: any; blocks.
Result<std::unique_ptr<VectorEnvironment>> make_gymnasium(std::string_view id, std::size_t n,
                                                          const GymnasiumOptions& options = {});

/// Starts a process with one environment. Errors: as make_gymnasium.
Result<std::unique_ptr<Environment>> make_single_gymnasium(std::string_view id, const GymnasiumOptions& options = {});

}  // namespace caftan::rl
