import { useEffect, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { countdown } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Notice, ProblemNotice } from "../parts/notice.js"

/** A mail takes a moment: after one is sent, the next can be asked for in a minute. */
const pauseSeconds = 60

/** Seconds that are left of a pause, counted down. */
const usePause = () => {
  const { nowMs, after } = useApp()
  const [untilMs, begin] = useState(0)
  const [now, tick] = useState(nowMs())
  useEffect(() => (now < untilMs ? after(1000, () => tick(nowMs())) : undefined), [now, untilMs])
  const pause = (seconds) => {
    tick(nowMs())
    begin(nowMs() + seconds * 1000)
  }
  return { left: Math.max(0, Math.ceil((untilMs - now) / 1000)), pause }
}

const Unverified = ({ me }) => {
  const { t } = useText()
  const { api, account } = useApp()
  const { left, pause } = usePause()
  const [{ sent, problem, busy }, set] = useState({})
  const resend = async () => {
    set({ busy: true })
    await api.post("/dashboard/resend-verification").then(
      ({ sent, retry_after: seconds }) => {
        set({ sent })
        pause(sent ? pauseSeconds : seconds)
      },
      (problem) => set({ problem }),
    )
    account.get()?.refresh()
  }
  return html`<${Notice} kind="warn">
      <p>${t("unverified", { email: me.email })}</p>
      ${sent !== undefined && html`<p role="status">${t(sent ? "unverified.sent" : "unverified.full")}</p>`}
      <${Button} busy=${busy} aria-disabled=${busy || left > 0 || undefined} onClick=${left > 0 ? undefined : resend}>${t("unverified.resend")}<//>
      ${left > 0 && html`<p class="hint">${t("unverified.wait", { time: countdown(left) })}</p>`}
    <//>
    <${ProblemNotice} problem=${problem} />`
}

/** Why the account's calls are refused: it is suspended, or its address is not verified. */
export const AccountWarnings = ({ me }) => {
  const { t } = useText()
  return html`${me.suspended && html`<${Notice} kind="bad">${t("suspended")}<//>`}${!me.email_verified && html`<${Unverified} me=${me} />`}`
}
