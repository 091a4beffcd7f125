#include "requirements.hpp"

#include <sys/sysinfo.h>

#include <filesystem>
#include <limits>

#include "caftan/base/settings_io.hpp"
#include "checkpoint.hpp"
#include "corpus/corpus.hpp"
#include "text.hpp"

namespace caftan::rnn_lm {
namespace {

/// Returns the bytes that the LSTM's parameters, their gradients and the optimizer's state take: the least that a
/// training needs.
double least_memory(const TrainerConfig& config) {
  const auto emb = static_cast<double>(config.emb);
  const auto hid = static_cast<double>(config.hid);
  const auto layers = static_cast<double>(config.layers);
  const double parameters = 4 * hid * (emb + hid + 2) + (layers - 1) * 4 * hid * (2 * hid + 2);
  const double copies = config.optimizer.name == OptimizerConfig::Name::adam ? 4 : 2;  // Adam keeps two moments
  return copies * parameters * sizeof(float);
}

std::string gib(double bytes) { return format_fixed(bytes / (1U << 30), 1) + " GiB"; }

/// Appends what prevents the training from going on from its checkpoint, and notes what it takes from the checkpoint
/// instead of the config.
void find_missing_to_resume(const TrainerConfig& config, const ModelFacts& here,
                            std::vector<app::MissingRequirement>& missing) {
  const auto state = check_checkpoint(*config.resume, here, config.max_steps);
  if (!state) {
    missing.push_back({.keys = {"resume", "max_steps"}, .text = state.error().text()});
  } else if (state->learning_rate != config.optimizer.lr) {
    missing.push_back({.keys = {"optimizer.lr"},
                       .text = "optimizer.lr is not read: the training goes on with the checkpoint's learning rate, " +
                               format_number(state->learning_rate),
                       .kind = app::MissingRequirement::Kind::note});
  }
}

}  // namespace

std::int64_t memory_of_this_machine() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>((info.totalram + info.totalswap) * info.mem_unit);
}

std::vector<app::MissingRequirement> find_missing(const TrainerConfig& config, const TrainerPlace& place) {
  std::vector<app::MissingRequirement> missing;
  if (const double needed = least_memory(config); needed > static_cast<double>(place.memory)) {
    missing.push_back({.keys = {"hid", "layers", "emb"},
                       .text = "the LSTM's parameters, their gradients and the optimizer's state take " + gib(needed) +
                               ", this machine has " + gib(static_cast<double>(place.memory)) +
                               " of memory; lower hid, layers or emb"});
  }
  const auto corpus = corpus::read_corpus(config.corpus);
  const auto room = corpus ? check_room(config, *corpus) : corpus.error();
  if (!corpus) {
    missing.push_back({.keys = {"corpus.path", "corpus.name", "corpus"}, .text = corpus.error().text()});
  } else if (!room) {
    missing.push_back({.keys = {"corpus.path", "corpus.name", "corpus", "batch", "bptt"}, .text = room.error().text()});
  }
  if (!config.resume) return missing;
  if (std::error_code ignored; !std::filesystem::is_directory(*config.resume, ignored)) {
    missing.push_back({.keys = {"resume"},
                       .text = "there is no folder " + config.resume->string() +
                               "; a path without a leading / is relative to the file"});
  } else if (room) {
    find_missing_to_resume(config, facts_of(config, *corpus, place.parameter_seed), missing);
  }
  return missing;
}

}  // namespace caftan::rnn_lm
