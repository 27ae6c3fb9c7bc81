import { hasWords } from "../language.js"

/** The API's own text, without the path of the field before it. */
const withoutPath = ({ message, param }) =>
  param && message?.startsWith(`${param}: `) ? message.slice(param.length + 2) : message

/**
 * What an error means, in the reader's words: by the field that it names, else by its code; the API's text only where there are no
 * words of our own. `t`: as `useText` returns it.
 */
export const explain = (t, problem) => {
  const { code, param, status, line } = problem
  const isOfField = code === "invalid_request_error" || code === "authentication_error"
  if (param && isOfField && hasWords(`refusal.${param}`)) return t(`refusal.${param}`)
  return hasWords(`problem.${code}`) ? t(`problem.${code}`, { status, line }) : withoutPath(problem)
}
