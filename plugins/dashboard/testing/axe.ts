import axe, { type AxeResults } from "axe-core"
import type { Page } from "playwright-core"

const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

/** What axe has against the page, a line for each element. */
export const violations = async (page: Page): Promise<readonly string[]> => {
  await page.evaluate(axe.source)
  const options = JSON.stringify({ runOnly: { type: "tag", values: rules } })
  const { violations: found } = await page.evaluate<AxeResults>(`axe.run(document, ${options})`)
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
  )
}
