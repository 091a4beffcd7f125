/// Scenes as lines of characters.
#pragma once

#include <string>
#include <vector>

#include "play/scene.hpp"

namespace caftan::play {

/// Returns `rows` lines of `columns` characters each: `_` is ground, `O` a body, `#` a limb, `*` a goal. A character is
/// twice as high as wide; the scene keeps its proportions.
std::vector<std::string> render_text(const Scene& scene, int columns, int rows);

}  // namespace caftan::play
