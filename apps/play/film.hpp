/// Scenes one after the other as the text of an SVG file that moves: browsers show it, no program is needed.
#pragma once

#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "play/scene.hpp"

namespace caftan::play {

/// Returns a picture that shows each scene for 1 / `per_s` s, again and again. The same scenes give the same bytes.
/// @param title  any bytes
/// Errors: bad_arguments (no scene, or `per_s` not above 0).
Result<std::string> render_film(const std::vector<Scene>& scenes, double per_s, const std::string& title);

}  // namespace caftan::play
