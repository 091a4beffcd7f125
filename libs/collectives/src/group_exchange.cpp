#include "caftan/collectives/internal/group_exchange.hpp"

#include <algorithm>
#include <utility>

#include "caftan/tensor/internal/torch_errors.hpp"
#include "reduction.hpp"

namespace caftan::collectives {
namespace {

using Kind = Operation::Kind;
using Finished = std::optional<Result<std::vector<Tensors>>>;

Result<void> check_arguments(const Operation& operation, const Tensors& tensors, std::size_t count) {
  switch (operation.kind) {
    case Kind::all_reduce:
      return check_reduced(tensors, operation.reduction);
    case Kind::broadcast:
      if (operation.root < 0 || operation.root >= static_cast<int>(count)) {
        return Error(Errc::bad_arguments, "broadcast from rank " + std::to_string(operation.root) +
                                              ": ranks of this group are 0 to " + std::to_string(count - 1));
      }
      return check_dense(tensors);
    case Kind::all_gather:
      return check_dense(tensors);
    case Kind::barrier:
      return {};
  }
  return {};
}

std::string number_of(std::uint64_t operation) { return "operation " + std::to_string(operation) + " of the group"; }

}  // namespace

GroupExchange::GroupExchange(int rank, std::vector<std::string> members) : rank_(rank), members_(std::move(members)) {}

Result<std::uint64_t> GroupExchange::begin(const Operation& operation, const Tensors& tensors, Actions& out) {
  if (failure_) return *failure_;
  if (auto good = check_arguments(operation, tensors, count()); !good) return good.error();
  const auto is_open = [](const auto& entry) { return entry.second.operation.has_value(); };
  if (static_cast<std::uint64_t>(std::count_if(open_.begin(), open_.end(), is_open)) >= kMostOpen) {
    return Error(Errc::limit_exceeded, "the group has " + std::to_string(kMostOpen) +
                                           " open operations, which is the most: wait for some of their futures");
  }
  const std::uint64_t number = next_;
  Open& open = open_[number];
  const Result<void> made = tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    const bool gives = operation.kind != Kind::broadcast || operation.root == rank_;
    if (operation.is_elsewhere) return {};
    open.own = operation.kind == Kind::all_reduce ? Tensors{flatten(tensors)} : gives ? copies(tensors) : Tensors();
    return {};
  });
  if (!made) {
    if (open.parts[0].empty() && open.parts[1].empty()) open_.erase(number);
    return made.error();
  }
  ++next_;
  open.operation = operation;
  open.what = describe(operation, tensors);
  if (operation.is_elsewhere) {
    check_left(out);
    return number;
  }
  open.like = tensors;
  send_first(number, open, out);
  for (const auto& parts : open.parts) {
    for (const auto& [from, piece] : parts) out.taken.push_back(piece.ticket);
  }
  for (std::uint8_t part = 0; part < 2; ++part) {
    for (const auto& [from, piece] : open.parts[part]) {
      if (!accept(from, number, part, open, piece, out)) return number;
    }
  }
  advance(number, out);
  check_left(out);
  return number;
}

/// Sends what this member gives. With others' pieces it is complete: `try_finish` sends nothing but reduced chunks.
void GroupExchange::send_first(std::uint64_t number, Open& open, Actions& out) {
  if (open.operation->kind == Kind::broadcast) {
    if (open.operation->root != rank_) return;
    open.answered.assign(count(), false);
    open.answered[static_cast<std::size_t>(rank_)] = true;
  }
  if (open.operation->kind == Kind::all_reduce) {
    const auto bytes = static_cast<std::size_t>(open.own.front().nbytes());
    open.is_chunked = count() > 2 && bytes > kMostDirect;
  }
  if (!open.is_chunked) return send_to_others(number, open, open.own, 0, out);
  for (std::size_t to = 0; to < count(); ++to) {
    if (static_cast<int>(to) == rank_) continue;
    out.sends.push_back({static_cast<int>(to), {number, 0, open.what}, {chunk_of(open.own.front(), to, count())}});
  }
}

void GroupExchange::send_to_others(std::uint64_t number, const Open& open, const Tensors& tensors, std::uint8_t part,
                                   Actions& out) {
  for (int to = 0; to < static_cast<int>(count()); ++to) {
    if (to != rank_) out.sends.push_back({to, {number, part, open.what}, tensors});
  }
}

void GroupExchange::finish(std::uint64_t operation, Result<std::vector<Tensors>> result, Actions& out) {
  if (open_.erase(operation) > 0) out.done.push_back({operation, std::move(result)});
}

void GroupExchange::receive(int from, PieceHeader header, Tensors tensors, Ticket ticket, Actions& out) {
  if (failure_) {
    out.taken.push_back(ticket);
    return;
  }
  const std::uint64_t number = header.operation;
  const bool is_over = number < next_ && open_.find(number) == open_.end();
  if (is_over || header.part > 1 || number >= next_ + kMostOpen) {
    out.taken.push_back(ticket);
    return fail_all(Error(Errc::malformed_payload, members_[static_cast<std::size_t>(from)] + " sent a piece for " +
                                                       number_of(number) + ", which " +
                                                       (is_over ? "is done here" : "is none or too far ahead")),
                    out);
  }
  Open& open = open_[number];
  const auto [found, is_new] =
      open.parts[header.part].try_emplace(from, Arrived{std::move(header.what), std::move(tensors), ticket});
  if (!is_new) {
    out.taken.push_back(ticket);
    return fail_all(Error(Errc::malformed_payload, members_[static_cast<std::size_t>(from)] + " sent a piece for " +
                                                       number_of(number) + " a second time"),
                    out);
  }
  if (!open.operation) return;  // kept, and answered when the operation begins (CO-2)
  out.taken.push_back(ticket);
  if (accept(from, number, header.part, open, found->second, out)) advance(number, out);
}

/// Compares a piece with the operation that has begun here (CO-1, CO-12). Returns whether it fits; else the group has
/// failed.
bool GroupExchange::accept(int from, std::uint64_t number, std::uint8_t part, const Open& open, const Arrived& piece,
                           Actions& out) {
  const std::string& sender = members_[static_cast<std::size_t>(from)];
  if (piece.what != open.what) {
    fail_all(Error(Errc::bad_arguments,
                   number_of(number) + " is '" + open.what + "' at " + members_[static_cast<std::size_t>(rank_)] +
                       " and '" + piece.what + "' at " + sender +
                       ": all members call the same operations in the same order, with tensors of the same sizes"),
             out);
    return false;
  }
  const Operation& operation = *open.operation;
  bool fits = part == 0;
  if (operation.kind == Kind::all_reduce) {
    const at::Tensor& own = open.own.front();
    const auto chunk = static_cast<std::size_t>(part == 0 ? rank_ : from);
    fits = (part == 0 || open.is_chunked) &&
           have_form_of(piece.tensors, {open.is_chunked ? chunk_of(own, chunk, count()) : own});
  } else if (operation.kind == Kind::broadcast) {
    fits = fits && from == operation.root && have_form_of(piece.tensors, open.like);
  } else {
    const bool may_have = operation.kind == Kind::all_gather || piece.tensors.empty();
    fits = fits && may_have && check_dense(piece.tensors).has_value();
  }
  if (!fits) {
    fail_all(Error(Errc::malformed_payload,
                   sender + " sent a piece that does not fit " + number_of(number) + ", '" + open.what + "'"),
             out);
  }
  return fits;
}

void GroupExchange::advance(std::uint64_t number, Actions& out) {
  const auto found = open_.find(number);
  if (found == open_.end() || failure_) return;
  Finished finished;
  const Result<void> ran = tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    finished = try_finish(number, found->second, out);
    return {};
  });
  if (!ran) return fail_all(ran.error(), out);
  if (!finished) return;
  open_.erase(found);
  out.done.push_back({number, *std::move(finished)});
}

Finished GroupExchange::try_finish(std::uint64_t number, Open& open, Actions& out) {
  const Operation& operation = *open.operation;
  if (operation.kind == Kind::all_reduce) return finish_all_reduce(number, open, out);
  if (operation.kind == Kind::broadcast) {
    if (operation.root == rank_) {
      if (std::find(open.answered.begin(), open.answered.end(), false) != open.answered.end()) return std::nullopt;
      return std::vector<Tensors>{copies(open.own)};
    }
    const auto piece = open.parts[0].find(operation.root);
    if (piece == open.parts[0].end()) return std::nullopt;
    return std::vector<Tensors>{copies(piece->second.tensors)};
  }
  if (open.parts[0].size() + 1 < count()) return std::nullopt;
  std::vector<Tensors> all;
  for (int from = 0; from < static_cast<int>(count()); ++from) {
    all.push_back(copies(from == rank_ ? open.own : open.parts[0].at(from).tensors));
  }
  return all;
}

Finished GroupExchange::finish_all_reduce(std::uint64_t number, Open& open, Actions& out) {
  const auto own_index = static_cast<std::size_t>(rank_);
  const bool has_sum = open.parts[1].find(rank_) != open.parts[1].end();
  if (!has_sum) {
    if (open.parts[0].size() + 1 < count()) return std::nullopt;
    const at::Tensor own = open.is_chunked ? chunk_of(open.own.front(), own_index, count()) : open.own.front();
    std::vector<at::Tensor> values;
    for (int from = 0; from < static_cast<int>(count()); ++from) {
      values.push_back(from == rank_ ? own : open.parts[0].at(from).tensors.front());
    }
    const at::Tensor sum = reduce(values, open.operation->reduction);
    if (!open.is_chunked) return std::vector<Tensors>{unflatten(sum, open.like)};
    send_to_others(number, open, {sum}, 1, out);
    open.parts[1].emplace(rank_, Arrived{{}, {sum}, 0});
  }
  if (open.parts[1].size() < count()) return std::nullopt;
  Tensors chunks;
  for (const auto& [from, piece] : open.parts[1]) chunks.push_back(piece.tensors.front());
  return std::vector<Tensors>{unflatten(flatten(chunks), open.like)};
}

void GroupExchange::on_answered(std::uint64_t operation, int by, Actions& out) {
  const auto found = open_.find(operation);
  if (found == open_.end() || found->second.answered.empty()) return;
  found->second.answered[static_cast<std::size_t>(by)] = true;
  advance(operation, out);
}

std::vector<int> GroupExchange::awaited(std::uint64_t operation) const {
  std::vector<int> ranks;
  const auto found = open_.find(operation);
  if (found == open_.end()) return ranks;
  for (int rank = 0; rank < static_cast<int>(count()); ++rank) {
    if (rank != rank_ && found->second.parts[0].find(rank) == found->second.parts[0].end()) ranks.push_back(rank);
  }
  return ranks;
}

void GroupExchange::on_left(int rank, std::uint64_t operations, Actions& out) {
  left_.emplace(rank, operations);
  check_left(out);
}

/// An operation that a member which has left did not begin can never be done (CO-9).
void GroupExchange::check_left(Actions& out) {
  if (failure_) return;
  for (const auto& [rank, operations] : left_) {
    if (operations >= next_) continue;
    const std::string& member = members_[static_cast<std::size_t>(rank)];
    return fail_all(Error(Errc::shut_down, member,
                          member + " has left the group after " + std::to_string(operations) + " operations; " +
                              number_of(operations) + " needs all members"),
                    out);
  }
}

/// This member fails the group: `out.failure` goes to all others.
void GroupExchange::fail_all(const Error& error, Actions& out) {
  if (failure_) return;
  fail(error, out);
  out.failure = error;
}

void GroupExchange::fail(const Error& error, Actions& out) {
  if (failure_) return;
  failure_ = error;
  out.sends.clear();
  for (const auto& [number, open] : std::exchange(open_, {})) {
    if (open.operation) {
      out.done.push_back({number, error});
      continue;
    }
    for (const auto& parts : open.parts) {
      for (const auto& [from, piece] : parts) out.taken.push_back(piece.ticket);
    }
  }
}

}  // namespace caftan::collectives
