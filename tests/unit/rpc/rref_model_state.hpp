/// What the world of the RRef model test is made of: frames, lanes, mailboxes, actors, handles and calls.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/rpc/internal/creation_ledger.hpp"
#include "caftan/rpc/internal/fork_table.hpp"
#include "caftan/rpc/internal/user_fork.hpp"

namespace caftan::rpc::model {

/// A world in which one rule does not hold. The classes under test know nothing of it.
enum class Without : std::uint8_t {
  nothing,
  rr1_incarnation_in_ids,
  rr2_one_order,
  rr3_manifest_first,
  rr4_taking_back,
  rr4_manifest_is_the_watch,
  rr4_the_counting_session,
  rr5_answer_before_accept,
  rr5_accept,
  rr6_waiting_for_confirmation,
  rr7_waiting_for_children,
  rr7_held_proxies,
  rr7_handles_of_calls,
  rr8_unfinished_creation,
  rr8_running_methods,
  rr8_answers_at_the_end,
  rr9_parking,
  rr9_end_of_parking,
  rr10_owners_word,
  rr10_peer_down_for_good,
  rr11_deadline,
  rr12_drain_before_end,
  rr13_one_message,
  rr14_only_what_was_answered,
  watches,
};

/// A reference in a frame.
struct Entry {
  int value = -1;
  ForkId fork{};
  std::optional<ForkId> parent{};  ///< none: made by the owner
};

struct Frame {
  enum class Kind : std::uint8_t {
    call,
    reply,
    fork,
    answer,
    accept,
    monitor,
    down,
    exit_to_parent,
    exit_to_child,
    use
  };
  Kind kind{};
  int value = -1;  ///< of a call: the value that the call creates, if any
  ForkId fork{};
  ForkId parent{};
  int call = -1;
  Errc code = Errc::ok;
  std::vector<Entry> entries{};
};

/// A connection and its two lanes. A loopback has one lane and both ends at one worker.
struct Connection {
  std::array<int, 2> end;
  std::array<Incarnation, 2> life;
  std::array<std::deque<Frame>, 2> lane;       ///< [i]: from end[i]
  std::array<bool, 2> declared{false, false};  ///< whether end[i] has noticed the loss and ended its proxies
  bool cut = false;  ///< the connection is cut: frames that are in the lanes still arrive, no others
  bool loopback() const { return end[0] == end[1]; }
};

/// A message in an actor's mailbox.
struct Mail {
  enum class Kind : std::uint8_t {
    // to an owner actor
    created_by,
    handed_over,
    requested,
    passed_back,
    down,
    use,
    released,
    creation_finished,
    // to a user actor
    start,
    session_opened,
    answered,
    creation_answered,
    deadline,
    owner_lost,
    parent_exited,
    child_handed_over,
    child_accepted,
    child_exited,
    handle_dropped,
  };
  Kind kind{};
  ForkId fork{};
  ForkId parent{};
  PeerSession session{};
  Errc code = Errc::ok;
  int call = -1;
  Use used = Use::hold;
};

using Watch = std::pair<ForkId, PeerSession>;

struct OwnerActor {
  ForkTable rules;
  std::vector<Watch> watched{};
  std::deque<Mail> mailbox{};
};

struct UserActor {
  UserFork rules;
  int value = -1;
  int waiting_call = -1;                    ///< the call that shows the fork to user code once it is confirmed
  bool unsent = false;                      ///< the fork request waits until there is a session with the owner
  std::optional<PeerSession> watched_in{};  ///< the owner's monitor
  std::vector<Watch> children{};            ///< links
  std::deque<Mail> mailbox{};
};

/// A handle: a user's fork, or a hold at the owner.
struct Token {
  int value = -1;
  bool local = false;
  ForkId fork{};
  int copies = 1;
};

/// A call, at its caller or at its callee. A call through a reference holds a handle of that reference until the call
/// is answered. User code does not see `tokens` before it runs or ends.
struct Call {
  bool job = false;  ///< at the callee
  bool running = false;
  int connection = -1;
  int peer_call = -1;  ///< its number at the caller
  int unconfirmed = 0;
  int value = -1;  ///< that it creates, or uses
  bool use = false;
  Use used = Use::method;
  ForkId fork{};  ///< at the caller: the creator's fork, or the fork of the reference through which the call is made
  std::vector<Token> tokens{};
};

struct Worker {
  bool alive = true;
  Incarnation life;
  std::uint64_t ids = 0;
  CreationLedger ledger;
  std::map<int, std::uint64_t> creations;  ///< per connection
  std::map<int, OwnerActor> owners;        ///< by value
  std::map<ForkId, UserActor> users;
  std::map<int, Call> calls;
  std::vector<Token> tokens{};  ///< seen by user code
};

/// Returns the rule's name, for example "RR-2 one order".
std::string to_string(Without without);

}  // namespace caftan::rpc::model
