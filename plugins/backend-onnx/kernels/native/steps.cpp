// Steps: operators that follow each other, as one node. Their threads work together from the first to
// the last (team.h), and what they hand on is no value of the graph.
// Inputs: the wiring, [steps, 13], then what the steps read: first what changes, then constants.
// Outputs: up to 64 of halves, any of which may be left out, then those of floats.
// Attributes: `steps`, how many there are; those of each with its number ("0.K"), and its `operator` (0
// BlockMatMul, 1 CachedAttention, 2 GatedUnit); `changing`, the inputs that are no constants; `slots`,
// memory for what one step writes and others read.
//
// A line of the wiring has the places of the 11 inputs of a step, and those of its two outputs; -1: left
// out. The places are the inputs, the slots and the outputs, in this order.
#include <array>
#include <iterator>
#include <vector>

#include "node-call.h"
#include "operators.h"
#include "team.h"

namespace rakit {
namespace {

constexpr size_t kMostInputs = 11, kMostOutputs = 2, kWires = kMostInputs + kMostOutputs;
using Make = std::unique_ptr<Operator> (*)(const Attributes&);
constexpr Make kOperators[] = {make_block_matmul, make_cached_attention, make_gated_unit};

constexpr size_t kHalves = 64;

constexpr std::array<int, kHalves + 1> results() {
  std::array<int, kHalves + 1> types{};
  for (int& type : types) type = kUint16;
  types[kHalves] = kFloat;
  return types;
}

// What steps read and write while a node runs.
struct Places {
  std::vector<Tensor> tensors;  // inputs, slots and outputs
  std::unique_ptr<Scratch[]> slots;
  size_t inputs, changing, slot_count;

  size_t first_output() const { return inputs + slot_count; }
};

class StepCall : public Call {
 public:
  StepCall(Places& places, NodeCall& node, Team& team, const int64_t* wires)
      : places_(places), node_(node), team_(team), wires_(wires) {}

  Tensor input(size_t index) override {
    const int64_t place = wires_[index];
    return place < 0 ? Tensor{} : places_.tensors[static_cast<size_t>(place)];
  }

 protected:
  void* output_data(size_t index, const int64_t* sizes, size_t axes, size_t bytes) override {
    const int64_t wired = wires_[kMostInputs + index];
    const size_t place = static_cast<size_t>(wired), first_output = places_.first_output();
    expect(wired >= static_cast<int64_t>(places_.inputs), "Steps: an output has no place");
    if (!ok()) return nullptr;
    Tensor& tensor = places_.tensors[place];
    tensor.type = bytes == sizeof(float) ? kFloat : kUint16;
    tensor.axes = axes;
    tensor.elements = 1;
    for (size_t axis = 0; axis < axes; axis++) {
      tensor.sizes[axis] = sizes[axis];
      tensor.elements *= tensor.size(axis);
    }
    tensor.data = place < first_output
                      ? places_.slots[place - places_.inputs].of(tensor.elements * bytes)
                      : node_.output_data(place - first_output, sizes, axes, bytes);
    return tensor.data;
  }

  void run_parts(void (*each)(void*, size_t), size_t parts, void* data) override {
    team_.loop(each, parts, data);
  }

 private:
  Places& places_;
  NodeCall& node_;
  Team& team_;
  const int64_t* wires_;
};

class Steps {
 public:
  static constexpr const char* kName = "Steps";
  static constexpr int kTypes[] = {kInt64, kAnyType};
  static constexpr size_t kRequired = 1;
  static constexpr auto kResults = results();
  static constexpr size_t kRequiredResults = 0;
  static constexpr bool kVariadic = true;

  explicit Steps(const Attributes& attributes) {
    for (size_t step = 0; step < attributes.integer("steps"); step++) {
      const Attributes own = attributes.of_step(step);
      operators_.push_back(kOperators[own.integer("operator") % std::size(kOperators)](own));
    }
    places_.changing = attributes.integer("changing");
    places_.slot_count = attributes.integer("slots");
    places_.slots = std::make_unique<Scratch[]>(places_.slot_count);
  }

  void compute(NodeCall& call) {
    // sessions may be run by several threads
    std::lock_guard lock(mutex_);
    if (wires_) read_inputs(call, places_.changing);
    else prepare(call);
    if (!call.ok()) return;
    Work work{*this, call, {}, {}};
    call.run_parts(take_part, kMostThreads, &work);
  }

 private:
  // More than a pool has; those that come when all is done have nothing to do.
  static constexpr size_t kMostThreads = 256;

  struct Work {
    Steps& steps;
    NodeCall& call;
    Team team;
    std::atomic<bool> is_led;
  };

  static void take_part(void* data, size_t) {
    auto& work = *static_cast<Work*>(data);
    if (work.is_led.exchange(true)) return work.team.help();
    for (size_t step = 0; step < work.steps.operators_.size() && work.call.ok(); step++)
      work.steps.run(step, work);
    work.team.end();
  }

  void run(size_t step, Work& work) {
    StepCall call{places_, work.call, work.team, wires_ + step * kWires};
    operators_[step]->compute(call);
    if (!call.ok()) work.call.expect(false, call.failed());
  }

  void read_inputs(NodeCall& call, size_t count) {
    for (size_t i = 0; i < count; i++) places_.tensors[i] = call.input(1 + i);
  }

  // Constants stay where they are as long as the session.
  void prepare(NodeCall& call) {
    const Tensor wiring = call.input(0);
    call.expect(wiring.elements == operators_.size() * kWires && call.inputs() > places_.changing,
                "Steps: the wiring has another size, or inputs are missing");
    if (!call.ok()) return;
    places_.inputs = call.inputs() - 1;
    places_.tensors.resize(places_.first_output() + call.outputs());
    read_inputs(call, places_.inputs);
    const auto* wires = wiring.as<const int64_t>();
    for (size_t i = 0; i < wiring.elements; i++)
      call.expect(wires[i] >= -1 && wires[i] < static_cast<int64_t>(places_.tensors.size()),
                  "Steps: the wiring names what is not there");
    if (call.ok()) wires_ = wires;
  }

  std::mutex mutex_;
  Places places_{};
  const int64_t* wires_ = nullptr;
  std::vector<std::unique_ptr<Operator>> operators_;
};

}  // namespace

const OrtCustomOp* steps() {
  static const Description<Steps> description;
  return &description;
}

}  // namespace rakit
