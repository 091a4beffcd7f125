/// The world of the RRef model test: workers, lanes, mailboxes, sessions, lives and faults around the real ForkTable,
/// UserFork and CreationLedger. Start with World::run. The oracle (rref_model_oracle.cpp) judges only what user code
/// holds and what is on the way; it never asks the classes whether a value may end.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rref_model_history.hpp"
#include "rref_model_state.hpp"

namespace caftan::rpc::model {

/// Returns what lines of a history call a worker.
inline std::string name(int worker) { return "w" + std::to_string(worker); }

class World {
 public:
  explicit World(Without without = Without::nothing, std::vector<std::string>* trace = nullptr)
      : without_(without), trace_(trace) {}
  /// Runs the steps, then lets everything come to rest, drops all handles and judges. Returns what went wrong first, or
  /// nothing. Call it once.
  std::string run(const History& history);

 private:
  struct Value {
    RRefId id;
    int owner = 0;
    Incarnation owner_life;
    CreationNumber creation;
    ForkId creator{};  // the creator's fork, of a remote creation
  };
  // What really became of a fork, kept beside the classes for the oracle.
  struct Truth {
    int worker = 0;
    Incarnation life;
    int connection = -1;  // the connection in which the owner counts the fork
    bool confirmed = false;
    bool killed = false;
    bool answered = false;  // the owner has replied that it counts the fork, or has made the fork
    std::optional<ForkId> parent;
    int parent_connection = -1;
  };

  // rref_model_steps.cpp: what user code does.
  void step(const Step& step);
  void start_worker(int worker);
  void call(const Step& step);
  std::string add_arguments(int worker, int connection, std::uint32_t count, std::uint32_t choice, Frame& frame);
  void create(const Step& step);
  void create_here(const Step& step);
  void use(const Step& step);
  void finish(const Step& step);
  void finish_job(int worker, int id, const Step& step);
  void copy_or_drop(const Step& step, bool copy);
  void give_up(const Step& step);
  void pass_deadline(const Step& step);
  std::optional<Entry> hand_over(int worker, int connection, const Token& token);
  void take_back(int worker, int connection, const Entry& entry);
  bool holds(int worker, ForkId fork) const;
  void drop(int worker, const Token& token);

  // rref_model_weather.cpp: crashes, losses, reconnects, killed actors.
  void cut(int connection, std::uint32_t first_kept, std::uint32_t second_kept);
  void lose(const Step& step, bool declare);
  void reconnect(const Step& step);
  void crash(int worker, const Step& step);
  void kill(const Step& step);
  void connect(int first, int second);

  // rref_model_transport.cpp: lanes, readers, the end of sessions.
  bool send(int worker, int connection, Frame frame);
  bool send(int worker, const PeerSession& session, Frame frame);
  void read(int connection, int side, bool refuse);
  void read_call(int worker, int connection, const Frame& frame, bool refuse);
  void read_reply(int worker, int connection, const Frame& frame);
  void read_fork(int worker, int connection, const Frame& frame);
  void read_use(int worker, int connection, const Frame& frame);
  void read_monitor(int worker, int connection, const Frame& frame);
  Errc read_entry(int worker, int connection, const Entry& entry, int id, Call& call);
  void end_session(int worker, int connection);
  void end_proxies(int worker, int connection);
  void drain(int worker, int connection);
  int connection_between(int first, int second) const;
  int side_of(int worker, int connection) const { return connections_[connection].end[0] == worker ? 0 : 1; }
  bool open(int worker, int connection) const;
  PeerSession seen(int worker, int connection) const;
  static int number_of(const PeerSession& session) { return static_cast<int>(session.connection) - 1; }

  // rref_model_actors.cpp: mailboxes, and carrying out the actions of the classes.
  void post_user(int worker, ForkId fork, Mail mail);
  void post_owner(int worker, int value, Mail mail);
  bool run_one(std::uint32_t choice);
  void run_all();
  void run_owner(int worker, int value);
  void run_user(int worker, ForkId fork);
  OwnerActions handle(int worker, int value, OwnerActor& actor, const Mail& mail);
  UserActions handle(int worker, UserActor& actor, const Mail& mail);
  bool act(int worker, int value, OwnerActor& actor, const OwnerActions& actions, bool by_manifest);
  bool act(int worker, UserActor& actor, const UserActions& actions);
  void end_value(int worker, int value);
  void end_fork(int worker, ForkId fork);
  void send_fork_request(int worker, UserActor& actor);
  void begin_use(int worker, int value, const Mail& mail, OwnerActor& actor);
  void confirm(int worker, UserActor& actor);
  void show(int worker, int id);
  void fail_call(int worker, int id, Errc why);
  void refuse_forks(int worker, const std::vector<ForkRequest>& requests, Errc why);

  // rref_model_oracle.cpp
  void break_rule(const std::string& what);
  bool reachable(int value) const;
  bool good(ForkId fork) const;
  bool on_the_way(const Entry& entry, int sender, int connection) const;
  bool in_sight(int worker, const Token& token) const;
  void look_at(int worker, const Token& token);
  void check_refusal(int value, const std::string& where);
  void come_to_rest();
  void settle();
  void check_answered();
  void check_at_rest();
  void drop_everything();
  void check_empty();

  ForkId next_fork(int worker);
  bool is_owner(int worker, int value) const;
  std::vector<int> alive() const;
  void say(const std::string& text) {
    if (trace_) trace_->push_back(text);
  }

  Without without_;
  std::vector<std::string>* trace_;
  bool prompt_ = true;
  std::uint64_t lives_ = 0;
  int calls_ = 0;
  std::vector<Worker> workers_;
  std::vector<Connection> connections_;
  std::map<std::pair<int, int>, int> current_;  // the present connection of two workers, the smaller number first
  std::vector<Value> values_;
  std::map<ForkId, Truth> truth_;
  struct Reading {
    const Frame* frame = nullptr;
    int sender = 0;
    int connection = 0;
  } reading_;
  // One entry for each unread mail. Which of an actor's entries is taken does not matter: mailboxes are FIFO.
  struct Ready {
    int worker;
    int value;  // -1: a user actor
    ForkId fork;
  };
  std::deque<Ready> ready_;
  std::string broken_;
};

}  // namespace caftan::rpc::model
