// The blurred picture of a poster, until it has loaded and beside one of another shape.
import { thumbHashToDataURL } from '../thumbhash.js'

/** @param {ParentNode} cards */
export function drawPlaceholders(cards) {
  for (const poster of cards.querySelectorAll('img[data-hash]')) {
    const picture = document.createElement('img')
    picture.className = 'hash'
    picture.alt = ''
    picture.src = thumbHashToDataURL(bytesOf(poster.getAttribute('data-hash') ?? ''))
    poster.before(picture)
    poster.removeAttribute('data-hash')
    // A small poster is made at its first request; while many are, the large one is there.
    poster.addEventListener('error', () => useLarge(/** @type {HTMLImageElement} */ (poster)), { once: true })
    if (isBroken(/** @type {HTMLImageElement} */ (poster))) useLarge(/** @type {HTMLImageElement} */ (poster))
  }
}

/** @param {HTMLImageElement} poster */
const isBroken = (poster) => poster.complete && poster.naturalWidth === 0 && poster.currentSrc !== ''

/** @param {HTMLImageElement} poster */
function useLarge(poster) {
  poster.src = poster.src.replace('/w320.webp', '.jpg')
}

/** @param {string} base64 */
const bytesOf = (base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
