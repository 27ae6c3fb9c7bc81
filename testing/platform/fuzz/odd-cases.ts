import { gzipSync } from "node:zlib"
import type { BodyForm, Case, Header, Part } from "./cases.ts"
import type { Operation } from "./document.ts"
import { kindBefore } from "./known-objects.ts"
import { mutated, oddJsonText, oddString, oddValue } from "./odd-values.ts"
import type { Random } from "./random.ts"
import type { World } from "./world.ts"

type Change = (one: Case, random: Random, world: World) => Case

const oddIds: readonly string[] = [
  "%00",
  "%ff",
  "%2e%2e%2f%2e%2e",
  "..",
  ".",
  "%",
  "%zz",
  "a%2Fb",
  "%20",
  "*",
  "null",
  "undefined",
  "0",
  "-1",
  "file-00000000000000000000",
  "00000000-0000-0000-0000-000000000000",
  "%F0%9F%98%80",
  "%E2%80%AE",
  "x".repeat(300),
  "x".repeat(5_000),
  "%E0%80%80",
  "a;b=c",
  "a,b",
  "'%20or%201=1--",
]

const replaceSegment = (path: string, at: number, segment: string) =>
  path
    .split("/")
    .map((part, i) => (i === at ? segment : part))
    .join("/")

const parameterPlaces = ({ path }: Operation) =>
  path.split("/").flatMap((part, i) => (part.startsWith("{") ? [i] : []))

const withOddId: Change = (one, random) => {
  const places = parameterPlaces(one.operation)
  if (places.length === 0)
    return { ...one, path: one.path + random.pick(["/", "/x", "%00", "//", ";x"]) }
  return { ...one, path: replaceSegment(one.path, random.pick(places), random.pick(oddIds)) }
}

/** The id of an object that another account, or the other mode, has. */
const withForeignId: Change = (one, random, world) => {
  const places = parameterPlaces(one.operation)
  const others = world.actors.filter(({ owner }) => owner && owner !== one.actor.owner)
  if (places.length === 0 || others.length === 0) return withOddId(one, random, world)
  const place = random.pick(places)
  const name = one.operation.path.split("/")[place]!.slice(1, -1)
  const owner = random.pick(others).owner!
  const kind = kindBefore(one.operation.path, name)
  const foreign = world.known.of(owner, kind).filter(({ id }) => !world.kept.has(id))
  if (foreign.length === 0) return withOddId(one, random, world)
  return { ...one, path: replaceSegment(one.path, place, random.pick(foreign).id) }
}

const queryNames =
  "limit after order purpose format from to group_by q actor target action before stream x".split(
    " ",
  )
const oddQueryValues = [
  "",
  "0",
  "-1",
  "101",
  "1e3",
  "abc",
  "%00",
  "%ff",
  "%ED%A0%80",
  "9".repeat(40),
  "csv",
  "2026-13-45",
  "null",
  "%27%20or%201=1",
  "x".repeat(2_000),
  "asc",
  "NaN",
  "1.5",
  "+5",
]

const withOddQuery: Change = (one, random) => {
  const documented = one.operation.parameters.filter((p) => p.in === "query").map((p) => p.name)
  const name = () => random.pick([...documented, ...documented, ...queryNames])
  const doubled = name()
  const added = random.chance(0.3)
    ? [[doubled, random.pick(oddQueryValues)] as const, [doubled, "2"] as const]
    : [[name(), random.pick(oddQueryValues)] as const]
  return { ...one, query: [...one.query, ...added] }
}

const oddHeaders: readonly Header[] = [
  ["range", "bytes=0-0"],
  ["range", "bytes=-5"],
  ["range", "bytes=5-2"],
  ["range", "bytes=0-1,3-4"],
  ["range", "bytes=999999999-"],
  ["range", "lines=1-2"],
  ["if-match", '"x"'],
  ["if-match", "*"],
  ["if-none-match", "*"],
  ["if-none-match", '"a", W/"b"'],
  ["if-range", '"x"'],
  ["if-modified-since", "yesterday"],
  ["if-modified-since", "Sun, 22 Nov 2099 00:00:00 GMT"],
  ["if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT"],
  ["idempotency-key", ""],
  ["idempotency-key", "k".repeat(300)],
  ["idempotency-key", "\u00e9\u00ff"],
  ["idempotency-key", "key-1"],
  ["x-dry-run", "1"],
  ["x-dry-run", "0"],
  ["x-dry-run", "yes"],
  ["x-dry-run", ""],
  ["x-request-id", ""],
  ["x-request-id", "r".repeat(129)],
  ["x-request-id", "a b\u00ff"],
  ["accept", "text/event-stream"],
  ["accept", "text/csv"],
  ["accept", "image/png"],
  ["accept-encoding", "gzip, br;q=0, *;q=0"],
  ["accept-encoding", "x".repeat(500)],
  ["accept-language", "id;q=9,".repeat(50)],
  ["content-type", "text/plain"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", "application/json; charset=x; charset=y"],
  ["content-type", "application/x-www-form-urlencoded"],
  ["content-type", "multipart/form-data"],
  ["content-type", "multipart/form-data; boundary=a"],
  ["content-type", ""],
  ["content-type", "/"],
  ["content-encoding", "gzip"],
  ["content-encoding", "br"],
  ["content-encoding", "deflate"],
  ["content-encoding", "gzip, gzip"],
  ["content-encoding", "identity"],
  ["content-encoding", "x"],
  ["origin", "https://evil.example"],
  ["cookie", "a=b; ".repeat(100)],
  ["x-forwarded-for", "127.0.0.1, \u00ff"],
  ["x-forwarded-proto", "https"],
  ["x-http-method-override", "DELETE"],
  ["forwarded", "for=_x"],
  ["expect", "x"],
  ["upgrade", "h2c"],
  ["authorization", "Basic YTpi"],
  ["x-long", "x".repeat(20_000)],
  ["te", "trailers"],
]

const withOddHeader: Change = (one, random) => ({
  ...one,
  headers: [...one.headers, random.pick(oddHeaders)],
})

const oddParts = (parts: readonly Part[], random: Random): BodyForm => {
  const kind = random.int(0, 6)
  const at = random.int(0, Math.max(0, parts.length - 1))
  const change = (made: Partial<Part>) => ({
    parts: parts.map((part, i) => (i === at ? { ...part, ...made } : part)),
  })
  if (kind === 0) return { parts: parts.filter((_, i) => i !== at) }
  if (kind === 1) return { parts: [...parts, ...parts] }
  if (kind === 2)
    return change({
      name: oddString(random)
        .replace(/[\r\n"]/g, "")
        .slice(0, 500),
    })
  if (kind === 3)
    return change({
      filename: oddString(random)
        .replace(/[\r\n"]/g, "")
        .slice(0, 500),
    })
  if (kind === 4) return change({ content: oddString(random) })
  if (kind === 5) return { parts: [...parts].reverse() }
  return { bytes: Buffer.from("--fuzz-boundary-7d1c\r\nContent-Disposition: form-data; name=") }
}

const withOddBody: Change = (one, random) => {
  const { body } = one
  if (!body) {
    const json = random.chance(0.5) ? { json: oddValue(random) } : { bytes: Buffer.from("{") }
    return { ...one, body: json }
  }
  if ("parts" in body) return { ...one, body: oddParts(body.parts, random) }
  if ("bytes" in body) return one
  const kind = random.int(0, 9)
  if (kind === 0) return { ...one, body: undefined }
  if (kind === 1) return { ...one, body: { json: oddValue(random) } }
  if (kind <= 3) {
    const bytes = oddJsonText(JSON.stringify(body.json), random)
    return {
      ...one,
      headers: [...one.headers, ["content-type", "application/json"]],
      body: { bytes },
    }
  }
  return { ...one, body: { json: mutated(body.json, random) } }
}

const withBrokenGzip: Change = (one, random) => {
  const whole = gzipSync(JSON.stringify(one.body && "json" in one.body ? one.body.json : {}))
  const bytes = random.pick([
    whole.subarray(0, -9),
    whole.subarray(3),
    Buffer.concat([whole, whole]),
  ])
  const headers: readonly Header[] = [
    ...one.headers,
    // not "gzip", which would pack it once more
    ["content-encoding", "GZIP"],
    ["content-type", "application/json"],
  ]
  return { ...one, headers, body: { bytes } }
}

const methods = ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "GET", "POST", "TRACE", "PROPFIND"]

const withOtherMethod: Change = (one, random) => ({ ...one, method: random.pick(methods) })

const withOtherActor: Change = (one, random, world) => ({
  ...one,
  actor: random.pick(world.actors),
})

const changes: readonly Change[] = [
  withOddBody,
  withOddBody,
  withOddBody,
  withOddQuery,
  withOddQuery,
  withOddHeader,
  withOddHeader,
  withOddId,
  withForeignId,
  withOtherMethod,
  withOtherActor,
  withBrokenGzip,
]

/** A method that changes something must not reach what the actors live on. */
const touchesKept = ({ method, path }: Case, { kept }: World): boolean =>
  method !== "GET" && path.split("/").some((part) => kept.has(part))

/** The request with one to three things wrong with it. */
export const oddCase = (good: Case, random: Random, world: World): Case => {
  let one = good
  const count = random.pick([1, 1, 1, 2, 3])
  for (let i = 0; i < count; i++) {
    const next = random.pick(changes)(one, random, world)
    if (!touchesKept(next, world)) one = next
  }
  return one
}
