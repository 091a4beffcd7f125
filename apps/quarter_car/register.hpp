/// Adds the co-simulation of a quarter car to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::quarter_car {

/// Registers "quarter_car.clock" and "quarter_car.partition".
void register_quarter_car(Program& program);

}  // namespace caftan::quarter_car
