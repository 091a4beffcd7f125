#include "quarter_car/register.hpp"

#include "caftan/caftan.hpp"
#include "quarter_car/quarter_car.hpp"

namespace caftan::quarter_car {

void register_quarter_car(Program& program) { sim::add<QuarterCar>(program, "quarter_car"); }

}  // namespace caftan::quarter_car
