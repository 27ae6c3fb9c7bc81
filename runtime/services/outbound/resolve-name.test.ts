import { createSocket, type Socket } from "node:dgram"
import { once } from "node:events"
import { afterAll, beforeAll, expect, it } from "vitest"
import { makeResolveName } from "./resolve-name.ts"

const type = { a: 1, aaaa: 28 }
const noError = 0x80
const noSuchName = 0x83

/**
 * One question, and for an answer one record that points back to its name (RFC 1035, section 4).
 */
const answerTo = (query: Buffer, record: Buffer | undefined): Buffer => {
  const reply = Buffer.from(query)
  reply[2] = 0x81
  reply[3] = record ? noError : noSuchName
  reply.writeUInt16BE(record ? 1 : 0, 6)
  reply.writeUInt16BE(0, 10)
  if (!record) return reply
  const head = Buffer.from([0xc0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, record.length])
  head.writeUInt16BE(record.length === 4 ? type.a : type.aaaa, 2)
  return Buffer.concat([reply, head, record])
}

/**
 * A DNS server that knows `four` and `six`, never responds for `silent...`, and denies all other
 * names.
 */
let server: Socket
beforeAll(async () => {
  server = createSocket("udp4")
  server.on("message", (query, from) => {
    const name = query.subarray(13, 13 + (query[12] ?? 0)).toString()
    if (name.startsWith("silent")) return
    const asked = query.readUInt16BE(query.indexOf(0, 12) + 1)
    const four = name === "four" && asked === type.a ? Buffer.from([8, 8, 8, 8]) : undefined
    const six =
      name === "six" && asked === type.aaaa
        ? Buffer.from("26064700000000000000000000001111", "hex")
        : undefined
    server.send(answerTo(query, four ?? six), from.port, from.address)
  })
  server.bind(0, "127.0.0.1")
  await once(server, "listening")
})
afterAll(() => server?.close())

it("finds addresses of both families, also while nobody answers for many other names", async () => {
  const resolve = makeResolveName([`127.0.0.1:${server.address().port}`])
  const failed: string[] = []
  for (let n = 0; n < 30; n++)
    void resolve(`silent${n}.example.com`).catch(({ code }) => failed.push(code))
  expect(await resolve("four.example.com")).toEqual([{ address: "8.8.8.8", family: 4 }])
  expect(await resolve("six.example.com")).toEqual([{ address: "2606:4700::1111", family: 6 }])
  await expect(resolve("none.example.com")).rejects.toMatchObject({ code: "ENOTFOUND" })
  expect(failed).toEqual([])
})
