import type { Owner } from "./known-objects.ts"
import type { Actor, World } from "./world.ts"

const fullKey = /svc_(?:live|test)_[A-Za-z0-9]{32}/g
const idLike = /[A-Za-z][\w-]{11,60}/g
const email = /\b[ab]@example\.com\b/g

const isForeign = (actor: Actor, id: string, { known }: World): boolean => {
  const owner = known.ownerOf(id)
  if (!owner || owner.account === "") return false
  if (!actor.owner || owner.account !== actor.owner.account) return true
  return actor.access === "key" && owner.mode !== undefined && owner.mode !== actor.owner.mode
}

const nameOf = (owner: Owner | undefined) => [owner?.account, owner?.mode].join(" ").trim()

/**
 * What a reply shows that is another's: ids and addresses that the request did not name, and API
 * keys of the run, which nobody sees twice.
 */
export const foreignTextIn = (
  text: string,
  asked: string,
  actor: Actor,
  world: World,
): readonly string[] => {
  const shown = [...new Set(text.match(idLike) ?? [])].filter((id) => !asked.includes(id))
  const ids = shown.filter((id) => isForeign(actor, id, world))
  const credentials = world.actors.flatMap(({ credential }) => credential ?? [])
  const keys = (text.match(fullKey) ?? []).filter((key) => credentials.includes(key))
  const addresses = (text.match(email) ?? []).filter(
    (address) => !asked.includes(address) && address.split("@")[0] !== actor.owner?.account,
  )
  return [
    ...ids.map((id) => `shows ${id} of ${nameOf(world.known.ownerOf(id))}`),
    ...keys.map(() => "shows an API key that was made before"),
    ...addresses.map((address) => `shows ${address}`),
  ]
}
