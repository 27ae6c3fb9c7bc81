import { useText } from "../app.js"
import { html } from "../html.js"
import { usePart } from "../route.js"
import { AdminAccounts } from "./admin-accounts.js"
import { AdminPrices } from "./admin-prices.js"
import { AdminRevenue } from "./admin-revenue.js"
import { AdminServer } from "./admin-server.js"

/** One view a tab; the first has the address of the page itself. */
const tabs = [
  { name: "accounts", href: "#admin", view: AdminAccounts },
  { name: "revenue", href: "#admin/revenue", view: AdminRevenue },
  { name: "server", href: "#admin/server", view: AdminServer },
  { name: "prices", href: "#admin/prices", view: AdminPrices },
]

/** The administration, for administrators only: the server refuses everybody else. */
export const Admin = () => {
  const { t } = useText()
  const part = usePart()
  const { name: chosen, view: View } = tabs.find(({ name }) => name === part) ?? tabs[0]
  return html`
    <h1>${t("nav.admin")}</h1>
    <nav class="tabs" aria-label=${t("admin.tabs")}>
      ${tabs.map(({ name, href }) => html`<a key=${name} href=${href} aria-current=${name === chosen ? "page" : undefined}>${t(`admin.tab.${name}`)}</a>`)}
    </nav>
    <${View} key=${chosen} />
  `
}
