/// `Network`: the connections between Workers of one process, on which a test loses, delays, holds, counts and adds
/// frames, cuts off workers and kills them. The workers know nothing of it. A `Cluster` has one: start with
/// `cluster.network().link("a", "b")`.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/frame.hpp"

namespace caftan {
class LocalNetwork;
}

namespace caftan::testing {

class TappedChannel;

/// One whole frame, as its worker has written it. A view: valid during the call of the filter.
struct Frame {
  wire::FrameHeader header;
  wire::ByteView bytes;  ///< header and payload
  /// Returns what follows the header.
  wire::ByteView payload() const { return bytes.subspan(wire::kFrameHeaderSize); }
};

/// One direction of a connection: what the worker `from` writes to the worker `to`. A connection carries the frames of
/// all calls, and a frame never overtakes another one, as on a socket. A link
/// never fills by itself: see `set_full`.
/// Threads: that of the test, and the filter on a runner of the stepped executor, never both at once.
class Link {
 public:
  /// Returns true to let the frame go on, false to lose it.
  using Filter = std::function<bool(const Frame&)>;

  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const std::string& from() const noexcept { return from_; }
  const std::string& to() const noexcept { return to_; }

  /// Loses the next `count` frames of this kind; 0 = none any more. A call is a `call`, `create`, `fetch`, `method` or
  /// `op`, its reply a `response`. A lost call or reply ends its call with `timeout`.
  virtual void drop(wire::FrameKind kind, std::size_t count) = 0;
  /// Lets each frame that is written from now on arrive `delay` later, and not before the frames ahead of it; 0 = at
  /// once. Precondition: delay >= 0.
  virtual void set_delay(base::Duration delay) = 0;
  /// Keeps frames back until `release`. Those that are under way by `set_delay` still arrive.
  virtual void hold() = 0;
  /// Lets the frames that were kept back go on, in their order.
  virtual void release() = 0;
  /// While full, the link takes no bytes, as where the other end does not read: `from` keeps them in its send queue.
  virtual void set_full(bool full) = 0;
  /// Calls `filter` with each frame that `drop` does not lose, when it is written. Null = all go on.
  virtual void set_filter(Filter filter) = 0;
  /// Writes bytes between two frames of `from`, also bytes that `from` would never write.
  virtual void inject(wire::ByteView bytes) = 0;
  /// Returns how many frames of this kind `from` has written, lost ones included.
  virtual std::size_t count(wire::FrameKind kind) const = 0;

 protected:
  Link(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

 private:
  const std::string from_;
  const std::string to_;
};

/// For Workers over one SteppedExecutor. Threads: as Link. Functions that name a worker or a connection that is not
/// there throw std::logic_error, which says so.
class Network {
 public:
  /// @param on_link  called with each link when it is made, before its first byte: a test that holds a start begins
  /// here
  explicit Network(const std::function<void(Link&)>& on_link = {});
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Returns the network as `WorkerOptions::network` takes it; a Cluster has set it in its workers' options.
  const std::shared_ptr<LocalNetwork>& local() const noexcept { return local_; }

  /// Returns the direction in which `from` writes to `to`, of the newest connection between the two.
  Link& link(const std::string& from, const std::string& to);
  /// Sets the filter of all links that there are.
  void filter_all(const Link::Filter& filter);
  /// Returns how many frames of this kind were written on all links.
  std::size_t count(wire::FrameKind kind) const;

  /// Ends a connection; bytes that were written before still arrive. Tensors that were lent and not read are lost: they
  /// are memory of a process that is gone.
  void cut(const std::string& one, const std::string& other);
  /// Ends a connection; bytes that are under way are lost.
  void break_off(const std::string& one, const std::string& other);
  /// Breaks all connections of a worker, as its crash does: its peers find it `peer_down`. The object stays until its
  /// cluster ends, and what its code still does reaches no other worker.
  void kill(const std::string& worker);
  /// Holds all links from and to a worker, as a pulled cable does, which no worker notices. Calls end with `timeout`.
  /// Workers of one process do not check whether a peer is silent, so the worker's peers do not lose it (`kill` makes
  /// them).
  void cut_off(const std::string& worker);
  /// Releases all links from and to a worker.
  void reconnect(const std::string& worker);

 private:
  using Channels = std::vector<std::shared_ptr<TappedChannel>>;

  TappedChannel& channel(const std::string& from, const std::string& to);
  /// Returns the channels from and to a worker.
  Channels channels_of(const std::string& worker) const;

  std::shared_ptr<Channels> channels_;
  std::shared_ptr<LocalNetwork> local_;
};

}  // namespace caftan::testing
