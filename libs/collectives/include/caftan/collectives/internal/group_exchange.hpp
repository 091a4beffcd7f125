/// `GroupExchange`: the rules of one member of a group, without calls or threads: an operation begins, a piece arrives,
/// a member is lost; what to send and what is done comes out. Rules CO-n: docs/protocols/collectives.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/collectives/collectives.hpp"
#include "caftan/collectives/internal/messages.hpp"

namespace caftan::collectives {

/// One operation, as a member calls it.
struct Operation {
  enum class Kind : std::uint8_t { all_reduce, broadcast, all_gather, barrier };

  Kind kind = Kind::barrier;
  Reduction reduction = Reduction::sum;  ///< of all_reduce
  int root = 0;                          ///< of broadcast
  bool is_elsewhere = false;  ///< another backend carries it: nothing is sent, and `finish` says when it is done
};

/// Threads: one at a time.
class GroupExchange {
 public:
  /// Names a piece that was received and is to be answered: the number that `receive` got.
  using Ticket = std::uint64_t;

  struct Send {
    int to = 0;
    PieceHeader header;
    Tensors tensors;
  };
  struct Done {
    std::uint64_t operation = 0;
    Result<std::vector<Tensors>> result;  ///< by rank for all_gather; one list for all_reduce and broadcast
  };
  /// What follows from an event.
  struct Actions {
    std::vector<Send> sends;
    std::vector<Ticket> taken;  ///< pieces to answer
    std::vector<Done> done;
    std::optional<Error> failure;  ///< this member has failed the group: to be sent to all others
  };

  /// @param members  their names, by rank
  GroupExchange(int rank, std::vector<std::string> members);

  /// Begins the next operation. Its number is that of the operations begun before.
  /// Errors: bad_arguments, unsupported, limit_exceeded (nothing has begun then); the group's first error.
  Result<std::uint64_t> begin(const Operation& operation, const Tensors& tensors, Actions& out);
  /// An operation that is carried elsewhere has ended here. One that the group's failure has ended is passed over.
  void finish(std::uint64_t operation, Result<std::vector<Tensors>> result, Actions& out);
  /// A piece of another member has arrived.
  void receive(int from, PieceHeader header, Tensors tensors, Ticket ticket, Actions& out);
  /// The piece for the operation was answered by rank `by`.
  void on_answered(std::uint64_t operation, int by, Actions& out);
  /// A member has left after `operations` operations (CO-9).
  void on_left(int rank, std::uint64_t operations, Actions& out);
  /// The group fails here, with an error that `out.failure` does not repeat.
  void fail(const Error& error, Actions& out);

  /// Returns the ranks from which no piece has come for an operation that is open here.
  std::vector<int> awaited(std::uint64_t operation) const;
  /// Returns the group's first error, if there is one.
  const std::optional<Error>& failure() const noexcept { return failure_; }
  /// Returns how many operations have begun here.
  std::uint64_t begun() const noexcept { return next_; }
  int rank() const noexcept { return rank_; }
  const std::vector<std::string>& members() const noexcept { return members_; }

  /// How many operations may be open at once (CO-11).
  static constexpr std::uint64_t kMostOpen = 1024;
  /// Largest all_reduce whose members send each other everything, in bytes.
  static constexpr std::size_t kMostDirect = 64 << 10;

 private:
  struct Arrived {
    std::string what;
    Tensors tensors;
    Ticket ticket = 0;
  };
  struct Open {
    std::optional<Operation> operation;  ///< set once it has begun here
    std::string what;
    Tensors own;   ///< what this member gave: flat for all_reduce
    Tensors like;  ///< the arguments' sizes, for the results
    bool is_chunked = false;
    std::map<int, Arrived> parts[2];  ///< by rank
    std::vector<bool> answered;       ///< of a broadcast's root
  };

  std::size_t count() const noexcept { return members_.size(); }
  void send_to_others(std::uint64_t number, const Open& open, const Tensors& tensors, std::uint8_t part, Actions& out);
  void send_first(std::uint64_t number, Open& open, Actions& out);
  bool accept(int from, std::uint64_t number, std::uint8_t part, const Open& open, const Arrived& piece, Actions& out);
  void advance(std::uint64_t number, Actions& out);
  std::optional<Result<std::vector<Tensors>>> try_finish(std::uint64_t number, Open& open, Actions& out);
  std::optional<Result<std::vector<Tensors>>> finish_all_reduce(std::uint64_t number, Open& open, Actions& out);
  void check_left(Actions& out);
  void fail_all(const Error& error, Actions& out);

  const int rank_;
  const std::vector<std::string> members_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Open> open_;
  std::map<int, std::uint64_t> left_;
  std::optional<Error> failure_;
};

}  // namespace caftan::collectives
