import { useEffect, useState } from "preact/hooks"

const mailed = /^#(verify|reset|email)=(.+)$/

const decoded = (text) => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Removes the token of a mailed link from the address bar, and so from the history, bookmarks and screenshots. Returns it with its purpose. */
export const takeMailToken = (location, history) => {
  const [, purpose, token] = mailed.exec(location.hash) ?? []
  if (!purpose) return undefined
  history.replaceState(null, "", `${location.pathname}${location.search}#${purpose}`)
  return { purpose, token: decoded(token) }
}

export const routeOf = (hash) => /^#?([a-z-]*)/.exec(hash)[1]

/** The part of a page that the route names: `rerank` in `#playground/rerank`, an id in `#receipt/ID`, or "". */
export const partOf = (hash) => /^#[a-z-]+\/([a-z0-9-]*)/.exec(hash)?.[1] ?? ""

const useHash = (read) => {
  const [value, set] = useState(read(location.hash))
  useEffect(() => {
    const follow = () => set(read(location.hash))
    addEventListener("hashchange", follow)
    follow()
    return () => removeEventListener("hashchange", follow)
  }, [])
  return value
}

export const useRoute = () => useHash(routeOf)
export const usePart = () => useHash(partOf)
