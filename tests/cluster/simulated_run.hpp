/// A run of one process that simulates.
#pragma once

#include <string>

#include "one_process_run.hpp"

namespace caftan::test {

class SimulatedRun : public OneProcessRun {
 protected:
  /// Returns the fingerprint of a run, or the text of its error.
  std::string result_of(const std::string& file) {
    events_.clear();
    run(file, 1);
    for (const auto& returned : all<run::Returned>()) {
      if (returned.error.code() != Errc::ok) return returned.error.message();
    }
    for (const auto& failed : all<run::Failed>()) return failed.error.message();
    return all<run::Fingerprint>().at(0).text;
  }
};

}  // namespace caftan::test
