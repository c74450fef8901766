// Names the uploads that a reload interrupted: they go on when their files are chosen again.
import { caller } from './caller.js'
import { $, element, form } from './elements.js'
import { changes, interruptedUploads } from './kept-uploads.js'
import { discardUpload } from './send-pieces.js'
import { queue } from './several.js'

const interrupted = () => interruptedUploads(queue.rows.map(({ place }) => place.path))

function show() {
  const uploads = interrupted()
  $('resume-names').replaceChildren(...uploads.map(({ name }) => element('li', { textContent: name })))
  $('resume').hidden = uploads.length === 0
}
changes.addEventListener('change', show)
form.addEventListener('chosen', show)
show()

$('resume-forget').addEventListener('click', () => {
  for (const { path } of interrupted()) discardUpload({ path }, caller().headers)
  $('file').focus()
})
