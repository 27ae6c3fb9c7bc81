import { useRef } from "preact/hooks"

const makeKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("")

/** A 429, and a 409 of the key itself, say nothing about what became of the first request. */
export const isAnswered = ({ status, param }) =>
  status >= 400 && status < 500 && status !== 429 && param !== "Idempotency-Key"

/** For requests that must not happen twice: the idempotency key stays until there is a reply, so sending again after a broken connection has no second effect. */
export const useIdempotentSend = () => {
  const key = useRef(makeKey())
  return async (send) => {
    try {
      const answer = await send(key.current)
      key.current = makeKey()
      return answer
    } catch (problem) {
      if (isAnswered(problem)) key.current = makeKey()
      throw problem
    }
  }
}
