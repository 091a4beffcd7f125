/// The RecvFunction node itself; sources that walk over it include this.
#pragma once

#include <torch/csrc/autograd/function.h>

#include "caftan/autograd/internal/nodes.hpp"

namespace caftan::autograd {

class RecvFunction final : public torch::autograd::Node {
 public:
  explicit RecvFunction(const RecordedMessage& message) : message_(message) {}

  const RecordedMessage& message() const noexcept { return message_; }
  std::string name() const override { return "RecvFunction"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  const RecordedMessage message_;
};

}  // namespace caftan::autograd
