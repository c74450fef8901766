// Names the uploads that a reload interrupted: they go on when their files are chosen again.
import { caller } from './caller.js'
import { $, element } from './elements.js'
import { keptUploads } from './kept-uploads.js'
import { discardUpload } from './send-pieces.js'

function show() {
  const uploads = keptUploads()
  $('resume-names').replaceChildren(...uploads.map(({ name }) => element('li', { textContent: name })))
  $('resume').hidden = uploads.length === 0
}
show()

$('resume-forget').addEventListener('click', () => {
  for (const { path } of keptUploads()) discardUpload({ path }, caller().headers)
  show()
  $('file').focus()
})
