/// <reference types="@webgpu/types" />
import { Largest } from "../best.ts"
import { columnBytes, type FirstPass } from "./protocol.ts"
import { blockRows, boundsShader, mostFound, selectShader } from "./shaders.ts"

// as GPUBufferUsage and GPUMapMode, which are globals of browsers
const [mapRead, copySource, copyTarget, uniform, storage] = [0x01, 0x04, 0x08, 0x40, 0x80]
const forReading = 0x01

/** What a row whose document isn't searched has as its bound; all others are larger. */
const hidden = -1e38

export interface Pipelines {
  readonly bounds: GPUComputePipeline
  readonly select: GPUComputePipeline
}

export const makePipelines = (gpu: GPUDevice): Pipelines => {
  const pipeline = (code: string) =>
    gpu.createComputePipeline({
      layout: "auto",
      compute: { module: gpu.createShaderModule({ code }), entryPoint: "main" },
    })
  return { bounds: pipeline(boundsShader), select: pipeline(selectShader) }
}

/** Rows of one index on the device, and the first pass of its searches. */
export class DeviceIndex {
  private readonly gpu: GPUDevice
  private readonly pipelines: Pipelines
  private readonly stride: number
  private readonly capacity: number
  private readonly buffers: readonly GPUBuffer[]
  private readonly rows: GPUBuffer
  private readonly columns: GPUBuffer
  private readonly query: GPUBuffer
  private readonly highs: GPUBuffer
  private readonly largest: GPUBuffer
  private readonly found: GPUBuffer
  private readonly count: GPUBuffer
  private readonly settings: GPUBuffer
  private readonly largestRead: GPUBuffer
  private readonly foundRead: GPUBuffer

  private constructor(gpu: GPUDevice, pipelines: Pipelines, stride: number, capacity: number) {
    const made: GPUBuffer[] = []
    const buffer = (size: number, usage: number) => {
      const next = gpu.createBuffer({ size, usage })
      made.push(next)
      return next
    }
    const blocks = Math.ceil(capacity / blockRows)
    this.gpu = gpu
    this.pipelines = pipelines
    this.stride = stride
    this.capacity = capacity
    this.rows = buffer(capacity * stride, storage | copyTarget)
    this.columns = buffer(capacity * columnBytes, storage | copyTarget)
    this.query = buffer(stride * 4, storage | copyTarget)
    this.highs = buffer(capacity * 4, storage)
    this.largest = buffer(blocks * 4, storage | copySource)
    this.found = buffer(mostFound * 4, storage | copySource)
    this.count = buffer(4, storage | copySource | copyTarget)
    this.settings = buffer(32, uniform | copyTarget)
    this.largestRead = buffer(blocks * 4, mapRead | copyTarget)
    this.foundRead = buffer(4 + mostFound * 4, mapRead | copyTarget)
    this.buffers = made
  }

  /** Throws where the device has no room. */
  static async open(
    gpu: GPUDevice,
    pipelines: Pipelines,
    { stride, rows }: { readonly stride: number; readonly rows: number },
  ): Promise<DeviceIndex> {
    const most = Math.min(gpu.limits.maxBufferSize, gpu.limits.maxStorageBufferBindingSize)
    if (rows * Math.max(stride, columnBytes) > most)
      throw new Error(`${rows} rows of ${stride} bytes are more than a buffer of ${most} takes`)
    gpu.pushErrorScope("out-of-memory")
    const index = new DeviceIndex(gpu, pipelines, stride, rows)
    const error = await gpu.popErrorScope()
    if (!error) return index
    index.close()
    throw new Error(error.message)
  }

  store(first: number, int8: Uint8Array, columns: Uint8Array): void {
    const { queue } = this.gpu
    queue.writeBuffer(this.rows, first * this.stride, int8 as Uint8Array<ArrayBuffer>)
    queue.writeBuffer(this.columns, first * columnBytes, columns as Uint8Array<ArrayBuffer>)
  }

  /** Returns rows among which the best are, or undefined: they are too many. */
  async search(pass: FirstPass): Promise<Uint32Array | undefined> {
    const blocks = Math.ceil(pass.rows / blockRows)
    if (pass.rows > this.capacity || blocks < pass.limit) return undefined
    const largest = new Float32Array(await this.bounds(pass, blocks))
    const best = new Largest(pass.limit)
    for (const low of largest) best.offer(low)
    // fewer blocks than that have rows to find: the second pass would be over all of them
    if (best.least < hidden) return undefined
    const found = new Uint32Array(await this.select(pass.rows, best.least))
    return found[0]! > mostFound ? undefined : found.slice(1, 1 + found[0]!)
  }

  private async bounds(pass: FirstPass, blocks: number): Promise<ArrayBuffer> {
    const { gpu, stride } = this
    const { rows, query, scale, norm, lost, visible } = pass
    const numbers = new DataView(new ArrayBuffer(32))
    numbers.setUint32(0, rows, true)
    numbers.setUint32(4, stride / 16, true)
    for (const [i, value] of [scale, norm, lost].entries())
      numbers.setFloat32(8 + 4 * i, value, true)
    gpu.queue.writeBuffer(this.settings, 0, numbers.buffer as ArrayBuffer)
    gpu.queue.writeBuffer(this.query, 0, query as Int32Array<ArrayBuffer>)
    const mask = gpu.createBuffer({ size: visible.byteLength, usage: storage | copyTarget })
    gpu.queue.writeBuffer(mask, 0, visible as Uint32Array<ArrayBuffer>)
    const encoder = gpu.createCommandEncoder()
    const inputs = [this.settings, this.rows, this.columns, this.query, mask]
    const pipeline = this.pipelines.bounds
    this.pass(encoder, pipeline, [...inputs, this.highs, this.largest], blocks)
    encoder.copyBufferToBuffer(this.largest, 0, this.largestRead, 0, blocks * 4)
    const read = await this.read(encoder, this.largestRead, blocks * 4)
    mask.destroy()
    return read
  }

  private async select(rows: number, least: number): Promise<ArrayBuffer> {
    const { gpu } = this
    const numbers = new DataView(new ArrayBuffer(8))
    numbers.setUint32(0, rows, true)
    numbers.setFloat32(4, least, true)
    gpu.queue.writeBuffer(this.settings, 0, numbers.buffer as ArrayBuffer)
    gpu.queue.writeBuffer(this.count, 0, new Uint32Array(1))
    const encoder = gpu.createCommandEncoder()
    const bound = [this.settings, this.highs, this.found, this.count]
    this.pass(encoder, this.pipelines.select, bound, Math.ceil(rows / blockRows))
    encoder.copyBufferToBuffer(this.count, 0, this.foundRead, 0, 4)
    encoder.copyBufferToBuffer(this.found, 0, this.foundRead, 4, mostFound * 4)
    return this.read(encoder, this.foundRead, 4 + mostFound * 4)
  }

  private pass(
    encoder: GPUCommandEncoder,
    pipeline: GPUComputePipeline,
    buffers: readonly GPUBuffer[],
    groups: number,
  ): void {
    const pass = encoder.beginComputePass()
    pass.setPipeline(pipeline)
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }))
    const layout = pipeline.getBindGroupLayout(0)
    pass.setBindGroup(0, this.gpu.createBindGroup({ layout, entries }))
    pass.dispatchWorkgroups(groups)
    pass.end()
  }

  private async read(encoder: GPUCommandEncoder, from: GPUBuffer, bytes: number) {
    this.gpu.queue.submit([encoder.finish()])
    await from.mapAsync(forReading, 0, bytes)
    const copy = from.getMappedRange(0, bytes).slice(0)
    from.unmap()
    return copy
  }

  close(): void {
    for (const buffer of this.buffers) buffer.destroy()
  }
}
