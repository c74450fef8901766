// The library made live: further pages, previews, selection and states. Cards are made by the service alone.
import { startPreviews } from '../previews.js'
import { startLive } from './live.js'
import { startPages } from './pages.js'
import { drawPlaceholders } from './placeholders.js'
import { startSelection } from './selection.js'

const grid = document.getElementById('grid')

if (grid) {
  drawPlaceholders(grid)
  startPreviews(grid, (link, video) => link.querySelector('.length')?.before(video))
  const selection = startSelection(grid)
  startPages(grid, selection)
  startLive(grid, selection.forget)
} else startLive(null)

document.body.dataset.started = ''
