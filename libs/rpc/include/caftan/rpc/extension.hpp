/// `rpc::Extension`: code that a worker has beside functions and classes (`Registry::extend`).
#pragma once

namespace caftan::rpc {

/// What one of a worker's services looks up by name: an algorithm of optimizers, for example. Peers cannot call it.
class Extension {
 public:
  virtual ~Extension() = default;
};

}  // namespace caftan::rpc
