// Parts of a page that are asked for one by one: one that is slow or fails keeps no other away.
import { html } from '../lit.js'
import { failure, section } from './parts.js'

/** @typedef {{ title: string, load: () => Promise<any>, show: (answer: any) => unknown }} Part */

/** Parts of pages that are shown. They stay until new ones arrive. @type {WeakMap<object, Record<string, unknown>>} */
const shown = new WeakMap()

/**
 * Shows the page at once, and again with each part that arrives; `draw` gets the content of each. A part that fails
 * says so in its own place and is tried again alone. No act waits for them.
 * @param {import('../page.js').Page} page
 * @param {Record<string, Part>} parts
 * @param {(contents: Record<string, unknown>) => unknown} draw
 */
export function showParts(page, parts, draw) {
  const waiting = Object.entries(parts).map(([name, { title }]) => [name, section(title, html`<p>Loading …</p>`)])
  const contents = { ...Object.fromEntries(waiting), ...shown.get(page) }
  shown.set(page, contents)
  const fill = async (/** @type {string} */ name, /** @type {Part} */ part) => {
    try {
      contents[name] = part.show(await part.load())
    } catch (error) {
      contents[name] = section(
        part.title,
        failure(error, () => fill(name, part)),
      )
    }
    // A late answer to an earlier call would draw what that one knew.
    if (shown.get(page) === contents) page.show(draw(contents))
  }
  page.show(draw(contents))
  for (const [name, part] of Object.entries(parts)) void fill(name, part)
}
