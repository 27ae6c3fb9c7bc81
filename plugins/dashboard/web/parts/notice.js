import { useText } from "../app.js"
import { html } from "../html.js"

/** `kind`: info, good, warn, bad. A bad one interrupts a screen reader, the others do not. */
export const Notice = ({ kind = "info", children }) =>
  html`<div class=${`notice ${kind}`} role=${kind === "bad" ? "alert" : "status"}>${children}</div>`

const ours = { unreachable: "problem.unreachable", unreadable: "problem.unreadable" }

/** An error, with the API's message where there is one. */
export const ProblemNotice = ({ problem }) => {
  const { t } = useText()
  if (!problem) return null
  const key = ours[problem.code]
  return html`<${Notice} kind="bad">
    ${key ? t(key, { status: problem.status }) : problem.message}
    ${problem.requestId && html` <span class="quiet">(${t("problem.request", { id: problem.requestId })})</span>`}
  <//>`
}

/** The placeholder of content that is loading. */
export const Loading = () => {
  const { t } = useText()
  return html`<p class="quiet" role="status">${t("loading")}</p>`
}
