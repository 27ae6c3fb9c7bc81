// What bench/embed.ts has each side do in its process; speaks ../embed/protocol.ts over IPC.

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1]

/** `callers` at a time ask for the next text, or the next array of `size` of them, for `ms`. */
const time = async ({ texts, callers, size, ms }, embed) => {
  const walls = []
  let next = 0
  const startedMs = performance.now()
  const caller = async () => {
    do {
      const asked = Array.from({ length: size }, () => texts[next++ % texts.length])
      const fromMs = performance.now()
      await embed(asked)
      walls.push(performance.now() - fromMs)
    } while (performance.now() - startedMs < ms)
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const perSecond = ((walls.length * size) / (performance.now() - startedMs)) * 1000
  return { perSecond, medianMs: median(walls) }
}

/** `embed` returns a vector of norm 1 for each text; `close` is called before the process ends. */
export const serveEmbedder = (embed, close = () => {}) => {
  process.on("message", async (task) => {
    const answer =
      "ms" in task
        ? await time(task, embed)
        : { vectors: (await embed(task.texts)).map((vector) => [...vector]) }
    process.send(answer)
  })
  process.on("disconnect", async () => {
    await close()
    process.exit(0)
  })
  process.send({ ready: true })
}
