// The table of references: what reaches the actor of a value, in which order.
#include "rref/rref_table.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <variant>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "caftan/remote/internal/actor_host.hpp"
#include "caftan/remote/internal/message_registry.hpp"
#include "caftan/transport/stepped_executor.hpp"

namespace caftan::actors::rref_table_test {
namespace {

/// Stands for the actor of a value. It keeps which of two events came, in their order.
caf::behavior keep_order(caf::event_based_actor* /*self*/, std::vector<bool>* was_creation) {
  return {[was_creation](OwnerEvent& event) {
    was_creation->push_back(std::holds_alternative<owner_event::CreatedHere>(event.event));
  }};
}

TEST(RRefTable, PM5_TheFirstEventOfAValueComesAheadOfThoseOfOtherThreads) {
  transport::SteppedExecutor executor(1);
  const remote::MessageRegistry messages;
  remote::ActorHost host(executor, messages, {WorkerId{0}, Incarnation{1}});
  RRefTable table;
  constexpr std::size_t kValues = 2000;
  std::vector<std::vector<bool>> was_creation(kValues);
  std::vector<RRefId> ids;
  for (std::size_t i = 0; i < kValues; ++i) ids.push_back({WorkerId{1}, Incarnation{2}, i});
  // A second reader whose request for each value arrives as soon as the table has the value.
  std::thread other([&] {
    for (const RRefId& id : ids) {
      while (!table.send_to_owner(id, OwnerEvent{owner_event::Released{rpc::Use::hold}})) {
      }
    }
  });
  for (std::size_t i = 0; i < kValues; ++i) {
    table.add_owner(ids.at(i), host.spawn(keep_order, &was_creation.at(i)), OwnerEvent{owner_event::CreatedHere{}},
                    "int", {});
  }
  other.join();
  executor.run();
  for (const std::vector<bool>& of_value : was_creation) ASSERT_EQ(of_value, (std::vector<bool>{true, false}));
  for (const caf::actor& actor : table.clear_owners().owners) caf::anon_send_exit(actor, caf::exit_reason::kill);
  executor.run();
}

}  // namespace
}  // namespace caftan::actors::rref_table_test
