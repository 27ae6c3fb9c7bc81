// Chain: operators that follow each other, as one node. Their threads work together from the first to
// the last (team.h), and what they hand on is no value of the graph.
// Inputs: the wiring, [operators, 13], then what the operators read: first what changes, then constants.
// Outputs: up to 64 of halves, any of which may be left out, then those of floats.
// Attributes: `operators`, how many there are; those of each with its number ("0.K"), and its `kind` (0
// BlockMatMul, 1 CachedAttention, 2 GatedUnit); `changing`, the inputs that are no constants; `slots`,
// memory for what one operator writes and others read.
//
// A line of the wiring has the places of the 11 inputs of an operator, and those of its two outputs; -1:
// left out. The places are the inputs, the slots and the outputs, in this order.
#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <vector>

#include "node-call.h"
#include "operators.h"
#include "team.h"

namespace rakit {
namespace {

constexpr size_t kMostInputs = 11, kMostOutputs = 2, kWires = kMostInputs + kMostOutputs;
constexpr size_t kMostOperators = 4096;
using Make = std::unique_ptr<Operator> (*)(const Attributes&);
constexpr Make kOperators[] = {make_block_matmul, make_cached_attention, make_gated_unit};

constexpr size_t kHalves = 64;

constexpr std::array<int, kHalves + 1> results() {
  std::array<int, kHalves + 1> types{};
  for (int& type : types) type = kUint16;
  types[kHalves] = kFloat;
  return types;
}

// Of all chains that a thread runs, as nothing in a slot outlives a run.
thread_local std::deque<Scratch> slots;

// What operators read and write while a node runs.
struct Places {
  std::vector<Tensor> tensors;  // inputs, slots and outputs
  size_t inputs, changing, slot_count;
  std::deque<Scratch>* slots;   // of the thread that called

  size_t first_output() const { return inputs + slot_count; }
};

class ChainCall : public Call {
 public:
  ChainCall(Places& places, NodeCall& node, Team& team, const Operator& op, const int64_t* wires)
      : places_(places), node_(node), team_(team), op_(op), wires_(wires) {}

  Tensor input(size_t index) override {
    const int64_t place = wires_[index];
    if (place < 0) return {};
    const Tensor& tensor = places_.tensors[static_cast<size_t>(place)];
    const int wanted = op_.type_of(index);
    expect(wanted == kAnyType || tensor.type == wanted, "Chain: an input has another type");
    return ok() ? tensor : Tensor{};
  }

 protected:
  void* output_data(size_t index, const int64_t* sizes, size_t axes, size_t bytes) override {
    const auto place = static_cast<size_t>(wires_[kMostInputs + index]);
    const size_t first_output = places_.first_output();
    // -1 is beyond all places
    expect(place >= places_.inputs && place < places_.tensors.size() &&
               (place < first_output || (place - first_output < kHalves) == (bytes == 2)),
           "Chain: an output has no place, or one of another type");
    if (!ok()) return nullptr;
    Tensor tensor = tensor_of(sizes, axes, bytes);
    tensor.data = place < first_output
                      ? (*places_.slots)[place - places_.inputs].of(tensor.elements * bytes)
                      : node_.output_data(place - first_output, sizes, axes, bytes);
    if (!node_.ok()) expect(false, node_.failed());
    places_.tensors[place] = tensor;
    return tensor.data;
  }

  void run_parts(void (*each)(void*, size_t), size_t parts, void* data) override {
    if (parts < Team::kMostParts) return team_.loop(each, parts, data);
    for (size_t part = 0; part < parts; part++) each(data, part);
  }

 private:
  static Tensor tensor_of(const int64_t* sizes, size_t axes, size_t bytes) {
    Tensor tensor;
    tensor.type = bytes == sizeof(float) ? kFloat : kUint16;
    tensor.axes = axes;
    tensor.elements = 1;
    for (size_t axis = 0; axis < axes; axis++) {
      tensor.sizes[axis] = sizes[axis];
      tensor.elements *= tensor.size(axis);
    }
    return tensor;
  }

  Places& places_;
  NodeCall& node_;
  Team& team_;
  const Operator& op_;
  const int64_t* wires_;
};

class Chain {
 public:
  static constexpr const char* kName = "Chain";
  static constexpr int kTypes[] = {kInt64, kAnyType};
  static constexpr size_t kRequired = 1;
  static constexpr auto kResults = results();
  static constexpr size_t kRequiredResults = 0;
  static constexpr bool kVariadic = true;

  explicit Chain(const Attributes& attributes) {
    const size_t count = attributes.integer("operators");
    for (size_t i = 0; i < count && count <= kMostOperators; i++) {
      const Attributes own = attributes.of(i);
      const size_t kind = own.integer("kind");
      if (kind < std::size(kOperators)) operators_.push_back(kOperators[kind](own));
    }
    places_.changing = attributes.integer("changing");
    places_.slot_count = attributes.integer("slots");
    is_known_ = operators_.size() == count && places_.slot_count <= kMostOperators;
  }

  void compute(NodeCall& call) {
    // ONNX Runtime allows several runs of a session at once
    std::lock_guard lock(mutex_);
    if (wires_.empty()) prepare(call);
    else read_inputs(call, places_.changing);
    if (!call.ok()) return;
    while (slots.size() < places_.slot_count) slots.emplace_back();
    places_.slots = &slots;
    Work work{*this, call, {}, {}};
    call.run_parts(take_part, kMostThreads, &work);
    // what operators wrote is read in the same run only
    std::fill(places_.tensors.begin() + places_.inputs, places_.tensors.end(), Tensor{});
  }

 private:
  // More than a pool has; those that come when all is done have nothing to do.
  static constexpr size_t kMostThreads = 256;

  struct Work {
    Chain& chain;
    NodeCall& call;
    Team team;
    std::atomic<bool> is_led;
  };

  static void take_part(void* data, size_t) {
    auto& work = *static_cast<Work*>(data);
    if (work.is_led.exchange(true)) return work.team.help();
    for (size_t i = 0; i < work.chain.operators_.size() && work.call.ok(); i++)
      work.chain.run(i, work);
    work.team.end();
  }

  void run(size_t number, Work& work) {
    const Operator& op = *operators_[number];
    ChainCall call{places_, work.call, work.team, op, wires_.data() + number * kWires};
    op.compute(call);
    if (!call.ok()) work.call.expect(false, call.failed());
  }

  void read_inputs(NodeCall& call, size_t count) {
    for (size_t i = 0; i < count; i++) places_.tensors[i] = call.input(1 + i);
  }

  // Constants stay where they are as long as the session.
  void prepare(NodeCall& call) {
    const Tensor wiring = call.input(0);
    call.expect(is_known_ && wiring.elements == operators_.size() * kWires &&
                    call.inputs() > places_.changing,
                "Chain: the wiring has another size, or inputs are missing");
    if (!call.ok()) return;
    places_.inputs = call.inputs() - 1;
    places_.tensors.resize(places_.first_output() + call.outputs());
    read_inputs(call, places_.inputs);
    const auto* wires = wiring.as<const int64_t>();
    for (size_t i = 0; i < wiring.elements; i++)
      call.expect(wires[i] >= -1 && wires[i] < static_cast<int64_t>(places_.tensors.size()),
                  "Chain: the wiring names what is not there");
    for (size_t i = 0; i < operators_.size(); i++) expect_apart(call, wires + i * kWires);
    if (call.ok()) wires_.assign(wires, wires + wiring.elements);
  }

  // No operator writes over what it reads, or over its other output.
  static void expect_apart(NodeCall& call, const int64_t* wires) {
    for (size_t output = kMostInputs; output < kWires; output++)
      for (size_t other = 0; other < output; other++)
        call.expect(wires[output] < 0 || wires[output] != wires[other],
                    "Chain: an operator writes over what it reads");
  }

  std::mutex mutex_;
  Places places_{};
  std::vector<int64_t> wires_;
  std::vector<std::unique_ptr<Operator>> operators_;
  bool is_known_;
};

}  // namespace

const OrtCustomOp* chain() {
  static const Description<Chain> description;
  return &description;
}

}  // namespace rakit
