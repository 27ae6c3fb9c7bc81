// GatedUnit: x [.., 2 K], gates and then what they scale: act(gate) * up, [.., K].
// Attribute: activation, 1 (SiLU) or 2 (GELU by its tanh approximation).
#include <algorithm>

#include "node-call.h"
#include "operators.h"
#include "processor.h"

namespace rakit {
namespace {

struct Work {
  const Kernels& kernels;
  const GatedRows& gated;
  Activation activation;
  size_t rows, rows_each;
};

void gate(const Work& work, size_t part) {
  const size_t first = part * work.rows_each;
  work.kernels.gate(work.gated, work.activation, first,
                    std::min(first + work.rows_each, work.rows));
}

// Rows of parts that are alike, each of which takes some 50 us.
size_t rows_each(size_t rows, size_t columns) {
  constexpr size_t some = 65536;
  const size_t parts = (rows * columns + some - 1) / some;
  return (rows + parts - 1) / parts;
}

class GatedUnit : public Operator {
 public:
  static constexpr const char* kName = "GatedUnit";
  static constexpr int kTypes[] = {kFloat};
  static constexpr size_t kRequired = 1;
  static constexpr int kResults[] = {kFloat};
  static constexpr size_t kRequiredResults = 1;

  explicit GatedUnit(const Attributes& attributes)
      : activation_(static_cast<Activation>(attributes.integer("activation"))) {}

  int type_of(size_t input) const override { return input_type(kTypes, input); }

  void compute(Call& call) const override {
    Tensor x = call.input(0);
    call.expect(activation_ == Activation::kSilu || activation_ == Activation::kGelu,
                "GatedUnit: the activation is neither SiLU nor GELU");
    call.expect(x.axes > 0 && x.last() % 2 == 0, "GatedUnit: x has no two halves");
    if (!call.ok()) return;
    const size_t columns = x.last() / 2;
    x.sizes[x.axes - 1] /= 2;
    float* out = call.output<float>(0, x.sizes, x.axes);
    if (!call.ok() || x.elements == 0) return;
    const size_t rows = x.elements / (2 * columns), each = rows_each(rows, columns);
    const GatedRows gated{columns, x.as<float>(), out};
    const Work work{*kernels(), gated, activation_, rows, each};
    call.parallel(gate, (rows + each - 1) / each, work);
  }

 private:
  Activation activation_;
};

}  // namespace

const OrtCustomOp* gated_unit() {
  static const Description<GatedUnit> description;
  return &description;
}

std::unique_ptr<Operator> make_gated_unit(const Attributes& attributes) {
  return std::make_unique<GatedUnit>(attributes);
}

}  // namespace rakit
