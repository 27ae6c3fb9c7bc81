import { useRef } from "preact/hooks"
import { Problem } from "../api.js"

const makeKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("")

/** Only the 409 of a first request that still runs says when to send again. */
const isOfAnother = ({ status, param, retryAfter }) =>
  status === 409 && param === "Idempotency-Key" && retryAfter === undefined

/** A 429, and the 409 of a request that still runs, say nothing about what became of the first request. */
const isAnswered = ({ status, param }) =>
  status >= 400 && status < 500 && status !== 429 && param !== "Idempotency-Key"

/** Whether the next request has a key of its own, and what the user reads. */
export const afterProblem = (problem) =>
  isOfAnother(problem)
    ? { isOver: true, problem: new Problem({ ...problem, code: "sent_before" }) }
    : { isOver: isAnswered(problem), problem }

/** For requests that must not happen twice: the idempotency key stays until there is a reply, so sending again after a broken connection has no second effect. */
export const useIdempotentSend = () => {
  const key = useRef(makeKey())
  return async (send) => {
    try {
      const answer = await send(key.current)
      key.current = makeKey()
      return answer
    } catch (error) {
      const { isOver, problem } = afterProblem(error)
      if (isOver) key.current = makeKey()
      throw problem
    }
  }
}
