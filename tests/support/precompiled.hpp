/// Headers that are compiled once and that the build puts before most tests of clusters and of tensors. No test relies
/// on this header: each includes what it uses.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/transport/threaded_executor.hpp"
