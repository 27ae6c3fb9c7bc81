import fc from "fast-check"
import { expect, test } from "vitest"
import { parsePidFile } from "./pid-file.ts"

const pid = fc.integer({ min: 2, max: 4_194_304 })
const port = fc.integer({ min: 1, max: 65_535 })
const folder = fc.stringMatching(/^\/[^\n]{0,40}$/)

test("what PostgreSQL writes is read, with or without the lines that come later", () => {
  fc.assert(
    fc.property(pid, folder, port, fc.boolean(), (pid, folder, port, complete) => {
      const lines = [
        pid,
        folder,
        1_795_251_645,
        port,
        "",
        ...(complete ? ["127.0.0.1", "  9977995         8", "ready   "] : []),
      ]
      expect(parsePidFile(`${lines.join("\n")}\n`)).toEqual({ pid, port })
    }),
  )
})

test("a file cut anywhere, or any other text, never gives a wrong process", () => {
  fc.assert(
    fc.property(pid, port, fc.nat(60), (pid, port, length) => {
      const read = parsePidFile(
        `${pid}\n/data\n1795251645\n${port}\n\n127.0.0.1\n`.slice(0, length),
      )
      expect(read === undefined || read.pid === pid).toBe(true)
    }),
  )
  fc.assert(fc.property(fc.string(), (text) => void parsePidFile(text)))
  expect(parsePidFile("")).toBeUndefined()
  expect(parsePidFile("-1\n/data\n1\n5432\n")).toBeUndefined()
  expect(parsePidFile("0\n/data\n1\n5432\n")).toBeUndefined()
})
