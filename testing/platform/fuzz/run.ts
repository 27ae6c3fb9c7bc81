import { type Case, encode, goodCase } from "./cases.ts"
import { type Exchange, type Fault, faultsOf, jsonIn, makeSchemas, type Schemas } from "./check.ts"
import type { Operation } from "./document.ts"
import { objectsIn } from "./known-objects.ts"
import { oddCase } from "./odd-cases.ts"
import { makeRandom, type Random } from "./random.ts"
import { curlOf, send } from "./send.ts"
import { shrink } from "./shrink.ts"
import type { World } from "./world.ts"

export interface Finding extends Fault {
  readonly operation: string
  readonly actor: string
  /** How many requests showed the same. */
  count: number
  readonly curl: string
  readonly reply: string
}

export interface Report {
  readonly operations: number
  /** Replies by operation and status. */
  readonly statuses: ReadonlyMap<string, ReadonlyMap<number, number>>
  readonly findings: readonly Finding[]
}

const actorFor = (world: World, { access }: Operation, random: Random) => {
  const usable = world.actors.filter((actor) =>
    access === "public"
      ? actor.access === "none"
      : actor.owner?.account !== undefined &&
        actor.access === access &&
        !/limited|scoped/.test(actor.name),
  )
  return random.chance(0.9) && usable.length > 0 ? random.pick(usable) : random.pick(world.actors)
}

/** One request, or two to the same object that are sent at once. */
const casesAt = (world: World, seed: number, index: number): readonly Case[] => {
  const random = makeRandom(Math.imul(seed, 0x9e3779b1) + index)
  const { operations } = world.document
  // every other request takes the next operation, so that none is left out by chance
  const next = operations[(index >> 1) % operations.length]!
  const operation = index % 2 === 0 ? next : random.pick(operations)
  const actor = actorFor(world, operation, random)
  const good = goodCase(world, operation, actor, random, index)
  const one = random.chance(0.4) ? good : oddCase(good, random, world)
  return random.chance(0.15) ? [one, ...siblingOf(one, world, random, index)] : [one]
}

/** Another operation on the same object, to be sent in the same moment. */
const siblingOf = (one: Case, world: World, random: Random, index: number): readonly Case[] => {
  const place = one.operation.path.split("/").findIndex((part) => part.startsWith("{"))
  const start = one.operation.path.split("}")[0]
  const siblings = world.document.operations.filter(({ path }) => path.split("}")[0] === start)
  if (place < 0 || siblings.length < 2) return []
  const other = goodCase(world, random.pick(siblings), one.actor, random, index)
  const id = one.path.split("/")[place] ?? ""
  // a request that only reads may name what the actors live on
  if (other.method !== "GET" && world.kept.has(id)) return []
  const parts = other.path.split("/")
  parts[place] = id
  return [{ ...other, path: parts.join("/") }]
}

/** Keeps what a reply showed, so that later requests can use it. */
export const learn = ({ one, sent, answer, operation }: Exchange, { known }: World): void => {
  const { owner, access } = one.actor
  if (!owner || answer.status >= 300 || sent.method === "HEAD" || !operation) return
  const callId = answer.headers["x-call-id"]
  if (callId && answer.headers["x-cost-idr"])
    known.add(owner, { id: callId, kind: "receipt", parent: undefined, fields: {} })
  if (!answer.headers["content-type"]?.startsWith("application/json")) return
  const place = operation.path.split("/").findIndex((part) => part.startsWith("{"))
  const parent = place < 0 ? undefined : sent.target.split("?")[0]!.split("/")[place]
  // a download may be no JSON in spite of its type
  const reply = jsonIn(answer.body.toString()) ?? null
  // an administrator sees what others have, and a token in a mail shows whose it is
  const isTheirs = access !== "admin" && operation.access !== "public"
  for (const object of objectsIn(reply, parent))
    if (object.kind !== "model" && (access !== "admin" || object.kind === "account"))
      known.add(owner, object, isTheirs)
}

export const exchangeOf = async (one: Case, world: World): Promise<Exchange> => {
  const sent = encode(one)
  const answer = await send(world.url, sent)
  const { at, known } = world.document.find(sent.method, sent.target.split("?")[0]!)
  return { one, sent, answer, operation: at, isKnownPath: known }
}

const tried = async (one: Case, world: World, schemas: Schemas) => {
  try {
    const exchange = await exchangeOf(one, world)
    return { exchange, faults: faultsOf(exchange, world, schemas) }
  } catch (error) {
    return { exchange: undefined, faults: [{ rule: "an answer", about: String(error) }] }
  }
}

/** Faults are the same when they differ only in digits, ids and indices. */
const nameOf = ({ rule, about }: Fault, operation: string) =>
  `${operation} ${rule} ${about.replace(/[\w-]{12,}|\d+/g, "#")}`

const shownReply = ({ answer }: Exchange) =>
  `${answer.status} ${answer.body.toString().slice(0, 600)}`

export interface RunOptions {
  readonly operations: number
  readonly seed: number
  readonly atOnce: number
}

export const runFuzz = async (world: World, options: RunOptions): Promise<Report> => {
  const schemas = makeSchemas(world.document)
  const statuses = new Map<string, Map<number, number>>()
  const findings = new Map<string, Finding>()
  const count = (operation: string, status: number) => {
    const counts = statuses.get(operation) ?? new Map<number, number>()
    statuses.set(operation, counts.set(status, (counts.get(status) ?? 0) + 1))
  }
  const note = async (one: Case, operation: string, fault: Fault) => {
    const name = nameOf(fault, operation)
    const known = findings.get(name)
    if (known) {
      known.count++
      return
    }
    const finding = { ...fault, operation, actor: one.actor.name, count: 1, curl: "", reply: "" }
    findings.set(name, finding)
    const isSame = async (candidate: Case) => {
      const { exchange, faults } = await tried(candidate, world, schemas)
      const id = exchange?.operation?.id ?? operation
      return faults.some((other) => nameOf(other, id) === name)
    }
    const smallest = await shrink(one, isSame)
    const { exchange } = await tried(smallest, world, schemas)
    const curl = curlOf(world.url, encode(smallest))
    findings.set(name, {
      ...findings.get(name)!,
      curl,
      reply: exchange ? shownReply(exchange) : "",
    })
  }
  let next = 0
  const tryOne = async (one: Case) => {
    const { exchange, faults } = await tried(one, world, schemas)
    const operation = exchange?.operation?.id ?? (exchange ? "elsewhere" : one.operation.id)
    count(operation, exchange?.answer.status ?? 0)
    if (exchange && faults.length === 0) learn(exchange, world)
    for (const fault of faults) await note(one, operation, fault)
  }
  const work = async () => {
    for (let index = next++; index < options.operations; index = next++)
      await Promise.all(casesAt(world, options.seed, index).map(tryOne))
  }
  await Promise.all(Array.from({ length: options.atOnce }, work))
  return { operations: options.operations, statuses, findings: [...findings.values()] }
}
