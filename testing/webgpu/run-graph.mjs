import { Tensor } from "onnxruntime-node"

/** An engine's module for tests: opens the graph `data`, and runs it for each message, a shape. */
export const startOnDevice = async (port, data, sessions) => {
  const session = await sessions.openSession(data, 1)
  port.on("message", async (message) => {
    if (message === "close") {
      await session.release()
      port.close()
      return
    }
    try {
      const shape = new Tensor("int64", BigInt64Array.from(message, BigInt), [message.length])
      const { sum } = await session.run({ shape })
      port.postMessage({ sum: Number(sum.data[0]) })
    } catch (cause) {
      port.postMessage({ error: cause.message })
    }
  })
  port.postMessage("open")
}
