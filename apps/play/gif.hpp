/// Scenes one after the other as an animated GIF file, which pages and slides show.
#pragma once

#include <filesystem>
#include <vector>

#include "caftan/base/result.hpp"
#include "play/scene.hpp"

namespace caftan::play {

/// The pictures a second that viewers show; they slow down a file that asks for more.
inline constexpr double kMostPicturesPerS = 50;

/// Writes a picture of each scene, which stays for 1 / `per_s` s, again and again. Above kMostPicturesPerS some scenes
/// are left out, not the last one, and the episode takes as long as without that. The same scenes give the same bytes.
/// Errors: bad_arguments (no scene, or `per_s` not above 0), io_error (the file cannot be written).
Result<void> write_gif(const std::filesystem::path& file, const std::vector<Scene>& scenes, double per_s);

}  // namespace caftan::play
