// The kernels come first: ONNX Runtime finds them only while it is loaded itself.
import "../kernels/addon.ts"

export { InferenceSession, Tensor } from "onnxruntime-node"
