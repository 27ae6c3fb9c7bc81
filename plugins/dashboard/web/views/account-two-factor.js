import { useEffect, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Copy } from "../parts/copy.js"
import { Dialog } from "../parts/dialog.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice } from "../parts/notice.js"

/** Free modules around a QR code, without which cameras don't find it. */
const quiet = 4

const QrCode = ({ text, label }) => {
  const [rows, setRows] = useState([])
  useEffect(() => {
    import("uqr").then(({ encode }) => setRows(encode(text, { border: quiet }).data))
  }, [text])
  const path = rows
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")))
    .join("")
  return html`<svg class="qr" role="img" aria-label=${label} viewBox=${`0 0 ${rows.length || 1} ${rows.length || 1}`} shape-rendering="crispEdges">
    <path d=${path} />
  </svg>`
}

const CurrentPassword = () => {
  const { t } = useText()
  return html`<${Field} label=${t("password.current")} name="current_password" type="password" autocomplete="current-password" required />`
}

const Code = ({ hint }) => {
  const { t } = useText()
  return html`<${Field} label=${t("code")} hint=${hint} name="code" autocomplete="one-time-code" required />`
}

const Confirm = ({ secret, url, onDone, onClose }) => {
  const { t } = useText()
  const { api } = useApp()
  const confirm = async ({ code }) =>
    onDone((await api.post("/dashboard/two-factor/confirm", { code })).recovery_codes)
  const actions = html`<${Submit}>${t("twoFactor.confirm")}<//><${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<p>${t("twoFactor.scan")}</p>
    <${QrCode} text=${url} label=${t("twoFactor.qr")} />
    <${Copy} label=${t("twoFactor.secret")} text=${secret} />
    <${Form} onSubmit=${confirm} label=${t("twoFactor")} actions=${actions}><${Code} /><//>`
}

const RecoveryCodes = ({ codes, onClose }) => {
  const { t } = useText()
  return html`<${Notice} kind="good">${t("twoFactor.on")}<//>
    <p>${t("twoFactor.recovery")}</p>
    <pre class="code codes" tabindex="0" aria-label=${t("twoFactor.codes")}>${codes.join("\n")}</pre>
    <${Copy} label=${t("twoFactor.codes")} text=${codes.join(" ")} />
    <div class="actions"><${Button} onClick=${onClose}>${t("twoFactor.kept")}<//></div>`
}

const Begin = ({ onSecret }) => {
  const { t } = useText()
  const { api } = useApp()
  const begin = async (values) => onSecret(await api.post("/dashboard/two-factor", values))
  return html`<${Form} onSubmit=${begin} label=${t("twoFactor")} actions=${html`<${Submit}>${t("twoFactor.begin")}<//>`}><${CurrentPassword} /><//>`
}

const End = ({ onDone }) => {
  const { t } = useText()
  const { api } = useApp()
  const end = async (values) => {
    await api.post("/dashboard/two-factor/end", values)
    onDone()
  }
  return html`<${Form} onSubmit=${end} label=${t("twoFactor")} actions=${html`<${Submit} look="danger">${t("twoFactor.end")}<//>`}>
    <${CurrentPassword} /><${Code} hint=${t("code.hint")} />
  <//>`
}

/** States: off -> a secret waits for its first code -> on, with recovery codes shown once -> off. */
export const TwoFactor = ({ me, onChange }) => {
  const { t } = useText()
  const [secret, setSecret] = useState(undefined)
  const [codes, setCodes] = useState(undefined)
  const close = () => {
    setSecret(undefined)
    setCodes(undefined)
    onChange()
  }
  return html`<section class="card narrow" aria-label=${t("twoFactor")}>
    <h2>${t("twoFactor")}</h2>
    <p class="quiet">${t(me.two_factor ? "factor.on" : "factor.off")}</p>
    ${me.two_factor ? html`<${End} onDone=${onChange} />` : html`<${Begin} onSecret=${setSecret} />`}
    ${
      (secret || codes) &&
      html`<${Dialog} title=${t("twoFactor")} onClose=${close}>
      ${codes ? html`<${RecoveryCodes} codes=${codes} onClose=${close} />` : html`<${Confirm} ...${secret} onDone=${setCodes} onClose=${close} />`}
    <//>`
    }
  </section>`
}
