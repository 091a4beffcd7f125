/// What roles of applications read first, compiled once: all of Caftan that a program includes, and what the libraries
/// have. No source relies on this header: each includes what it uses.
#pragma once

#include "../libs/cmake/precompiled.hpp"
#include "caftan/caftan.hpp"
