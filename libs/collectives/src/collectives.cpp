#include "caftan/collectives/collectives.hpp"

#include <chrono>
#include <utility>

#include "caftan/collectives/internal/group_table.hpp"
#include "gloo_group.hpp"

namespace caftan::collectives {
namespace {

using Kind = Operation::Kind;

Future<Tensors> only_list(Future<std::vector<Tensors>> lists) {
  return std::move(lists).then([](Result<std::vector<Tensors>> all) -> Result<Tensors> {
    if (!all) return all.error();
    return std::move(all->front());
  });
}

/// The backend `caftan`: the user's handle of a Group.
class CaftanCollectives final : public Collectives {
 public:
  explicit CaftanCollectives(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  ~CaftanCollectives() override { group_->leave(); }

  int rank() const noexcept override { return group_->rank(); }
  const std::vector<std::string>& members() const noexcept override { return group_->members(); }
  Backend backend() const noexcept override { return Backend::caftan; }
  Future<Tensors> all_reduce(const Tensors& tensors, Reduction reduction) override {
    return only_list(group_->begin({.kind = Kind::all_reduce, .reduction = reduction}, tensors));
  }
  Future<Tensors> broadcast(const Tensors& tensors, int root) override {
    return only_list(group_->begin({.kind = Kind::broadcast, .root = root}, tensors));
  }
  Future<std::vector<Tensors>> all_gather(const Tensors& tensors) override {
    return group_->begin({.kind = Kind::all_gather}, tensors);
  }
  Future<void> barrier() override {
    return group_->begin({.kind = Kind::barrier}, {}).then([](Result<std::vector<Tensors>> all) -> Result<void> {
      if (!all) return all.error();
      return {};
    });
  }
  void fail(const Error& reason) override { group_->fail_everywhere(reason); }

 private:
  const std::shared_ptr<Group> group_;
};

Error not_all_came(const GroupOptions& options, const std::vector<std::string>& missing) {
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  return {Errc::timeout,
          "the group " + options.name + ": within " +
              std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout).count()) +
              " ms these members have not joined: " + names};
}

}  // namespace

Result<std::shared_ptr<Collectives>> join_group(const CallSite& site, const GroupOptions& options) {
  const auto caller = site.alive();
  if (!caller) return caller.error();
  if (options.timeout <= base::Duration(0)) return Error(Errc::bad_arguments, "join_group: the timeout is not > 0");
  if (options.backend == Backend::gloo && !has_gloo()) {
    return Error(Errc::unsupported,
                 "this build has no backend gloo: install the package libgloo-dev and build again, or choose the "
                 "backend caftan");
  }
  const auto table = table_of(**caller);
  if (!table) return table.error();
  const auto group = (*table)->open(*caller, options);
  if (!group) return group.error();
  auto joined = std::make_shared<CaftanCollectives>(*group);
  Future<void> all = joined->barrier();
  if (!all.wait_for(options.timeout)) {
    const Error late = not_all_came(options, (*group)->awaited(0));
    joined->fail(late);
    return late;
  }
  if (auto come = std::move(all).result(); !come) return come.error();
  if (options.backend == Backend::gloo) return make_gloo_group(*group, std::move(joined), options.timeout);
  return std::shared_ptr<Collectives>(std::move(joined));
}

}  // namespace caftan::collectives
