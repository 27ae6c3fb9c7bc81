import { Effect, Exit } from "effect"
import { expect, test } from "vitest"
import { nodesText } from "./device/device.ts"
import { findAdapter } from "./device/find-adapter.ts"
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
