// Who may not join: other settings than ours, and what is told of connections that were refused.

#include "caftan/app/settings_digest.hpp"
#include "worker/worker_core.hpp"

namespace caftan::actors {
namespace {

constexpr std::size_t kMostRefusalsTold = 8;  // strangers may come as often as they like

/// Whether a refusal may be the reason why a member does not come; else it was nobody who speaks to us.
bool concerns_members(const Error& refusal) {
  switch (refusal.code()) {
    case Errc::protocol_mismatch:
    case Errc::wrong_cluster:
    case Errc::not_authenticated:
    case Errc::unknown_worker:
    case Errc::invalid_config:
    case Errc::duplicate_worker:
      return true;
    default:
      return false;
  }
}
}  // namespace

Result<void> WorkerCore::check_settings(const net::PeerInfo& peer) {
  if (peer.settings.empty() || options_.settings.empty() || peer.settings == options_.settings) return {};
  std::string tables;
  for (const std::string& table : app::differing_tables(options_.settings, peer.settings)) {
    tables += (tables.empty() ? "[" : ", [") + table + "]";
  }
  // The tables come first: the peer gets no more than the beginning (HS-7).
  Error error(Errc::invalid_config, "other settings" + (tables.empty() ? "" : " in " + tables) + ": worker '" +
                                        peer.name + "' was started from another file or with other overrides than '" +
                                        name() + "'");
  const std::lock_guard lock(mutex_);
  if (!other_settings_) other_settings_ = error;
  return error;
}

/// HS-14.
void WorkerCore::log_refusal(const Error& error) {
  using Action = net::RefusalLog::Action;
  const Errc code = error.code();
  Action action{};
  TimePoint until{};
  {
    const std::lock_guard lock(mutex_);
    action = refusal_log_.on_refused(code, options_.executor->clock().now());
    until = refusal_log_.until(code);
  }
  if (action == Action::write) log("a connection was refused: " + error.message());
  if (action != Action::count_first) return;
  options_.executor->post_at(until, [weak = std::weak_ptr(shared_core()), code] {
    const auto self = weak.lock();
    if (!self) return;
    std::size_t counted = 0;
    {
      const std::lock_guard lock(self->mutex_);
      counted = self->refusal_log_.end_of_minute(code);
    }
    self->log(std::to_string(counted) +
              " more connections were refused within a minute: " + std::string(to_string(code)));
  });
}

/// The refused side knows; here people wait for somebody who will not come.
void WorkerCore::refused(const Error& error) {
  log_refusal(error);
  std::optional<Error> other_settings;
  {
    const std::lock_guard lock(mutex_);
    if (life_ != Life::starting || start_error_) return;
    other_settings = other_settings_;
    if (!other_settings && !concerns_members(error)) return;
    last_refusal_ = error;
    if (!other_settings && ++refusals_ > kMostRefusalsTold) return;
  }
  if (other_settings) return fail_start(*other_settings);
  if (options_.on_refused) options_.on_refused(error);
}

}  // namespace caftan::actors
