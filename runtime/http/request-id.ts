import { randomText } from "../../core/services/ids.ts"

/** Visible ASCII without quotes, angle brackets and backslash, so that an id can stand in logs, shells and HTML as it is. */
const valid = /^[A-Za-z0-9!#$%&()*+,\-./:;=?@[\]^_{|}~]{1,128}$/

/** The client's own label if it is a sane one, else a fresh one. */
export const requestIdOf = (incoming: string | readonly string[] | undefined): string =>
  typeof incoming === "string" && valid.test(incoming) ? incoming : `req_${randomText(24)}`
