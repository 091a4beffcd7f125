#include "hybrid_ddp/passages.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <span>
#include <utility>

#include "caftan/base/keyed_random.hpp"
#include "caftan/wire/checkpoint_file.hpp"

namespace caftan::hybrid_ddp {
namespace {

constexpr std::size_t kTestEvery = 10;  // each tenth passage is measured with, never learned from

at::Tensor as_tensor(const std::vector<std::int64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

/// Collects passages into bags.
class BagMaker {
 public:
  void add(const Passage& passage) {
    offsets_.push_back(static_cast<std::int64_t>(words_.size()));
    words_.insert(words_.end(), passage.words.begin(), passage.words.end());
    labels_.push_back(passage.label);
  }
  Bags make() const { return {as_tensor(words_), as_tensor(offsets_), as_tensor(labels_)}; }

 private:
  std::vector<std::int64_t> words_, offsets_, labels_;
};

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalpha(byte) != 0) {
      word += static_cast<char>(std::tolower(byte));
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

corpus::Corpus split_books(const corpus::Corpus& bible) {
  corpus::Corpus books{.source = bible.source, .texts = {}, .names = {}};
  std::string_view left = bible.texts.front();
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    const std::size_t verse = line.find(' ');
    if (colon == std::string_view::npos || verse == std::string_view::npos || verse < colon) continue;
    std::size_t chapter = colon;
    while (chapter > 0 && std::isdigit(static_cast<unsigned char>(line[chapter - 1])) != 0) --chapter;
    const std::string book(line.substr(0, chapter));
    if (books.names.empty() || books.names.back() != book) {
      books.names.push_back(book);
      books.texts.emplace_back();
    }
    books.texts.back().append(line.substr(verse)).append("\n");
  }
  return books;
}

corpus::Corpus newest_versions(const corpus::Corpus& licences) {
  const auto licence_of = [](const std::string& name) { return name.substr(0, name.find('-')); };
  corpus::Corpus newest{.source = licences.source, .texts = {}, .names = {}};
  for (std::size_t i = 0; i < licences.texts.size(); ++i) {  // in the order of names: the newest version comes last
    const std::string& name = licences.names[i];
    if (i + 1 < licences.texts.size() && licence_of(licences.names[i + 1]) == licence_of(name)) continue;
    newest.texts.push_back(licences.texts[i]);
    newest.names.push_back(name);
  }
  return newest;
}

Result<Passages> make_passages(const corpus::Corpus& corpus, std::int64_t length, std::int64_t per_class) {
  Passages made{.source = corpus.source};
  std::map<std::string, std::int64_t> numbers;
  std::vector<std::vector<std::string>> texts;
  std::string whole;
  for (const std::string& text : corpus.texts) {
    whole += text;
    texts.push_back(words_of(text));
    for (const std::string& word : texts.back()) numbers.emplace(word, 0);
  }
  made.checksum = wire::crc32c(std::as_bytes(std::span(whole)));
  for (auto& [word, number] : numbers) number = made.vocabulary++;
  const auto size = static_cast<std::size_t>(length);
  for (std::size_t text = 0; text < texts.size(); ++text) {
    const std::vector<std::string>& words = texts[text];
    if (words.size() < size * kTestEvery) continue;  // too short to learn from and to measure with
    const auto label = static_cast<std::int64_t>(made.classes.size());
    made.classes.push_back(corpus.names[text]);
    const std::size_t count = std::min(words.size() / size, static_cast<std::size_t>(per_class));
    for (std::size_t i = 0; i < count; ++i) {
      Passage passage{.words = {}, .label = label};
      for (std::size_t word = i * size; word < (i + 1) * size; ++word) passage.words.push_back(numbers.at(words[word]));
      (i % kTestEvery == kTestEvery - 1 ? made.test : made.train).push_back(std::move(passage));
    }
  }
  if (made.classes.size() >= 2) return made;
  return Error(Errc::invalid_config, corpus.source + ": " + std::to_string(made.classes.size()) + " of " +
                                         std::to_string(corpus.texts.size()) + " texts have ten passages of " +
                                         std::to_string(length) +
                                         " words, and a choice needs two; lower words, or take other texts");
}

Result<Passages> read_passages(const TrainerConfig& config) {
  const auto corpus = corpus::read_corpus(config.corpus);
  if (!corpus) return corpus.error();
  using Name = corpus::CorpusConfig::Name;
  const auto cut = [&config](const corpus::Corpus& texts) {
    return make_passages(texts, config.words, config.per_class);
  };
  if (!config.corpus.path && config.corpus.name == Name::king_james_bible) return cut(split_books(*corpus));
  if (!config.corpus.path && config.corpus.name == Name::common_licenses) return cut(newest_versions(*corpus));
  return cut(*corpus);
}

double majority_share(const Passages& passages) {
  std::vector<std::int64_t> counts(passages.classes.size(), 0);
  for (const Passage& passage : passages.test) ++counts[static_cast<std::size_t>(passage.label)];
  return static_cast<double>(*std::max_element(counts.begin(), counts.end())) /
         static_cast<double>(passages.test.size());
}

Bags draw_bags(const Passages& passages, const Draw& draw) {
  const std::size_t own = (passages.train.size() - draw.trainer + draw.trainers - 1) / draw.trainers;
  BagMaker bags;
  for (std::int64_t i = 0; i < draw.batch; ++i) {
    const auto bits =
        base::random_block({.seed = draw.seed, .context = static_cast<std::uint64_t>(draw.step), .call = draw.trainer},
                           static_cast<std::uint64_t>(i));
    const std::uint64_t number = (std::uint64_t{bits[0]} << 32 | bits[1]) % own;
    bags.add(passages.train[draw.trainer + number * draw.trainers]);
  }
  return bags.make();
}

Bags bags_of(const std::vector<Passage>& passages, std::size_t begin, std::size_t end) {
  BagMaker bags;
  for (std::size_t i = begin; i < end; ++i) bags.add(passages[i]);
  return bags.make();
}

}  // namespace caftan::hybrid_ddp
