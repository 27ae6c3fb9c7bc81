import { useText } from "../app.js"
import { html } from "../html.js"

/** `kind`: info, good, warn, bad. A bad one interrupts a screen reader, the others wait their turn. */
export const Notice = ({ kind = "info", children }) =>
  html`<div class=${`notice ${kind}`} role=${kind === "bad" ? "alert" : "status"}>${children}</div>`

const ours = { unreachable: "problem.unreachable", unreadable: "problem.unreadable" }

/** What went wrong, in the API's own words where it spoke. */
export const ProblemNotice = ({ problem }) => {
  const { t } = useText()
  if (!problem) return null
  const key = ours[problem.code]
  return html`<${Notice} kind="bad">
    ${key ? t(key, { status: problem.status }) : problem.message}
    ${problem.requestId && html` <span class="quiet">(${t("problem.request", { id: problem.requestId })})</span>`}
  <//>`
}

/** Room for what is still on its way. */
export const Loading = () => {
  const { t } = useText()
  return html`<p class="quiet" role="status">${t("loading")}</p>`
}
