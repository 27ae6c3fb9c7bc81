import { useRef } from "preact/hooks"

const freshName = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("")

const isAnswered = ({ status }) => status >= 400 && status < 500

/** For what must not happen twice: an order keeps its name until it is answered, so that sending it again after a broken connection is no second one. */
export const useOrder = () => {
  const name = useRef(freshName())
  return async (send) => {
    try {
      const answer = await send(name.current)
      name.current = freshName()
      return answer
    } catch (problem) {
      if (isAnswered(problem)) name.current = freshName()
      throw problem
    }
  }
}
