// Further pages: the next is appended when its end comes near, and the address keeps the position.
import { html, render } from '../lit.js'
import { wordsFor } from '../owner/api.js'
import { text } from '../owner/page-data.js'
import { drawPlaceholders } from './placeholders.js'

/** Time between two checks of the position: a browser limits how often the address changes. */
const LOOK_EVERY_MS = 350

/** Distance from the end at which the next page is asked for. */
const NEAR = '1200px'

/** @param {HTMLElement} grid @param {{ refresh(): void }} selection */
export function startPages(grid, selection) {
  let isLoading = false
  const near = new IntersectionObserver(
    ([entry]) => {
      if (entry?.isIntersecting) void append()
    },
    { rootMargin: NEAR },
  )
  const first = location.href
  let isLooking = false
  const look = () => {
    isLooking = false
    const begins = /** @type {HTMLElement[]} */ ([...grid.querySelectorAll('[data-page]')])
    const url = begins.findLast((card) => card.getBoundingClientRect().top < innerHeight)?.dataset.page ?? first
    if (url !== location.href) history.replaceState(history.state, '', url)
  }
  // The address is that of the page the reader is at: a reload begins there.
  addEventListener('scroll', () => {
    if (!isLooking) setTimeout(look, LOOK_EVERY_MS)
    isLooking = true
  })
  const link = document.getElementById('next')
  if (link) near.observe(link)

  async function append() {
    const next = /** @type {HTMLAnchorElement | null} */ (document.getElementById('next'))
    if (!next || isLoading) return
    isLoading = true
    near.unobserve(next)
    try {
      const page = await load(next.href)
      const cards = [...page.querySelectorAll('#grid > li')].map((card) => document.importNode(card, true))
      // A clip that moved between two pages is shown once.
      const added = cards.filter((card) => !grid.querySelector(`[data-id="${card.getAttribute('data-id')}"]`))
      const [begin] = added
      grid.append(...added)
      drawPlaceholders(grid)
      if (begin instanceof HTMLElement) begin.dataset.page = next.href
      selection.refresh()
      const following = page.getElementById('next')
      if (following) {
        next.href = following.getAttribute('href') ?? ''
        // Observed anew: the same end may be near still.
        near.observe(next)
      } else next.closest('p')?.remove()
    } catch (error) {
      showFailure(next, error)
    } finally {
      isLoading = false
    }
  }

  /** @param {HTMLAnchorElement} next @param {unknown} error */
  function showFailure(next, error) {
    const place = document.createElement('p')
    place.className = 'notice problem'
    place.setAttribute('role', 'alert')
    const retry = () => {
      place.remove()
      void append()
    }
    render(
      html`${text('loadFailed')} ${error instanceof Error ? error.message : ''}
        <button type="button" class="quiet" @click=${retry}>${text('tryAgain')}</button>`,
      place,
    )
    next.closest('p')?.before(place)
  }
}

/** Loads a page of the library. @param {string} url */
async function load(url) {
  const answer = await fetch(url, { headers: { accept: 'text/html' } }).catch(() => {
    throw new Error(wordsFor('unreachable', ''))
  })
  if (answer.redirected) throw new Error(wordsFor('session_required', ''))
  if (!answer.ok) throw new Error(wordsFor(answer.status === 429 ? 'rate_limited' : 'internal', ''))
  return new DOMParser().parseFromString(await answer.text(), 'text/html')
}
