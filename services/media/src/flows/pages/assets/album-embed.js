// The player of an album: arrow keys lead to the clips before and after. A step replaces the page in its frame, so that
// the way back of the page around it does not lead through all clips.
const go = (link) => link && location.replace(link.href)

for (const link of document.querySelectorAll('.arrow')) {
  link.addEventListener('click', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    go(link)
  })
}

addEventListener('keydown', (event) => {
  const { key, target } = event
  // A video has its own use for them.
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || target.closest?.('video')) return
  const rel = { ArrowLeft: 'prev', ArrowRight: 'next' }[key]
  if (rel) go(document.querySelector(`.arrow[rel=${rel}]`))
})
