// The grid of an album: plays a clip under the pointer or the focus, and moves the focus by the arrow keys. Nothing
// moves for visitors who want less motion.
import { startPreviews } from './previews.js'

const grid = document.querySelector('.grid')
startPreviews(grid, (link, video) => link.querySelector('.frame').append(video))

/** First of the links of a clip that can be seen: the gate of a sensitive one. */
const doorOf = (item) => item?.querySelector('summary, a')

/** The clip in the next row that is nearest to the same column. */
function below(items, from, step) {
  const { offsetTop, offsetLeft } = items[from]
  const rest = step > 0 ? items.slice(from + 1) : items.slice(0, from).reverse()
  const row = rest.find((item) => item.offsetTop !== offsetTop)?.offsetTop
  const distance = (item) => Math.abs(item.offsetLeft - offsetLeft)
  return rest.filter((item) => item.offsetTop === row).sort((a, b) => distance(a) - distance(b))[0]
}

grid.addEventListener('keydown', (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
  const items = [...grid.children]
  const from = items.findIndex((item) => item.contains(event.target))
  const isRightToLeft = getComputedStyle(grid).direction === 'rtl'
  const step = isRightToLeft ? -1 : 1
  const to = {
    ArrowRight: () => items[from + step],
    ArrowLeft: () => items[from - step],
    ArrowDown: () => below(items, from, 1),
    ArrowUp: () => below(items, from, -1),
    Home: () => items[0],
    End: () => items.at(-1),
  }[event.key]?.()
  if (!to) return
  event.preventDefault()
  doorOf(to).focus()
})
