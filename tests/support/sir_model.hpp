/// An epidemic on a grid, cut into patches: agents in tensors, halos of tensors as events. One agent per cell: 0
/// healthy, 1 ill, 2 immune.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "caftan/base/settings.hpp"
#include "caftan/sim/model.hpp"
#include "caftan/sim_tensor/uniform_for.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/tensor/payload.hpp"

namespace caftan::test {

struct SirConfig {
  int rows = 2, columns = 2;  // patches
  int size = 8;               // a patch has size x size agents
  double infect = 0.4;
  double recover = 0.1;

  static void settings(auto& s, SirConfig& c) {
    s("rows", c.rows, "patches").at_least(1);
    s("columns", c.columns, "patches").at_least(1);
    s("size", c.size, "of a patch").at_least(1);
    s("infect", c.infect, "probability for each ill neighbour").range(0, 1);
    s("recover", c.recover, "probability").range(0, 1);
  }
};

struct Halo {
  int side = 0;
  at::Tensor cells{};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& side& cells;
  }
};
struct Tick {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

/// size x size agents in a frame of their neighbours' states.
struct Patch {
  using Events = sim::Events<Halo, Tick>;
  const SirConfig* config;
  int row = 0, column = 0;
  at::Tensor numbers{}, cells{};  // numbers: each agent's own, [size, size]
  std::uint64_t tick = 0;

  void start(sim::LpContext& lp) {
    if (row + column == 0) cells[1][1].fill_(1);
    share(lp);
  }
  void on(const Halo& halo, sim::LpContext&) { edge(halo.side, 0).copy_(halo.cells); }
  void on(const Tick&, sim::LpContext& lp) {  // after all halos of the same time
    const at::Tensor own = part(cells, 1, 1);
    const at::Tensor ill = (cells == 1).to(at::kLong);
    const at::Tensor near = part(ill, 0, 1) + part(ill, 2, 1) + part(ill, 1, 0) + part(ill, 1, 2);
    const at::Tensor drawn = lp.uniform_for(numbers, ++tick);
    const at::Tensor caught = (own == 0) & (drawn < 1 - at::pow(1 - config->infect, near));
    const at::Tensor cured = (own == 1) & (drawn < config->recover);
    part(cells, 1, 1) += caught.to(at::kLong) + cured.to(at::kLong);
    lp.record("ill", static_cast<double>((own == 1).sum().item<std::int64_t>()));
    lp.record("immune", static_cast<double>((own == 2).sum().item<std::int64_t>()));
    share(lp);
  }
  void share(sim::LpContext& lp) const {
    for (int side = 0; side < 4; ++side) {  // north, south, west, east
      const int r = row + (side == 1) - (side == 0);
      const int k = column + (side == 3) - (side == 2);
      if (r < 0 || k < 0 || r >= config->rows || k >= config->columns) continue;
      // The edge is a view of this patch's cells, which the next tick changes.
      lp.schedule(1, Halo{side ^ 1, edge(side, 1)}, sim::LpId(static_cast<std::uint64_t>(r * config->columns + k)));
    }
    lp.schedule(1, Tick{}, lp.id(), {.priority = 1});
  }
  at::Tensor part(const at::Tensor& t, int r, int k) const {
    return t.narrow(0, r, config->size).narrow(1, k, config->size);
  }
  at::Tensor edge(int side, int depth) const {
    return cells.narrow(side / 2, side % 2 != 0 ? config->size + 1 - depth : depth, 1);
  }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& cells& tick;
  }
};

struct Sir {
  using Config = SirConfig;
  static void build(sim::Builder& builder, const Config& config) {
    builder.lookahead(1);
    builder.add<Patch>(static_cast<std::uint64_t>(config.rows * config.columns), [&config](sim::LpId id) {
      const int row = static_cast<int>(id.value) / config.columns;
      const int column = static_cast<int>(id.value) % config.columns;
      const int size = config.size;
      const at::Tensor first = at::arange(row * size, (row + 1) * size, at::kLong).unsqueeze(1);
      const at::Tensor second = at::arange(column * size, (column + 1) * size, at::kLong).unsqueeze(0);
      return Patch{&config, row, column, first * (config.columns * size) + second,
                   at::zeros({size + 2, size + 2}, at::kLong)};
    });
  }
};

}  // namespace caftan::test
