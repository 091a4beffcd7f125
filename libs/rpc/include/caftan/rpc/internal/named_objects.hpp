/// `NamedObjects`: the objects of one worker that have names: a name's first request makes the object, the others get
/// it. Rules CALL-20 to CALL-22: docs/protocols/call.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"

namespace caftan::rpc {

class RRefHandle;

/// Threads: any, all methods.
class NamedObjects {
 public:
  /// One request for a named object, until it has its reply.
  class Request {
   public:
    virtual ~Request() = default;
    /// Called at most once.
    virtual void answer(const Result<std::shared_ptr<RRefHandle>>& object) = 0;
  };
  struct Type {
    std::string_view name;  ///< views text that lives as long as the worker
    std::uint64_t hash = 0;
  };

  /// Returns `request` if it has to make the object: then `made` follows, and the caller answers it. Else this class
  /// answers the request, at once or in `made`. Answers: wrong_type (the object of that name is of another type),
  /// bad_arguments (the name is empty), shut_down.
  std::unique_ptr<Request> ask(const std::string& name, const Type& type, std::unique_ptr<Request> request);
  /// The object was made, or could not be: answers the requests that wait for it. After an error the name is free.
  void made(const std::string& name, const Result<std::shared_ptr<RRefHandle>>& object);
  /// The worker leaves: lets all objects go; from now on requests are answered shut_down.
  void close();

 private:
  struct Object {
    Type type;
    std::shared_ptr<RRefHandle> handle{};  // null while it is made
    std::vector<std::unique_ptr<Request>> waiting{};
  };
  enum class Next : std::uint8_t { answer, make, wait };
  /// @param found  set where the request is answered at once
  Next look_up(const std::string& name, const Type& type, Result<std::shared_ptr<RRefHandle>>& found)
      CAFTAN_REQUIRES(mutex_);

  base::Mutex mutex_;
  bool closed_ CAFTAN_GUARDED_BY(mutex_) = false;
  std::map<std::string, Object> objects_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::rpc
