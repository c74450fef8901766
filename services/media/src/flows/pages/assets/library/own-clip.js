// The page of one clip made live: fields that are saved in place, poster, links, copies, state and deletion.
import { address, call } from '../owner/api.js'
import { startCopies } from '../owner/copies.js'
import { confirm } from '../owner/dialog.js'
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
    location.assign(address('library'))
  } catch (error) {
    toastFailure(error)
  }
}

/** A clip that has become ready is shown when the reader wants it: typed text stays. */
function followState() {
  if (data.state !== 'processing') return
  const source = new EventSource(address(`${path}/events`))
  const bar = () => document.querySelector('progress')
  source.addEventListener('processing', (event) => {
    const found = bar()
    if (found) found.value = JSON.parse(event.data).progress
  })
  for (const type of ['ready', 'failed', 'hidden', 'deleted']) {
    source.addEventListener(type, () => {
      source.close()
      const place = document.getElementById('changed')
      if (!place || !document.querySelector('[data-unsaved]')) return location.reload()
      const link = document.createElement('a')
      link.href = location.href
      link.textContent = text('nowReady')
      place.replaceChildren(link)
      place.hidden = false
    })
  }
}

document.body.dataset.started = ''
