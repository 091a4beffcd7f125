/// The program that steps environments of Gymnasium: worker.py, as text.
#pragma once

namespace caftan::rl::gymnasium {

extern const char* const kWorkerScript;

}  // namespace caftan::rl::gymnasium
