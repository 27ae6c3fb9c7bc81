import { useText } from "../app.js"
import { html } from "../html.js"
import { explain } from "./explain.js"

/** `kind`: info, good, warn, bad. A bad one interrupts a screen reader, the others do not. */
export const Notice = ({ kind = "info", children }) =>
  html`<div class=${`notice ${kind}`} role=${kind === "bad" ? "alert" : "status"}>${children}</div>`

/** An error, in the reader's words where there are some. */
export const ProblemNotice = ({ problem }) => {
  const { t } = useText()
  if (!problem) return null
  return html`<${Notice} kind="bad">
    ${explain(t, problem)}
    ${problem.requestId && html` <span class="quiet">(${t("problem.request", { id: problem.requestId })})</span>`}
  <//>`
}

/** The placeholder of content that is loading: lines where text will be, so that less moves. */
export const Loading = () => {
  const { t } = useText()
  return html`<div class="skeleton" role="status"><span class="unseen">${t("loading")}</span><i></i><i></i><i></i></div>`
}
