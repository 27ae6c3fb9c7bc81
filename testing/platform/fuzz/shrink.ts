import type { Case } from "./cases.ts"
import { smallerValues } from "./odd-values.ts"

const mostTries = 150

const without = <A>(list: readonly A[]): readonly (readonly A[])[] =>
  list.map((_, at) => list.filter((_, i) => i !== at))

const smallerThan = (one: Case): readonly Case[] => {
  const { body } = one
  const bodies: readonly Case["body"][] = !body
    ? []
    : [
        undefined,
        ...("json" in body ? smallerValues(body.json).map((json) => ({ json })) : []),
        ...("parts" in body ? without(body.parts).map((parts) => ({ parts })) : []),
      ]
  return [
    ...without(one.headers).map((headers) => ({ ...one, headers })),
    ...without(one.query).map((query) => ({ ...one, query })),
    ...bodies.map((changed) => ({ ...one, body: changed })),
  ]
}

/** Takes away one thing after the other as long as the smaller request fails in the same way. */
export const shrink = async (
  first: Case,
  isSame: (one: Case) => Promise<boolean>,
): Promise<Case> => {
  let smallest = first
  let tries = 0
  for (let isSmaller = true; isSmaller && tries < mostTries; ) {
    isSmaller = false
    for (const candidate of smallerThan(smallest)) {
      if (tries++ >= mostTries) break
      if (await isSame(candidate)) {
        smallest = candidate
        isSmaller = true
        break
      }
    }
  }
  return smallest
}
