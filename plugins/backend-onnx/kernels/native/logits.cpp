// The kernels of sampling as functions of the addon; addon.ts has their types. What is no array of the
// right type counts as an empty one.
#include "node-api.h"
#include "processor.h"

namespace rakit {
namespace {

class Arguments {
 public:
  Arguments(napi_env__* env, napi_callback_info__* info) : env_(env) {
    size_t count = kMost;
    napi_get_cb_info(env, info, &count, values_, nullptr, nullptr);
  }

  double number(size_t index) const {
    double value = 0;
    napi_get_value_double(env_, values_[index], &value);
    return value;
  }

  struct Floats {
    float* data;
    size_t count;
  };
  Floats floats(size_t index) const {
    size_t count = 0;
    auto* data = static_cast<float*>(array(index, kFloat32, count));
    return {data, count};
  }

  const uint32_t* words(size_t index, size_t& count) const {
    return static_cast<const uint32_t*>(array(index, kUint32, count));
  }

  int32_t* integers(size_t index, size_t& count) const {
    return static_cast<int32_t*>(array(index, kInt32, count));
  }

 private:
  static constexpr size_t kMost = 4;
  static constexpr int kInt32 = 5, kUint32 = 6, kFloat32 = 7;

  void* array(size_t index, int wanted, size_t& count) const {
    int type = -1;
    size_t length = 0;
    void* data = nullptr;
    const int failed = napi_get_typedarray_info(env_, values_[index], &type, &length, &data,
                                                nullptr, nullptr);
    count = !failed && type == wanted ? length : 0;
    return count ? data : nullptr;
  }

  napi_env__* env_;
  napi_value__* values_[kMost] = {};
};

napi_value__* number(napi_env__* env, double value) {
  napi_value__* made = nullptr;
  napi_create_double(env, value, &made);
  return made;
}

napi_value__* largest(napi_env__* env, napi_callback_info__* info) {
  const auto [data, count] = Arguments(env, info).floats(0);
  return number(env, kernels()->largest_logit(data, count));
}

napi_value__* largest_allowed(napi_env__* env, napi_callback_info__* info) {
  const Arguments arguments(env, info);
  const auto [data, count] = arguments.floats(0);
  size_t word_count = 0;
  const uint32_t* words = arguments.words(1, word_count);
  return number(env, kernels()->largest_allowed(data, count, words, word_count));
}

napi_value__* weigh(napi_env__* env, napi_callback_info__* info) {
  const Arguments arguments(env, info);
  const auto [data, count] = arguments.floats(0);
  const auto most = static_cast<float>(arguments.number(1));
  const auto scale = static_cast<float>(arguments.number(2));
  return number(env, kernels()->weigh_logits(data, count, most, scale));
}

napi_value__* pick(napi_env__* env, napi_callback_info__* info) {
  const Arguments arguments(env, info);
  const auto [data, count] = arguments.floats(0);
  const size_t picked = count ? kernels()->pick_weight(data, count, arguments.number(1)) : 0;
  return number(env, static_cast<double>(picked));
}

napi_value__* list_likely(napi_env__* env, napi_callback_info__* info) {
  const Arguments arguments(env, info);
  const auto [data, count] = arguments.floats(0);
  size_t most = 0;
  int32_t* indices = arguments.integers(2, most);
  const auto least = static_cast<float>(arguments.number(1));
  return number(env,
                static_cast<double>(kernels()->list_likely(data, count, least, indices, most)));
}

}  // namespace

void export_logits(napi_env__* env, napi_value__* exports) {
  export_function(env, exports, "largest", largest);
  export_function(env, exports, "largestAllowed", largest_allowed);
  export_function(env, exports, "weigh", weigh);
  export_function(env, exports, "pick", pick);
  export_function(env, exports, "listLikely", list_likely);
}

}  // namespace rakit
