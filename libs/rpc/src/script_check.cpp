#include "script_check.hpp"

#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "operator_rules.hpp"

namespace caftan::rpc {

namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

/// Operators that only TorchScript has: on numbers, strings and containers, and ATen's under Python's names.
constexpr std::string_view kScriptOperators =
    " Bool Complex ComplexImplicit Delete Float FloatImplicit Int IntImplicit ScalarImplicit Size __derive_index"
    " __interpolate __range_length __round_to_zero_floordiv __upsample __upsample_bilinear __upsample_nearest"
    " _infer_size _list_to_tensor _set_item _size_if_not_equal _tensor_to_list _unwrap_optional acos acosh add add_ all"
    " angle any append as_tensor asin asinh atan atan2 atanh bin capitalize ceil center chr clear copy copy_ copysign"
    " cos cosh count cpu degrees dequantize device dict dim div divmod einsum element_size endswith eq erf erfc exp"
    " expandtabs expm1 extend fabs factorial find floor floordiv fmod format frexp gamma gcd ge get get_device gt"
    " has_torch_function hex index index_put index_put_ insert is_autocast_cpu_enabled is_autocast_enabled"
    " is_contiguous is_grad_enabled is_non_overlapping_and_dense is_scripting isalnum isalpha isdecimal isdigit"
    " isfinite isidentifier isinf islower isnan isnumeric isprintable isspace istitle isupper items join keys ldexp le"
    " len lgamma list ljust log log10 log1p lower lstrip lt mH mT mathremainder matrix_H modf mul mul_ ne neg numel"
    " numpy_T oct ord partition percentFormat polar pop popitem pow radians remainder remove replace reverse rfind"
    " rindex rjust round rpartition rsplit rstrip select set_grad_enabled setdefault sin sinh size slice sort sorted"
    " split splitlines sqrt startswith storage_offset str stride strip sub sum swapcase sym_size sym_stride tan tanh"
    " tensor title to update upper values wait warn zfill ";

/// What the language itself is made of.
constexpr std::string_view kStructure =
    " Constant CreateObject DictConstruct Enter EnumName EnumValue Exit GetAttr If ImplicitTensorToNum ListConstruct"
    " ListUnpack Loop NumToTensor RaiseException SetAttr StringIndex TupleConstruct TupleIndex TupleSlice TupleUnpack"
    " Uninitialized abs device dtype fork index is_cpu is_cuda is_meta is_mkldnn is_mps is_nested is_quantized"
    " is_sparse is_sparse_csr isinstance itemsize layout max min nbytes rangelist requires_grad tolist type"
    " unchecked_cast unchecked_unwrap_optional ";

bool lists(std::string_view words, std::string_view word) {
  return words.find(" " + std::string(word) + " ") != std::string_view::npos;
}

constexpr const char* kSaveForEvaluation =
    "save the module after eval(), or torch.jit.freeze it, which takes such calls out";

class Check {
 public:
  Check(const torch::jit::Module& module, const torch::jit::Method& method, ScriptUse use)
      : module_(module), method_(method.name()), use_(use) {}

  Result<void> check_method(const std::shared_ptr<Graph>& graph) {
    self_ = graph->inputs().at(0);
    return check(graph);
  }

 private:
  Result<void> check(const std::shared_ptr<Graph>& graph) {  // NOLINT(misc-no-recursion): forks have graphs
    Inline(*graph);
    if (Result<void> allowed = check_block(*graph->block()); !allowed) return allowed;
    return use_ == ScriptUse::functions && changing_ ? check_changes(graph) : Result<void>();
  }

  /// Returns the value where it is the same in each call: a constant of the code, or an attribute of the module that
  /// no method of a script of functions can change.
  std::optional<c10::IValue> constant(const Value* value) const {  // NOLINT(misc-no-recursion)
    const Node* const node = value->node();
    if (node->kind() == c10::prim::Constant) return torch::jit::toIValue(value);
    if (use_ == ScriptUse::module) return std::nullopt;
    if (value == self_) return module_._ivalue();
    if (node->kind() == c10::prim::GetAttr) {
      const auto owner = constant(node->input());
      if (owner && owner->isObject()) return owner->toObjectRef().getAttr(node->s(c10::attr::name));
    }
    if (node->kind() == c10::prim::If) {
      if (const Block* const live = live_block(node)) return constant(live->outputs()[value->offset()]);
    }
    if (node->kind() == c10::aten::__not__) {
      const auto inner = constant(node->input());
      if (inner && inner->isBool()) return c10::IValue(!inner->toBool());
    }
    if (node->kind() == c10::aten::__is__ || node->kind() == c10::aten::__isnot__) {
      const auto one = constant(node->input(0));
      const auto other = constant(node->input(1));
      if (one && other && (one->isNone() || other->isNone())) {
        return c10::IValue((one->isNone() && other->isNone()) == (node->kind() == c10::aten::__is__));
      }
    }
    return std::nullopt;
  }
  /// Returns the block of an If that every call takes, null where calls differ.
  const Block* live_block(const Node* node) const {  // NOLINT(misc-no-recursion)
    const auto condition = constant(node->input());
    if (!condition || !condition->isBool()) return nullptr;
    return node->blocks()[condition->toBool() ? 0 : 1];
  }
  /// Returns the value that a call gives an argument, where it is the same each time.
  std::optional<c10::IValue> constant_argument(const Node* node, std::string_view name) const {
    const c10::FunctionSchema* const schema = node->maybeSchema();
    if (!schema) return std::nullopt;
    for (std::size_t i = 0; i < std::min(schema->arguments().size(), node->inputs().size()); ++i) {
      if (schema->arguments()[i].name() == name) return constant(node->input(i));
    }
    return std::nullopt;
  }
  bool is_constantly(const Node* node, std::string_view argument, bool wanted) const {
    const auto value = constant_argument(node, argument);
    return value && value->isBool() && value->toBool() == wanted;
  }
  bool is_constantly_zero(const Node* node, std::string_view argument) const {
    const auto value = constant_argument(node, argument);
    return value && ((value->isDouble() && value->toDouble() == 0) || (value->isInt() && value->toInt() == 0));
  }

  Result<void> check_block(Block& block) {  // NOLINT(misc-no-recursion)
    for (Node* const node : block.nodes()) {
      if (Result<void> allowed = check_node(node); !allowed) return allowed;
      const Block* const live = node->kind() == c10::prim::If ? live_block(node) : nullptr;
      for (Block* const inner : node->blocks()) {
        if (live && inner != live) continue;  // no call comes here
        if (Result<void> allowed = check_block(*inner); !allowed) return allowed;
      }
    }
    return {};
  }

  Result<void> check_node(Node* node) {  // NOLINT(misc-no-recursion)
    const std::string full = node->kind().toQualString();
    const std::size_t colon = full.find("::");
    const std::string_view space = std::string_view(full).substr(0, colon);
    const std::string_view name = std::string_view(full).substr(colon + 2);
    if (space == "prim") return check_structure(node, name);
    if (space != "aten") return refuse(node, "only operators of aten can", "write it with operators of aten");
    const c10::FunctionSchema* const schema = node->maybeSchema();
    if (!schema) return refuse(node, "it has no schema here", "save the file with this version of PyTorch");
    changing_ = changing_ || schema->is_mutable();
    const auto op = c10::Dispatcher::singleton().findSchema({schema->name(), schema->overload_name()});
    if (!op) {
      const bool is_python = name.starts_with("__") && name.ends_with("__");
      if (is_python || lists(kScriptOperators, name)) return {};
      return refuse(node, "it touches the callee's files, devices or process, or is internal", "take the call out");
    }
    if (const char* const why = why_forbidden(*op, OperatorUse::in_script)) {
      if (std::string_view(why) != kDrawsRandomNumbers) return refuse(node, why, "take the call out");
      if (use_ == ScriptUse::functions && !draws_nothing(node)) return refuse(node, why, kSaveForEvaluation);
    }
    return check_statistics(node, name);
  }
  bool draws_nothing(const Node* node) const {
    return is_constantly(node, "train", false) || is_constantly(node, "training", false) ||
           is_constantly_zero(node, "p") || is_constantly_zero(node, "dropout_p");
  }
  /// Normalisations that train change running statistics, which their schemas do not show.
  Result<void> check_statistics(const Node* node, std::string_view name) const {
    if (use_ == ScriptUse::module) return {};
    constexpr std::array<std::string_view, 3> kNames{"batch_norm", "native_batch_norm", "instance_norm"};
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) return {};
    const auto mean = constant_argument(node, "running_mean");
    if (mean && mean->isNone()) return {};
    if (is_constantly(node, name == "instance_norm" ? "use_input_stats" : "training", false)) return {};
    return refuse(node, "it changes running statistics of the module", kSaveForEvaluation);
  }

  Result<void> check_structure(Node* node, std::string_view name) {  // NOLINT(misc-no-recursion)
    if (name == "CallMethod" || name == "CallFunction") {
      return refuse(node, "what it calls is known only when it runs", "call a method of a class, not of an interface");
    }
    if (name.starts_with("rpc_")) {
      return refuse(node, "a script makes no calls of its own", "call from the function that calls the script");
    }
    if (!lists(kStructure, name)) {
      return refuse(node, "it touches the callee's files, devices or process, or is internal", "take the call out");
    }
    if (name == "SetAttr" && use_ == ScriptUse::functions &&
        node->input(0)->node()->kind() != c10::prim::CreateObject) {
      return refuse(node, "it changes the module, which other calls use at the same time",
                    "return the value, or let peers make modules of the file ([roles.NAME.modules])");
    }
    if (name != "fork") return {};
    return check(node->g(c10::attr::Subgraph)->copy());
  }

  /// Holds a script of functions to values that it made itself: not arguments, the module's tensors or containers, or
  /// what it took out of a list, tuple or dict.
  Result<void> check_changes(const std::shared_ptr<Graph>& graph) const {
    const torch::jit::AliasDb aliases(graph);
    std::unordered_set<const Value*> others(graph->inputs().begin(), graph->inputs().end());
    std::vector<Node*> writers;
    collect(*graph->block(), others, writers);
    for (Node* const node : writers) {
      if (!aliases.writesToAlias(node, others)) continue;
      return refuse(node, "it changes an argument, a value of the module, or one taken out of a list, tuple or dict",
                    "write it without the change, x.add(1) for x.add_(1), or change a clone");
    }
    return {};
  }
  void collect(Block& block, std::unordered_set<const Value*>& others,  // NOLINT(misc-no-recursion)
               std::vector<Node*>& writers) const {
    for (Node* const node : block.nodes()) {
      const c10::FunctionSchema* const schema = node->maybeSchema();
      if (schema && schema->is_mutable()) writers.push_back(node);
      const auto kind = node->kind();
      const bool takes_out = kind == c10::prim::GetAttr || kind == c10::prim::TupleUnpack ||
                             kind == c10::prim::TupleIndex || kind == c10::prim::ListUnpack;
      for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        const bool wild = schema && i < schema->returns().size() && schema->returns()[i].alias_info() &&
                          schema->returns()[i].alias_info()->isWildcardAfter();
        if (takes_out || wild) others.insert(node->outputs()[i]);
      }
      const Block* const live = kind == c10::prim::If ? live_block(node) : nullptr;
      for (Block* const inner : node->blocks()) {
        if (!live || inner == live) collect(*inner, others, writers);
      }
    }
  }

  Error refuse(const Node* node, std::string_view why, std::string_view way_out) const {
    std::string text = "method '" + method_ + "' calls " + node->kind().toQualString();
    const torch::jit::SourceRange serialized = node->sourceRange();
    const auto original = serialized.findSourceRangeThatGenerated();
    if (const auto place = (original ? *original : serialized).file_line_col()) {
      const auto& [file, line, column] = *place;
      text += " (" + file + ":" + std::to_string(line) + ")";
    }
    return Error(Errc::invalid_config, text + ": " + std::string(why) + "; " + std::string(way_out));
  }

  const torch::jit::Module& module_;
  const std::string method_;
  const ScriptUse use_;
  const Value* self_ = nullptr;  // the method's first parameter
  bool changing_ = false;        // some operator changes a value
};

}  // namespace

Result<void> check_script(const torch::jit::Module& module, const torch::jit::Method& method, ScriptUse use) {
  return Check(module, method, use).check_method(method.graph()->copy());
}

}  // namespace caftan::rpc
