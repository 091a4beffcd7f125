#include "caftan/testing/cluster.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "caftan/transport/internal/channel_pair.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "tapped_channel.hpp"

namespace caftan::testing {
namespace {

/// Returns a connection of the kind that the environment names in CAFTAN_TEST_CHANNEL: loopback, without room that
/// ends, unless tests of this repository ask for another one (docs/testing.md).
LocalNetwork::Connection connect(transport::PollingExecutor& executor) {
  constexpr std::size_t kNeverFull = std::size_t{1} << 40;
  const char* const kind = std::getenv("CAFTAN_TEST_CHANNEL");
  if (!kind || kind == std::string_view("loopback")) return transport::make_loopback_pair(executor, kNeverFull);
  return transport::make_channel_pair(executor, kind).value();
}

}  // namespace

Network::Network(const std::function<void(Link&)>& on_link)
    : channels_(std::make_shared<Channels>()),
      local_(std::make_shared<LocalNetwork>([channels = channels_, on_link](transport::PollingExecutor& executor,
                                                                            const std::string& one,
                                                                            const std::string& other) {
        auto [mine, theirs] = connect(executor);
        const auto first = std::make_shared<TappedChannel>(executor, std::move(mine), one, other);
        const auto second = std::make_shared<TappedChannel>(executor, std::move(theirs), other, one);
        for (const auto& channel : {first, second}) {
          channels->push_back(channel);
          if (on_link) on_link(*channel);
        }
        return LocalNetwork::Connection(first, second);
      })) {}

Network::~Network() = default;

TappedChannel& Network::channel(const std::string& from, const std::string& to) {
  const auto found = std::find_if(channels_->rbegin(), channels_->rend(),
                                  [&](const auto& channel) { return channel->from() == from && channel->to() == to; });
  if (found == channels_->rend()) throw std::logic_error("no connection from '" + from + "' to '" + to + "'");
  return **found;
}

Network::Channels Network::channels_of(const std::string& worker) const {
  Channels found;
  for (const auto& channel : *channels_) {
    if (channel->from() == worker || channel->to() == worker) found.push_back(channel);
  }
  if (found.empty()) throw std::logic_error("no connection of '" + worker + "'");
  return found;
}

Link& Network::link(const std::string& from, const std::string& to) { return channel(from, to); }

void Network::filter_all(const Link::Filter& filter) {
  for (const auto& channel : *channels_) channel->set_filter(filter);
}

std::size_t Network::count(wire::FrameKind kind) const {
  std::size_t sum = 0;
  for (const auto& channel : *channels_) sum += channel->count(kind);
  return sum;
}

void Network::cut(const std::string& one, const std::string& other) {
  for (TappedChannel* const end : {&channel(one, other), &channel(other, one)}) {
    end->lose_lent();
    end->close_write();
  }
}

void Network::break_off(const std::string& one, const std::string& other) {
  channel(one, other).lose();
  channel(other, one).lose();
  cut(one, other);
}

void Network::kill(const std::string& worker) {
  for (const auto& channel : channels_of(worker)) {
    if (channel->from() == worker) break_off(worker, channel->to());
  }
}

void Network::cut_off(const std::string& worker) {
  for (const auto& channel : channels_of(worker)) channel->hold();
}

void Network::reconnect(const std::string& worker) {
  for (const auto& channel : channels_of(worker)) channel->release();
}

Cluster::Cluster(std::uint64_t seed, const std::vector<std::string>& names, const std::function<Registry()>& registry,
                 const Change& change)
    : executor_(std::make_shared<transport::SteppedExecutor>(seed)) {
  std::vector<WorkerAddress> world;
  for (const auto& name : names) world.push_back({name, ""});
  for (const auto& name : names) {
    WorkerOptions options;
    options.name = name;
    options.world = world;
    options.executor = executor_;
    options.network = network_.local();
    options.log = [this, name](std::string_view line) { log_.push_back(name + ": " + std::string(line)); };
    if (change) change(options);
    workers_.push_back(Worker::launch(std::move(options), registry()).value());
  }
  for (const auto& worker : workers_) worker->wait_until_ready().value();
}

Cluster::~Cluster() = default;

Worker& Cluster::operator[](std::string_view name) {
  for (const auto& worker : workers_) {
    if (worker->name() == name) return *worker;
  }
  throw std::logic_error("no worker '" + std::string(name) + "' in this cluster");
}

void Cluster::run_until_idle() { executor_->run(); }

void Cluster::advance(base::Duration by) {
  run_until_idle();
  const base::TimePoint end = now() + by;
  executor_->post_at(end, [] {});  // the clock moves from timer to timer, so a timer at `end` makes it stop there
  do {
    executor_->advance_to_next_timer();
    executor_->run();
  } while (now() < end);
}

base::TimePoint Cluster::now() const noexcept { return executor_->clock().now(); }

}  // namespace caftan::testing
