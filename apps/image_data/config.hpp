/// The settings that say where labelled images come from and which of them a trainer gets: `[data]` of a trainer's
/// config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>

namespace caftan::image_data {

/// Which images of the training data a trainer learns from.
enum class Partition { split, full };

struct DataConfig {
  enum class Name { fashion_mnist, shapes, noise };

  Name name = Name::fashion_mnist;
  std::optional<std::filesystem::path> path{};  ///< a folder; only for fashion-mnist
  std::optional<std::int64_t> limit{};          ///< images
  Partition partition = Partition::split;

  static void settings(auto& s, DataConfig& c) {
    s("name", c.name, "the images")
        .one_of({{"fashion-mnist", "60,000 of clothes, of the package dataset-fashion-mnist or of `path`"},
                 {"shapes", "2,000 drawings of ten shapes, made by the program: no data is needed"},
                 {"noise", "600 colour images of random pixels and labels, for measuring: nothing can be learned"}});
    s("path", c.path, "the folder with the four files of Fashion-MNIST, or of data of the same form, such as MNIST")
        .default_text("the package's folder");
    s("limit", c.limit, "only the first so many training images").at_least(1).unit("images").default_text("all");
    s("partition", c.partition, "what each trainer learns from")
        .one_of({{"split", "its own equal part of the training images"}, {"full", "all training images"}});
  }
};

}  // namespace caftan::image_data
