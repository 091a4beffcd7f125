/// What the unit tests of the backward protocol share: lives, ids, a table of recorded messages, and looking into
/// actions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "caftan/autograd/internal/pass_actions.hpp"
#include "caftan/autograd/internal/recorded_messages.hpp"

namespace caftan::autograd {

constexpr WorkerLife kHome{{0}, {10}};
constexpr WorkerLife kA{{1}, {11}};
constexpr WorkerLife kB{{2}, {12}};
constexpr WorkerLife kC{{3}, {13}};
constexpr ContextId kContext{kHome.id, kHome.incarnation, 1};

constexpr AutogradMessageId message_of(WorkerLife sender, std::uint64_t number) {
  return {sender.id, sender.incarnation, number};
}
constexpr PassId pass(std::uint64_t n) { return {kContext, {n}}; }

/// Returns the header of pass n; all earlier passes have ended with ok.
inline PassHeader header(std::uint64_t n, WorkerLife initiator, Mode mode = Mode::smart, bool keep = false) {
  DecidedSet decided;
  for (std::uint64_t i = 1; i < n; ++i) decided.decide_next(true);
  return {pass(n), decided, initiator, mode, keep};
}

/// The recorded messages that one worker has sent, each with its receiver.
struct Sent final : RecordedMessages {
  std::map<AutogradMessageId, WorkerLife> to;
  std::optional<WorkerLife> receiver_of(AutogradMessageId message) const override {
    const auto at = to.find(message);
    if (at == to.end()) return std::nullopt;
    return at->second;
  }
  std::vector<AutogradMessageId> sends() const override {
    std::vector<AutogradMessageId> all;
    for (const auto& [message, life] : to) all.push_back(message);
    return all;
  }
};

/// Returns the actions of kind T.
template <class T>
std::vector<T> all_of(const PassActions& actions) {
  std::vector<T> found;
  for (const PassAction& action : actions) {
    if (const T* match = std::get_if<T>(&action)) found.push_back(*match);
  }
  return found;
}

/// Returns the messages of kind T that are sent to `to`.
template <class T>
std::vector<T> sent_to(WorkerLife to, const PassActions& actions) {
  std::vector<T> found;
  for (const Send& send : all_of<Send>(actions)) {
    const T* match = std::get_if<T>(&send.message);
    if (send.to == to && match) found.push_back(*match);
  }
  return found;
}

inline Error error(Errc code) { return Error(code, "as the test says"); }

}  // namespace caftan::autograd
