import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Notice, ProblemNotice } from "../parts/notice.js"

const Unverified = ({ me }) => {
  const { t } = useText()
  const { api, account } = useApp()
  const [{ isSent, problem, busy }, set] = useState({})
  const resend = async () => {
    set({ busy: true })
    await api.send("POST", "/dashboard/resend-verification").then(
      () => set({ isSent: true }),
      (problem) => set({ problem }),
    )
    account.get()?.refresh()
  }
  return html`<${Notice} kind="warn">
      <p>${t("unverified", { email: me.email })}</p>
      ${isSent ? html`<p>${t("unverified.sent")}</p>` : html`<${Button} busy=${busy} onClick=${resend}>${t("unverified.resend")}<//>`}
    <//>
    <${ProblemNotice} problem=${problem} />`
}

/** Why the account's calls are refused: it is suspended, or its address is not verified. */
export const AccountWarnings = ({ me }) => {
  const { t } = useText()
  return html`${me.suspended && html`<${Notice} kind="bad">${t("suspended")}<//>`}${!me.email_verified && html`<${Unverified} me=${me} />`}`
}
