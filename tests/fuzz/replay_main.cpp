// Where there is no libFuzzer (g++): runs a target over each file of its corpus and over seeded mutations of it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;
constexpr int kMutationsOfEach = 2000;

Input mutate(Input input, const Input& other, std::mt19937_64& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    if (input.empty()) input.push_back(0);
    const std::size_t at = below(input.size());
    switch (below(6)) {
      case 0:
        input[at] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        input[at] = static_cast<std::uint8_t>(below(2) == 0 ? 0xff : below(256));
        break;
      case 2:
        input.resize(at);
        break;
      case 3:
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(below(256)));
        break;
      case 4:
        input.erase(input.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      default:  // joins the beginning of this input with the end of another one
        input.resize(at);
        if (!other.empty())
          input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size())), other.end());
    }
  }
  return input;
}

// Static, so that the handler of a fatal signal can reach the input.
const Input* running = nullptr;

void save_and_die(int signal) {
  const int file = open("fuzz-failure.bin", O_CREAT | O_WRONLY | O_TRUNC, 0644);
  if (file >= 0 && write(file, running->data(), running->size()) >= 0) {
    constexpr char text[] = "the input is in fuzz-failure.bin\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void run(const Input& input) {
  running = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]), 2;
  std::vector<std::filesystem::path> paths;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], failure)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) return std::fprintf(stderr, "no corpus in %s\n", argv[1]), 2;

  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, save_and_die);
  run({});
  for (const Input& input : corpus) run(input);
  std::mt19937_64 random(1);
  for (int round = 0; round < kMutationsOfEach; ++round) {
    for (std::size_t i = 0; i < corpus.size(); ++i) {
      run(mutate(corpus[i], corpus[random() % corpus.size()], random));
    }
  }
  std::printf("%zu inputs of the corpus, %d mutations of each\n", corpus.size(), kMutationsOfEach);
}
