import { type ChildProcess, spawn } from "node:child_process"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { afterEach, describe, expect, it } from "vitest"
import { noise, setUp, sha256 } from "./testing/fixture.ts"

const { dir, server } = setUp()
const body = noise(3_000_000)
const script = fileURLToPath(new URL("testing/pull-process.ts", import.meta.url))

interface Said {
  readonly doneBytes?: number
  readonly info?: string
  readonly path?: string
  readonly failed?: string
}

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL")
})

const startPull = (onLine: (said: Said) => void = () => {}) => {
  const env = {
    ...process.env,
    MODELS_DIR: join(dir(), "models"),
    SOURCE: `${server().url}/model.bin`,
    SHA256: sha256(body),
  }
  const child = spawn(process.execPath, ["--import", "tsx", script], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  })
  children.push(child)
  const said: Said[] = []
  createInterface({ input: child.stdout }).on("line", (line) => {
    const value: Said = JSON.parse(line)
    said.push(value)
    onLine(value)
  })
  const ended = new Promise<readonly Said[]>((resolve) => child.once("close", () => resolve(said)))
  return { child, ended }
}

describe("two processes", () => {
  it("that pull the same model download it once; the second shows that it waits", async () => {
    server().file("/model.bin", { body, etag: '"v1"', pauseMs: 30 })
    const [first, second] = await Promise.all([startPull().ended, startPull().ended])
    const path = first.at(-1)?.path
    expect(path).toBeDefined()
    expect(second.at(-1)?.path).toBe(path)
    expect(body.equals(await readFile(path ?? ""))).toBe(true)
    expect(server().seen).toHaveLength(1)
    const waiter = [first, second].filter((said) =>
      said.some(({ info }) => info?.includes("waiting")),
    )
    expect(waiter).toHaveLength(1)
    expect(waiter[0]?.some(({ doneBytes }) => doneBytes !== undefined && doneBytes > 0)).toBe(true)
  })

  it("of which one is killed in the middle: the next goes on from there", async () => {
    server().file("/model.bin", { body, etag: '"v1"', pauseMs: 30 })
    const { child, ended } = startPull(
      ({ doneBytes }) =>
        void (doneBytes !== undefined && doneBytes > 800_000 && child.kill("SIGKILL")),
    )
    expect((await ended).at(-1)?.path).toBeUndefined()
    const left = await readdir(join(dir(), "models/.downloads"))
    expect(left.some((name) => name.endsWith(".lock"))).toBe(true)
    server().file("/model.bin", { body, etag: '"v1"' })
    const path = (await startPull().ended).at(-1)?.path
    expect(body.equals(await readFile(path ?? ""))).toBe(true)
    expect(server().seen).toHaveLength(2)
    const [, resumed] = server().seen
    const from = Number(/^bytes=(\d+)-$/.exec(resumed?.headers.range ?? "")?.[1])
    expect(from).toBeGreaterThan(800_000)
    expect(resumed?.headers["if-range"]).toBe('"v1"')
    expect(resumed?.sentBytes).toBe(body.length - from)
    expect(await readdir(join(dir(), "models/.downloads"))).toEqual([])
  })
})
