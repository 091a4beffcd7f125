#include "caftan/rpc/internal/named_objects.hpp"

#include <utility>

namespace caftan::rpc {

NamedObjects::Next NamedObjects::look_up(const std::string& name, const Type& type,
                                         Result<std::shared_ptr<RRefHandle>>& found) {
  if (closed_) {
    found = Error(Errc::shut_down, "this worker is leaving");
    return Next::answer;
  }
  if (name.empty()) {
    found = Error(Errc::bad_arguments, "the name of an object is empty");
    return Next::answer;
  }
  const auto [place, is_new] = objects_.try_emplace(name, Object{type});
  if (is_new) return Next::make;
  const Object& object = place->second;
  if (object.type.hash != type.hash) {
    found = Error(Errc::wrong_type, "the object \"" + name + "\" is a " + std::string(object.type.name) +
                                        " here, and the caller asks for a " + std::string(type.name) +
                                        ": give one of them another name");
    return Next::answer;
  }
  if (!object.handle) return Next::wait;
  found = object.handle;
  return Next::answer;
}

std::unique_ptr<NamedObjects::Request> NamedObjects::ask(const std::string& name, const Type& type,
                                                         std::unique_ptr<Request> request) {
  Result<std::shared_ptr<RRefHandle>> found = std::shared_ptr<RRefHandle>();
  {
    const base::LockGuard lock(mutex_);
    switch (look_up(name, type, found)) {
      case Next::make:
        return request;
      case Next::wait:
        objects_.at(name).waiting.push_back(std::move(request));
        return nullptr;
      case Next::answer:
        break;
    }
  }
  request->answer(found);
  return nullptr;
}

void NamedObjects::made(const std::string& name, const Result<std::shared_ptr<RRefHandle>>& object) {
  std::vector<std::unique_ptr<Request>> waiting;
  {
    const base::LockGuard lock(mutex_);
    const auto place = objects_.find(name);
    waiting.swap(place->second.waiting);
    if (object && !closed_) {
      place->second.handle = *object;
    } else {
      objects_.erase(place);
    }
  }
  for (const auto& request : waiting) request->answer(object);
}

void NamedObjects::close() {
  // Destroyed without the lock: the last handle of an object reports its end.
  std::vector<std::shared_ptr<RRefHandle>> let_go;
  const base::LockGuard lock(mutex_);
  closed_ = true;
  for (auto& [name, object] : objects_) let_go.push_back(std::move(object.handle));
}

}  // namespace caftan::rpc
