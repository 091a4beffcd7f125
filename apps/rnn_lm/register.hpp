/// Adds the language model's role types to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::rnn_lm {

/// Registers "rnn_lm.trainer" and "rnn_lm.ps".
void register_rnn_lm(Program& program);

}  // namespace caftan::rnn_lm
