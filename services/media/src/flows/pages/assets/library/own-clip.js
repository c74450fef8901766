// The page of one clip made live: fields that are saved in place, poster, links, copies, state and deletion.
import { address, call } from '../owner/api.js'
import { startCopies } from '../owner/copies.js'
import { confirm } from '../owner/dialog.js'
import { followEvents } from '../owner/events.js'
import { data, text } from '../owner/page-data.js'
import { toastFailure } from '../owner/toast.js'
import { startDeliveries } from './clip-deliveries.js'
import { startForm } from './clip-form.js'
import { startLinks } from './clip-links.js'
import { startPoster } from './clip-poster.js'

const path = `media/${data.id}`

if (data.may.write && document.getElementById('clip')) startForm(path)
if (data.may.write && document.getElementById('poster')) startPoster(path)
if (document.getElementById('links')) startLinks(path, { areListed: true })
startDeliveries(path)
startCopies()
followState()

addEventListener('beforeunload', (event) => {
  if (document.querySelector('[data-unsaved]')) event.preventDefault()
})

document.addEventListener('click', (event) => {
  const target = event.target instanceof HTMLElement ? event.target : undefined
  if (target?.id !== 'delete') return
  event.preventDefault()
  void remove()
})

async function remove() {
  const about = { title: text('deleteTitle'), question: text('deleteText'), action: text('deleteForGood') }
  if (!(await confirm(about))) return
  try {
    await call(path, { method: 'DELETE' })
    for (const field of document.querySelectorAll('[data-unsaved]')) field.removeAttribute('data-unsaved')
    location.assign(address('library'))
  } catch (error) {
    toastFailure(error)
  }
}

/** A clip that has become ready is shown when the reader wants it: typed text stays. */
function followState() {
  if (data.state !== 'processing') return
  const showProgress = (/** @type {{ progress: number }} */ { progress }) => {
    const bar = document.querySelector('progress')
    if (bar) bar.value = progress
  }
  const end = followEvents(`${path}/events`, {
    ...{ processing: showProgress, ready: showState, failed: showState, hidden: showState, deleted: showState },
  })

  function showState() {
    end()
    const place = document.getElementById('changed')
    if (!place || !document.querySelector('[data-unsaved]')) return location.reload()
    const link = document.createElement('a')
    link.href = location.href
    link.textContent = text('nowReady')
    place.replaceChildren(link)
    place.hidden = false
  }
}

document.body.dataset.started = ''
