import { createContext } from "preact"
import { useContext } from "preact/hooks"
import { translate } from "./language.js"
import { useStore } from "./store.js"

/** The stores and functions that all views share: `{ api, v1, session, account, language, live, carried, mailToken, nowMs, after }`; `live` is the state of watch.js, `carried` what the schema page takes along to the chat. */
export const AppContext = createContext(undefined)

export const useApp = () => useContext(AppContext)

/** Returns `t(key, values)`, which translates into the chosen language. */
export const useText = () => {
  const language = useStore(useApp().language)
  const t = (key, values) => translate(language, key, values)
  return { t, language }
}
