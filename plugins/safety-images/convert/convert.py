"""Writes the layers model of nsfwjs as an ONNX file: convert.py model.json weights.bin out.onnx

The weights stay as they are published, in 8 bits with a scale and a minimum for each tensor; the graph widens
them when a session opens. It takes the pixels of a picture of any size (uint8, [1, height, width, 3]), scales
and resizes them as nsfwjs does (bilinear, corners aligned), and gives the probabilities of its five classes.
"""
import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = ["Drawing", "Hentai", "Neutral", "Porn", "Sexy"]
SIZE = 224
model = json.load(open(sys.argv[1]))
packed = np.fromfile(sys.argv[2], np.uint8)
nodes, constants = [], []
numbers = {}
offset = 0
for spec in (w for group in model["weightsManifest"] for w in group["weights"]):
    count = int(np.prod(spec["shape"]))
    assert spec["quantization"]["dtype"] == "uint8"
    numbers[spec["name"]] = (packed[offset : offset + count].reshape(spec["shape"]), spec["quantization"])
    offset += count
assert offset == len(packed)


def constant(name, values):
    constants.append(numpy_helper.from_array(np.asarray(values), name))
    return name


def node(kind, inputs, output, **attributes):
    nodes.append(helper.make_node(kind, inputs, [output], **attributes))
    return output


def weight(name, axes=None):
    """A tensor in 32 bits: byte * scale + minimum, as tfjs computes it."""
    values, how = numbers[name]
    values = values if axes is None else np.ascontiguousarray(values.transpose(axes))
    wide = node("Cast", [constant(f"{name}:8", values)], f"{name}:cast", to=TensorProto.FLOAT)
    scaled = node("Mul", [wide, constant(f"{name}:scale", np.float32(how["scale"]))], f"{name}:scaled")
    return node("Add", [scaled, constant(f"{name}:min", np.float32(how["min"]))], name)


def activation(config, x, name):
    kind = {"linear": None, "relu": "Relu", "softmax": "Softmax"}[config["activation"]]
    return x if kind is None else node(kind, [x], f"{name}:{kind}", **({"axis": 1} if kind == "Softmax" else {}))


def convolution(layer, x, depthwise):
    config, name = layer["config"], layer["name"]
    kernel = (
        weight(f"{name}/depthwise_kernel", (2, 3, 0, 1))
        if depthwise
        else weight(f"{name}/kernel", (3, 2, 0, 1))
    )
    same = config["padding"] == "same"
    assert not same or config["strides"] == [1, 1]
    edge = config["kernel_size"][0] // 2 if same else 0
    group = numbers[f"{name}/depthwise_kernel"][0].shape[2] if depthwise else 1
    bias = [weight(f"{name}/bias")] if config["use_bias"] else []
    out = node(
        "Conv",
        [x, kernel, *bias],
        name,
        strides=config["strides"],
        pads=[edge] * 4,
        group=group,
        kernel_shape=config["kernel_size"],
    )
    return activation(config, out, name)


def apply(layer, inputs):
    kind, config, name = layer["class_name"], layer["config"], layer["name"]
    x = inputs[0] if inputs else None
    if kind == "InputLayer":
        return start()
    if kind == "ZeroPadding2D":
        (top, bottom), (left, right) = config["padding"]
        pads = np.array([0, 0, top, left, 0, 0, bottom, right], np.int64)
        return node("Pad", [x, constant(f"{name}:pads", pads)], name)
    if kind in ("Conv2D", "DepthwiseConv2D"):
        return convolution(layer, x, kind == "DepthwiseConv2D")
    if kind == "BatchNormalization":
        parts = [weight(f"{name}/{part}") for part in ("gamma", "beta", "moving_mean", "moving_variance")]
        return node("BatchNormalization", [x, *parts], name, epsilon=config["epsilon"])
    if kind == "ReLU":
        zero, six = (f"relu:{bound}" for bound in (0, 6))
        return node("Clip", [x, zero, six], name)
    if kind == "Add":
        return node("Add", inputs, name)
    if kind == "AveragePooling2D":
        assert config["padding"] == "valid"
        return node("AveragePool", [x], name, kernel_shape=config["pool_size"], strides=config["strides"])
    if kind == "Flatten":
        return node("Flatten", [x], name)
    if kind == "Dropout":
        return x
    if kind == "Dense":
        out = node("Gemm", [x, weight(f"{name}/kernel"), weight(f"{name}/bias")], name)
        return activation(config, out, name)
    raise ValueError(kind)


def start():
    wide = node("Cast", ["pixels"], "pixels:cast", to=TensorProto.FLOAT)
    unit = node("Div", [wide, constant("pixels:most", np.float32(255))], "pixels:unit")
    planes = node("Transpose", [unit], "pixels:planes", perm=[0, 3, 1, 2])
    size = constant("pixels:size", np.array([1, 3, SIZE, SIZE], np.int64))
    return node(
        "Resize",
        [planes, "", "", size],
        "pixels:resized",
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )


constant("relu:0", np.float32(0))
constant("relu:6", np.float32(6))
outputs = {}
for layer in model["modelTopology"]["model_config"]["config"]["layers"]:
    sources = [source[0] for source in (layer["inbound_nodes"] or [[]])[0]]
    outputs[layer["name"]] = apply(layer, [outputs[source] for source in sources])
node("Identity", [outputs["dense_3"]], "probabilities")
graph = helper.make_graph(
    nodes,
    "nsfwjs-mobilenet-v2",
    [helper.make_tensor_value_info("pixels", TensorProto.UINT8, [1, "height", "width", 3])],
    [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, len(CLASSES)])],
    constants,
)
file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
helper.set_model_props(
    file,
    {"source": "nsfwjs 4.4.0, mobilenet_v2", "license": "MIT", "classes": ",".join(CLASSES)},
)
onnx.checker.check_model(file, full_check=True)
onnx.save(file, sys.argv[3])
