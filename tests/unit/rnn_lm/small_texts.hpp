/// Texts, and configs small enough for a test.
#pragma once

#include <filesystem>
#include <string>

#include "folder.hpp"
#include "rnn_lm/config.hpp"

namespace caftan::rnn_lm {

/// A text with something to learn in it.
inline std::string make_text(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) {
    text += "line " + std::to_string(i % 7) + " says " + std::string(i % 3 + 1, "abc"[i % 3]) + ".\n";
  }
  return text.substr(0, size);
}

inline TrainerConfig make_config(const std::filesystem::path& text) {
  TrainerConfig config;
  config.corpus.path = text;
  config.emb = 8;
  config.hid = 12;
  config.bptt = 10;
  config.batch = 4;
  return config;
}

}  // namespace caftan::rnn_lm
