// Proposals of tags: those that the token uses most, which begin as the last typed one.
import { html, render } from '../lit.js'
import { call } from '../owner/api.js'

const MOST = 8

/** @param {HTMLInputElement} input @param {() => void} onChosen */
export function proposeTags(input, onChosen) {
  const place = /** @type {HTMLElement | null} */ (document.getElementById('proposals'))
  if (!place) return
  /** @type {{ tag: string, count: number }[]} */
  let known = []
  const typed = () => input.value.split(',').map((tag) => tag.trim())
  const draw = () => {
    const tags = typed()
    const last = tags.at(-1)?.toLowerCase() ?? ''
    const given = new Set(tags.map((tag) => tag.toLowerCase()))
    const fits = known.filter(
      ({ tag }) => !given.has(tag.toLowerCase()) && tag.toLowerCase().startsWith(given.size > 1 || last ? last : ''),
    )
    const shown = (fits.length > 0 ? fits : known.filter(({ tag }) => !given.has(tag.toLowerCase()))).slice(0, MOST)
    place.hidden = shown.length === 0
    const isPart = fits.length > 0 && last !== ''
    render(
      html`${shown.map(({ tag }) => html`<li><button type="button" class="quiet" @click=${() => add(tag, isPart)}><span dir="auto">${tag}</span></button></li>`)}`,
      place,
    )
  }
  const add = (/** @type {string} */ tag, /** @type {boolean} */ isPart) => {
    const kept = typed().filter(Boolean)
    if (isPart) kept.pop()
    input.value = [...kept, tag].join(', ')
    onChosen()
    draw()
    input.focus()
  }
  input.addEventListener('input', draw)
  input.addEventListener(
    'focus',
    async () => {
      const answer = await call('media/tags?limit=30').catch(() => undefined)
      known = Array.isArray(answer?.body) ? answer.body : []
      draw()
    },
    { once: true },
  )
}
