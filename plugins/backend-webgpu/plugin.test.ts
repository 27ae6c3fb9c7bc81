import { Effect, Exit } from "effect"
import { expect, test } from "vitest"
import { nodesText } from "./device/device.ts"
import { findAdapter, nameOf } from "./device/find-adapter.ts"
import { hasHalves } from "./process/graph-types.ts"
import { placedNodes } from "./process/node-list.ts"

const linux = test.skipIf(process.platform !== "linux")

linux("a missing driver is one line that says what to install", async () => {
  const exit = await Effect.runPromiseExit(
    Effect.flip(findAdapter({ allowSoftware: true, driver: "/nowhere/driver.json" })),
  )
  const reason = Exit.isSuccess(exit) ? exit.value : ""
  // a machine without a loader lacks that first
  expect(reason).toMatch(/^there is no Vulkan (driver|loader): install /)
  expect(reason).not.toContain("\n")
})

test("the place of each node is read from ONNX Runtime's log", () => {
  const at =
    "2026-11-23 09:29:38.1 [V:onnxruntime:, session_state.cc:1383 VerifyEachNodeIsAssignedToAnEp]"
  const nodes = placedNodes(
    [
      `${at} Node placements`,
      `${at}  Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2`,
      `${at}   Shape (n_Shape_1)`,
      `${at}   Shape (n_Shape_2)`,
      `${at}  Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 1`,
      `${at}   Gather (n_Gather_3)`,
    ].join("\n"),
  )
  expect(nodes).toEqual({ device: { Gather: 1 }, cpu: { Shape: 2 } })
  expect(nodesText(nodes)).toBe("1 webgpu, 2 cpu: Shape x2")
  expect(
    nodesText(
      placedNodes(`${at}  All nodes placed on [WebGpuExecutionProvider]. Number of nodes: 7`),
    ),
  ).toBe("7 webgpu, 0 cpu")
})

test("an adapter is shown by its model and its driver", () => {
  const adapter = {
    ...{ vendor: "nvidia", architecture: "", isSoftware: false, features: [], maxBufferBytes: 1 },
    ...{ device: "nvidia-h200", description: "NVIDIA: 580.159.04 580.159.4.0" },
  }
  expect(nameOf(adapter)).toBe("nvidia-h200, NVIDIA: 580.159.04 580.159.4.0")
  // Direct3D, Metal, and one that says nothing of itself
  const card = { ...adapter, device: "0x2684", description: "NVIDIA GeForce RTX 4090" }
  expect(nameOf(card)).toBe("NVIDIA GeForce RTX 4090")
  expect(nameOf({ ...adapter, device: "", description: "" })).toBe("nvidia")
  expect(nameOf({ ...adapter, vendor: "", device: "", description: "" })).toBe("unnamed")
})

test("16-bit floats among the weights of a graph are seen", () => {
  /** IR version, name, and a graph of an initializer: its dimension, 300, type and raw bytes. */
  const modelOf = (type: number) => {
    const tensor = [0x08, 0xac, 0x02, 0x10, type, 0x4a, 2, 0, 0]
    const graph = [0x12, 1, 0x67, 0x2a, tensor.length, ...tensor]
    return Buffer.from([0x08, 10, 0x12, 1, 0x6d, 0x3a, graph.length, ...graph])
  }
  expect(hasHalves(modelOf(10))).toBe(true)
  expect(hasHalves(modelOf(1))).toBe(false)
  expect(hasHalves(Buffer.alloc(0))).toBe(false)
})
