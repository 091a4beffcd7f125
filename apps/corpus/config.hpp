/// The settings that say where a text comes from: `[corpus]` of a role's config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace caftan::corpus {

struct CorpusConfig {
  enum class Name : std::uint8_t { common_licenses, king_james_bible, sample };

  Name name = Name::common_licenses;
  std::optional<std::filesystem::path> path;  ///< a file, or a folder of files; instead of `name`

  static void settings(auto& s, CorpusConfig& c) {
    s("name", c.name, "text from this machine")
        .one_of({{"common-licenses", "on every Debian"},
                 {"king-james-bible", "packages bible-kjv, bible-kjv-text"},
                 {"sample", "six short texts, made by the program"}});
    s("path", c.path, "a UTF-8 file, or a folder of such files, instead of `name`");
  }
};

}  // namespace caftan::corpus
