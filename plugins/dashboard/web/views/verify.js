import { useEffect, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Loading, Notice, ProblemNotice } from "../parts/notice.js"
import { useStore } from "../store.js"
import { Entry } from "./entry.js"

const nothing = {}

/** `purpose`: that of the mailed link; `path`: what takes its token. */
const Confirm = ({ models, purpose, path }) => {
  const { t } = useText()
  const { api, account, mailToken } = useApp()
  const mailed = useStore(mailToken)
  const [{ verified, problem, busy }, set] = useState(nothing)
  useEffect(() => {
    if (mailed?.purpose !== purpose) return
    // sent at once, and only once: a second try with the same token could only fail
    mailToken.set(undefined)
    set({ busy: true })
    api.post(path, { token: mailed.token }).then(
      (verified) => {
        set({ verified })
        account.get()?.refresh()
      },
      (problem) => set({ problem }),
    )
  }, [mailed])
  const isSignedIn = Boolean(useStore(account)?.me)
  const isBusy = busy || mailed?.purpose === purpose
  const said = () => {
    if (verified)
      return html`<${Notice} kind="good">${t(verified.already_verified ? "verify.already" : "verify.done", { email: verified.email })}<//>`
    if (problem) return html`<${ProblemNotice} problem=${problem} /><p>${t("verify.again")}</p>`
    return isBusy ? html`<${Loading} />` : html`<${Notice} kind="warn">${t("link.missing")}<//>`
  }
  return html`<${Entry} title=${t("nav.verify")} models=${models}>
    ${said()}
    <p class="links">${isSignedIn ? html`<a href="#overview">${t("nav.overview")}</a>` : html`<a href="#sign-in">${t("nav.sign-in")}</a>`}</p>
  <//>`
}

export const Verify = (props) =>
  html`<${Confirm} ...${props} purpose="verify" path="/dashboard/verify-email" />`

/** The link that was mailed to a new address of an account. */
export const ConfirmEmail = (props) =>
  html`<${Confirm} ...${props} purpose="email" path="/dashboard/confirm-email" />`
