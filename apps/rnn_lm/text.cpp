#include "text.hpp"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <vector>

#include "caftan/wire/checkpoint_file.hpp"
#include "corpus.hpp"

namespace caftan::rnn_lm {

Result<Text> read_text(const TrainerConfig& config) {
  const auto corpus = read_corpus(config.corpus);
  if (!corpus) return corpus.error();
  const auto named = [&](const Error& error) { return Error(error.code(), corpus->source + ": " + error.text()); };
  std::string whole;
  for (const std::string& text : corpus->texts) whole += text;
  Vocabulary vocabulary(whole);
  std::vector<at::Tensor> learned;
  std::vector<at::Tensor> kept;
  for (const std::string& text : corpus->texts) {
    const at::Tensor characters = vocabulary.encode(text);
    const std::int64_t tenth = characters.numel() / 10;
    learned.push_back(characters.narrow(0, 0, characters.numel() - tenth));
    kept.push_back(characters.narrow(0, characters.numel() - tenth, tenth));
  }
  const at::Tensor train_characters = at::cat(learned);
  const at::Tensor valid_characters = at::cat(kept);
  auto train = Windows::make(train_characters, config.batch, config.bptt);
  if (!train) return named(train.error());
  const std::int64_t targets = valid_characters.numel() - 1;
  const std::int64_t rows = std::clamp<std::int64_t>(targets / config.bptt, 1, config.batch);
  auto valid = Windows::make(valid_characters, rows, std::clamp<std::int64_t>(targets / rows, 1, config.bptt));
  if (!valid) return named(valid.error());
  return Text{.source = corpus->source,
              .checksum = wire::crc32c(std::as_bytes(std::span(whole))),
              .train_size = train_characters.numel(),
              .valid_size = valid_characters.numel(),
              .vocabulary = std::move(vocabulary),
              .train = *std::move(train),
              .valid = *std::move(valid)};
}

}  // namespace caftan::rnn_lm
