/// All that a user of Caftan needs: workers and their typed calls, references, tensors, and programs whose applications
/// are described by a file. Start with `Program` (roles from a file) or with `Worker` (calls by hand).
#pragma once

#include "caftan/actors/program.hpp"
#include "caftan/actors/role_context.hpp"
#include "caftan/actors/simulation.hpp"
#include "caftan/actors/worker.hpp"
#include "caftan/autograd/context.hpp"
#include "caftan/base/settings.hpp"
#include "caftan/optim/combined_schedules.hpp"
#include "caftan/optim/custom_algorithm.hpp"
#include "caftan/optim/cyclic_schedules.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/optim/schedules.hpp"
#include "caftan/rpc/call_site.hpp"
#include "caftan/rpc/collect.hpp"
#include "caftan/rpc/group.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/rpc/rref.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/tensor/payload.hpp"
#include "caftan/tensor/tensor.hpp"
