import { useText } from "../app.js"
import { exactMoney, moment, money } from "../format.js"
import { html } from "../html.js"

/**
 * An amount in rupiah, exact when it is pointed at. With `signed`, credits and debits look
 * different, and not by colour alone.
 */
export const Amount = ({ value, signed = false }) => {
  const { language } = useText()
  return html`<span title=${exactMoney(value, language)} class=${signed ? `amount ${value < 0 ? "out" : "in"}` : "amount"}>${signed && value > 0 ? "+" : ""}${money(value, language)}</span>`
}

/** Shows Unix seconds; without a value, a word for never. */
export const Moment = ({ at, never = "–" }) => {
  const { language } = useText()
  return at === null || at === undefined
    ? never
    : html`<time datetime=${new Date(at * 1000).toISOString()}>${moment(at, language)}</time>`
}
