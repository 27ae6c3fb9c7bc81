import type { Json } from "../../../core/json.ts"
import type { Case } from "./cases.ts"
import { encode, goodCase } from "./cases.ts"
import type { Operation } from "./document.ts"
import { kindBefore } from "./known-objects.ts"
import { makeRandom } from "./random.ts"
import { exchangeOf, learn } from "./run.ts"
import { send } from "./send.ts"
import type { Actor, World } from "./world.ts"

const kindsOf: Readonly<Record<string, readonly string[]>> = {
  key: ["file", "batch", "webhook", "webhook.delivery", "upload", "upload.part", "receipt"],
  session: ["api_key"],
}

/** The accounts' own actors: for each account a live key, a test key and a session. */
const tenants = ({ actors }: World): readonly Actor[] =>
  actors.filter(({ name }) => /^[ab] (live|test|session)$/.test(name))

const lacks = (actor: Actor, { known }: World): boolean =>
  (kindsOf[actor.access] ?? []).some((kind) => known.of(actor.owner!, kind).length === 0)

const rounds = 30

/** Makes good requests until every tenant has one object of every kind. */
export const makeObjects = async (world: World): Promise<void> => {
  const making = world.document.operations.filter(({ method }) => method === "POST")
  for (const actor of tenants(world))
    for (let round = 0; round < rounds && lacks(actor, world); round++)
      for (const operation of making.filter(
        ({ access, path }) => access === actor.access && !/(cancel|complete)$/.test(path),
      )) {
        const one = goodCase(world, operation, actor, makeRandom(round), round)
        learn(await exchangeOf({ ...one, headers: [] }, world), world)
      }
  const empty = tenants(world).filter((actor) => lacks(actor, world))
  if (empty.length > 0)
    throw new Error(`no object of some kind for ${empty.map(({ name }) => name).join(", ")}`)
}

export interface ForeignReply {
  readonly request: string
  readonly status: number
}

const isOther = (asker: Actor, holder: Actor, access: Operation["access"]): boolean =>
  asker.owner!.account !== holder.owner!.account ||
  // a session reaches both modes of its account
  (access === "key" && asker.owner!.mode !== holder.owner!.mode)

const idsOf = (operation: Operation, holder: Actor, { known }: World): readonly string[] => {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
  // the youngest object of the last kind, within its own parent
  const last = known.of(holder.owner!, kindBefore(operation.path, names.at(-1)!)).at(-1)
  return names.length === 1 ? [last!.id] : [last!.parent!, last!.id]
}

const withIds = (operation: Operation, ids: readonly string[]): string =>
  ids.reduce((path, id) => path.replace(/\{\w+\}/, id), operation.path)

/** All ways to mix ids: with one place there is one, with two the own parent or child is another. */
const mixes = (own: readonly string[], foreign: readonly string[]): readonly string[][] =>
  foreign.length === 1
    ? [[foreign[0]!]]
    : [[...foreign], [own[0]!, foreign[1]!], [foreign[0]!, own[1]!]]

const withBody = async (base: Omit<Case, "body">, world: World): Promise<ForeignReply> => {
  let status = 0
  // a body that the schema allows may still be refused for another reason
  for (let attempt = 0; attempt < 8 && (status === 0 || status === 400); attempt++) {
    const { body } = goodCase(world, base.operation, base.actor, makeRandom(attempt), attempt)
    status = (await send(world.url, encode({ ...base, body }))).status
  }
  const dry = base.headers.length > 0 ? " (dry run)" : ""
  return { request: `${base.actor.name}: ${base.method} ${base.path}${dry}`, status }
}

const askedBy = (asker: Actor, operation: Operation, world: World) =>
  tenants(world)
    .filter(({ access }) => access === operation.access)
    .filter((holder) => isOther(asker, holder, operation.access))
    .filter((holder) => hasOneFor(operation, holder, world))
    .flatMap((holder) => {
      const paths = mixes(idsOf(operation, asker, world), idsOf(operation, holder, world)).map(
        (ids) => withIds(operation, ids),
      )
      const methods = operation.method === "GET" ? ["GET", "HEAD"] : [operation.method]
      const ways = operation.access === "key" ? [[], [["x-dry-run", "1"] as const]] : [[]]
      return paths.flatMap((path) =>
        methods.flatMap((method) =>
          ways.map((headers) => ({ operation, actor: asker, method, path, query: [], headers })),
        ),
      )
    })

const hasOneFor = (operation: Operation, holder: Actor, { known }: World): boolean => {
  const name = [...operation.path.matchAll(/\{(\w+)\}/g)].at(-1)![1]!
  return known.of(holder.owner!, kindBefore(operation.path, name)).length > 0
}

/** Every id of one tenant in every operation of the other tenants. */
export const askForForeign = async (world: World): Promise<readonly ForeignReply[]> => {
  const withId = world.document.operations.filter(
    ({ path, access }) => path.includes("{") && (access === "key" || access === "session"),
  )
  const cases = withId.flatMap((operation) =>
    tenants(world)
      .filter(({ access }) => access === operation.access)
      .filter((asker) => hasOneFor(operation, asker, world))
      .flatMap((asker) => askedBy(asker, operation, world)),
  )
  const replies: ForeignReply[] = []
  for (const one of cases) replies.push(await withBody(one, world))
  return replies
}

/** Ids of other tenants in bodies: an input file, a searched one, a part of an upload. */
export const askWithForeignBodies = async (world: World): Promise<readonly ForeignReply[]> => {
  const replies: ForeignReply[] = []
  const post = async (actor: Actor, path: string, json: Json) => {
    const operation = world.document.find("POST", path).at!
    const one = { operation, actor, method: "POST", path, query: [], headers: [], body: { json } }
    const { status, body } = await send(world.url, encode(one))
    return { status, message: (JSON.parse(body.toString()) as { error?: Json }).error }
  }
  /** What belongs to another is refused as what does not exist is. */
  const compare = async (actor: Actor, path: string, bodyOf: (id: string) => Json, id: string) => {
    const foreign = await post(actor, path, bodyOf(id))
    const unknown = await post(actor, path, bodyOf(id.replace(/.{6}$/, "unknow")))
    const isAsUnknown = JSON.stringify(foreign) === JSON.stringify(unknown)
    const status = isAsUnknown && foreign.status < 500 ? 404 : foreign.status
    replies.push({ request: `${actor.name}: POST ${path} with ${id}`, status })
  }
  const keys = tenants(world).filter(({ access }) => access === "key")
  const youngest = (actor: Actor, kind: string) => world.known.of(actor.owner!, kind).at(-1)!.id
  for (const asker of keys)
    for (const holder of keys.filter((one) => isOther(asker, one, "key"))) {
      const batch = (id: string) => ({ input_file_id: id, endpoint: "/v1/embeddings" })
      await compare(asker, "/v1/batches", batch, youngest(holder, "file"))
      const search = (id: string) => ({ query: "a", file_ids: [id] })
      await compare(asker, "/v1/retrieval", search, youngest(holder, "file"))
      const filtered = (id: string) => ({ query: "a", filters: { file_ids: [id] } })
      await compare(asker, "/v1/retrieval", filtered, youngest(holder, "file"))
      const path = `/v1/uploads/${youngest(asker, "upload")}/complete`
      const parts = (id: string) => ({ part_ids: [id] })
      await compare(asker, path, parts, youngest(holder, "upload.part"))
    }
  return replies
}

/** Objects of the tenants, as their owners find them. */
export const stillThere = async (world: World): Promise<readonly ForeignReply[]> => {
  const replies: ForeignReply[] = []
  for (const actor of tenants(world).filter(({ access }) => access === "key"))
    for (const path of ["/v1/files", "/v1/batches", "/v1/webhooks", "/v1/uploads"]) {
      const operation = world.document.find("GET", `${path}/x`).at!
      const { id } = world.known.of(actor.owner!, kindBefore(operation.path, "id")).at(-1)!
      const one = { operation, actor, method: "GET", query: [], headers: [], body: undefined }
      const answer = await send(world.url, encode({ ...one, path: `${path}/${id}` }))
      replies.push({ request: `${actor.name}: GET ${path}/${id}`, status: answer.status })
    }
  return replies
}
