#include "text.hpp"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <vector>

#include "caftan/wire/checkpoint_file.hpp"

namespace caftan::rnn_lm {
namespace {

std::int64_t characters_in(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::int64_t kept_of(std::int64_t characters) { return characters / 10; }

struct Division {
  std::int64_t rows, length;
};

/// Returns how the `kept` characters for validation are divided into rows and windows.
Division divide(const TrainerConfig& config, std::int64_t kept) {
  const std::int64_t targets = kept - 1;
  const std::int64_t rows = std::clamp<std::int64_t>(targets / config.bptt, 1, config.batch);
  return {rows, std::clamp<std::int64_t>(targets / rows, 1, config.bptt)};
}

}  // namespace

std::string whole_text(const corpus::Corpus& corpus) {
  std::string whole;
  for (const std::string& text : corpus.texts) whole += text;
  return whole;
}

std::uint32_t checksum_of(const std::string& whole) noexcept { return wire::crc32c(std::as_bytes(std::span(whole))); }

Result<void> check_room(const TrainerConfig& config, const corpus::Corpus& corpus) {
  std::int64_t learned = 0;
  std::int64_t kept = 0;
  for (const std::string& text : corpus.texts) {
    const std::int64_t characters = characters_in(text);
    kept += kept_of(characters);
    learned += characters - kept_of(characters);
  }
  const auto [rows, length] = divide(config, kept);
  Result<void> room = check_room(learned, config.batch, config.bptt);
  if (room) room = check_room(kept, rows, length);
  if (room) return {};
  return Error(room.error().code(), corpus.source + ": " + room.error().text());
}

Result<Text> read_text(const TrainerConfig& config) {
  const auto corpus = corpus::read_corpus(config.corpus);
  if (!corpus) return corpus.error();
  if (auto room = check_room(config, *corpus); !room) return room.error();
  const std::string whole = whole_text(*corpus);
  Vocabulary vocabulary(whole);
  std::vector<at::Tensor> learned;
  std::vector<at::Tensor> kept;
  for (const std::string& text : corpus->texts) {
    const at::Tensor characters = vocabulary.encode(text);
    const std::int64_t tenth = kept_of(characters.numel());
    learned.push_back(characters.narrow(0, 0, characters.numel() - tenth));
    kept.push_back(characters.narrow(0, characters.numel() - tenth, tenth));
  }
  const at::Tensor train_characters = at::cat(learned);
  const at::Tensor valid_characters = at::cat(kept);
  auto train = Windows::make(train_characters, config.batch, config.bptt);
  if (!train) return train.error();
  const auto [rows, length] = divide(config, valid_characters.numel());
  auto valid = Windows::make(valid_characters, rows, length);
  if (!valid) return valid.error();
  return Text{.source = corpus->source,
              .checksum = checksum_of(whole),
              .train_size = train_characters.numel(),
              .valid_size = valid_characters.numel(),
              .vocabulary = std::move(vocabulary),
              .train = *std::move(train),
              .valid = *std::move(valid)};
}

}  // namespace caftan::rnn_lm
