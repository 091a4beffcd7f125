#include "caftan/sim/cosim.hpp"

#include <map>

#include "caftan/sim/internal/cosim_plan.hpp"

namespace caftan::sim {

Cosim::Cosim(Builder& builder, const CosimConfig& config)
    : builder_(builder), plan_(std::make_shared<CosimPlan>(config)) {}

Cosim::~Cosim() {
  if (const Result<void> connected = plan_->connect(); !connected) {
    builder_.fail(connected.error());
    return;
  }
  for (const std::string& warning : plan_->warnings()) builder_.warn(warning);
  for (const CosimPlan::Component& component : plan_->components()) {
    for (const CosimPlan::Change& change : component.changes)
      builder_.plan(change.time,
                    "scenario: '" + component.name + "." + component.variables[change.variable].name + "' changes");
  }
  builder_.lookahead(plan_->delay());
}

std::uint32_t Cosim::add(std::string name, std::vector<CosimVariable> variables, std::uint32_t every) {
  CosimPlan::Component component{
      .name = std::move(name), .has_source = std::vector<bool>(variables.size()), .every = every};
  for (CosimVariable& variable : variables) {
    component.first.push_back(*variable.value);
    variable.value = nullptr;
  }
  component.variables = std::move(variables);
  plan_->add(std::move(component));
  return static_cast<std::uint32_t>(plan_->components().size() - 1);
}

void CosimPort::start(const std::vector<CosimVariable>& variables, LpContext& lp) {
  for (const CosimVariable& variable : variables) first_.push_back(*variable.value);
  received_ = first_;
  set_.resize(variables.size());
  biases_.resize(variables.size());
  // Outputs of the start arrive at once: all partitions know them from the plan.
  for (const CosimPlan::Component& source : plan_->components()) {
    for (const CosimPlan::Link& link : source.links) {
      if (link.component == position_) received_[link.input] = source.first[link.output];
    }
  }
  lp.schedule(plan_->offset(position_), CosimStep{}, {.priority = 1});
}

void CosimPort::on_values(const CosimValues& values) {
  for (const auto& [input, value] : values.values) {
    if (input < received_.size()) received_[input] = value;
  }
}

Time CosimPort::step() const { return Time{plan_->base_step().ticks * plan_->components()[position_].every}; }

Time CosimPort::before_step(const std::vector<CosimVariable>& variables, LpContext& lp) {
  const CosimPlan::Component& own = plan_->components()[position_];
  const Time from{lp.now().ticks - plan_->offset(position_).ticks};
  for (; changes_ < own.changes.size() && own.changes[changes_].time <= from; ++changes_) {
    const CosimPlan::Change& change = own.changes[changes_];
    if (change.kind == CosimPlan::Change::Kind::bias) {
      biases_[change.variable] = change.value;
    } else {
      const bool is_set = change.kind == CosimPlan::Change::Kind::set;
      set_[change.variable] = {is_set, change.value};
      if (!is_set) biases_[change.variable] = 0;
    }
  }
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].kind == VariableKind::output) {
      lp.record(own.name + "." + variables[i].name, *variables[i].value);
    } else {
      const double usual = variables[i].kind == VariableKind::input ? received_[i] : first_[i];
      *variables[i].value = (set_[i].is_set ? set_[i].value : usual) + biases_[i];
    }
  }
  return from;
}

void CosimPort::after_step(const std::vector<CosimVariable>& variables, LpContext& lp) const {
  const CosimPlan::Component& own = plan_->components()[position_];
  // A slower component's outputs hold at the end of its step; until then the others keep the last ones.
  const Time delay = later(plan_->delay(), Time{step().ticks - plan_->base_step().ticks});
  std::map<std::uint32_t, CosimValues> values;
  for (const CosimPlan::Link& link : own.links)
    values[link.component].values.emplace_back(link.input, *variables[link.output].value);
  for (const auto& [component, value] : values) lp.schedule(delay, value, LpId(component));
  lp.schedule(step(), CosimStep{}, {.priority = 1});
}

}  // namespace caftan::sim
