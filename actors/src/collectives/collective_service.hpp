/// The service of the groups in which workers compute together: registers what members call of each other, and lets the
/// groups know of lost workers.
#pragma once

#include <memory>

#include "caftan/collectives/internal/group_table.hpp"
#include "service/service.hpp"

namespace caftan::actors {

class CollectiveService final : public Service {
 public:
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
  void on_session_end(const transport::Session& session, bool is_last) override;
  void end_all(const Error& reason, StopReport& given_up) override;

 private:
  const std::shared_ptr<collectives::GroupTable> table_ = std::make_shared<collectives::GroupTable>();
};

}  // namespace caftan::actors
