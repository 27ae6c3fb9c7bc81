import { readFileSync } from "node:fs"
import { InferenceSession, Tensor } from "onnxruntime-node"

// A process of its own, as ONNX Runtime's provider may end it. Runs the steps of a JSON file over
// keys and values in two buffers of the GPU, which each step takes as its past and as its present.
const { graphs, bank, steps } = JSON.parse(readFileSync(process.argv[2], "utf8"))
const options = { executionProviders: ["webgpu"], logSeverityLevel: 3 }
const open = (path, more) => InferenceSession.create(path, { ...options, ...more })
const floats = (values, shape) => new Tensor("float32", Float32Array.from(values), shape)
const longs = (values) => new Tensor("int64", BigInt64Array.from(values, BigInt), [values.length])

const allocate = await open(graphs.zeros, { preferredOutputLocation: "gpu-buffer" })
const attend = await open(graphs.attend)
const copyOut = await open(graphs.copyOut)
const buffers = []
for (let i = 0; i < 2; i++) buffers.push((await allocate.run({ shape: longs(bank) })).zeros)
const [keys, values] = buffers
// the first rows of a buffer are a tensor over the same buffer
const rowsOf = ({ gpuBuffer }, rows) =>
  Tensor.fromGpuBuffer(gpuBuffer, { dataType: "float32", dims: [rows, ...bank.slice(1)] })

const outputs = []
for (const { rows, count, lengths, q, k, v } of steps) {
  const past = { k: rowsOf(keys, rows), v: rowsOf(values, rows) }
  const feeds = {
    q: floats(q, [rows, count, q.length / (rows * count)]),
    k: floats(k, [rows, count, k.length / (rows * count)]),
    v: floats(v, [rows, count, v.length / (rows * count)]),
    past_k: past.k,
    past_v: past.v,
    last: longs(lengths.map((length) => length + count - 1)),
    longest: longs([Math.max(...lengths) + count]),
  }
  const { out } = await attend.run(feeds, { out: null, present_k: past.k, present_v: past.v })
  outputs.push([...out.data])
}
const { copy } = await copyOut.run({ x: keys })
process.stdout.write(
  JSON.stringify({ location: keys.location, outputs, keys: [...copy.data] }),
  () => process.exit(0),
)
