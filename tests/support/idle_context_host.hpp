/// A host of autograd contexts that keeps none: for a ContextRecord that is tested without a worker.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "caftan/autograd/internal/context_host.hpp"

namespace caftan::test {

class IdleContextHost final : public autograd::ContextHost {
 public:
  explicit IdleContextHost(const WorkerLife& self) : self_(self) {}
  Result<std::shared_ptr<autograd::ContextRecord>> create() override { return Error(Errc::unsupported, "no contexts"); }
  Result<std::shared_ptr<autograd::ContextRecord>> enter(const ContextId&, const Peer&) override {
    return Error(Errc::unsupported, "no contexts");
  }
  void release(const ContextId&) noexcept override {}
  void learned(const ContextId&) override {}
  Future<void> start_pass(const std::shared_ptr<autograd::ContextRecord>&, autograd::PassStart) override { return {}; }
  WorkerLife self() const noexcept override { return self_; }
  std::optional<WorkerLife> life_of(const Peer&) const override { return std::nullopt; }
  std::string name_of(WorkerId) const override { return "nameless"; }

  /// Returns the record of a context, to which no handle belongs.
  std::shared_ptr<autograd::ContextRecord> make_record(const ContextId& context) {
    return std::make_shared<autograd::ContextRecord>(*this, std::weak_ptr<rpc::Caller>(), context, self_,
                                                     std::uint64_t{1}, base::TimePoint());
  }

 private:
  const WorkerLife self_;
};

}  // namespace caftan::test
