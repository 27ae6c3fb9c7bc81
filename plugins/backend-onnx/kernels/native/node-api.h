// Node-API (js_native_api.h), of which the addon needs so little that it does without the headers.
#pragma once
#include <cstddef>

struct napi_env__;
struct napi_value__;
struct napi_callback_info__;
extern "C" {
using napi_callback = napi_value__* (*)(napi_env__*, napi_callback_info__*);
int napi_create_string_utf8(napi_env__*, const char*, size_t, napi_value__**);
int napi_create_double(napi_env__*, double, napi_value__**);
int napi_get_boolean(napi_env__*, bool, napi_value__**);
int napi_get_undefined(napi_env__*, napi_value__**);
int napi_get_value_double(napi_env__*, napi_value__*, double*);
int napi_get_typedarray_info(napi_env__*, napi_value__*, int* type, size_t* length, void** data,
                             napi_value__** buffer, size_t* offset);
int napi_get_arraybuffer_info(napi_env__*, napi_value__*, void** data, size_t* bytes);
int napi_get_cb_info(napi_env__*, napi_callback_info__*, size_t* count, napi_value__** arguments,
                     napi_value__** self, void** data);
int napi_create_function(napi_env__*, const char*, size_t, napi_callback, void*, napi_value__**);
int napi_set_named_property(napi_env__*, napi_value__*, const char*, napi_value__*);
}

namespace rakit {

inline void export_function(napi_env__* env, napi_value__* exports, const char* name,
                            napi_callback function) {
  napi_value__* value = nullptr;
  napi_create_function(env, name, static_cast<size_t>(-1), function, nullptr, &value);
  napi_set_named_property(env, exports, name, value);
}

// Exports what sampling does with logits; the processor must have kernels.
void export_logits(napi_env__* env, napi_value__* exports);

}  // namespace rakit
