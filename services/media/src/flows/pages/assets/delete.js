// The page that a delete link opens: deletes the clip on request. The token is in the fragment, which no server, log or
// Referer ever gets; opening the address deletes nothing, because programs open links too.
const button = document.getElementById('delete')
const status = document.querySelector('[role=status]')
const token = location.hash.slice(1)

const ANSWERS = {
  204: 'The clip was deleted.',
  404: 'This link is not valid.',
  410: 'The clip was deleted before.',
}

button.hidden = !token
status.textContent = token ? '' : 'This link is not complete: the part after # is missing.'
button.addEventListener('click', async () => {
  button.disabled = true
  const headers = { 'X-Delete-Token': token }
  const code = await fetch(`../../media/${button.value}`, { method: 'DELETE', headers }).then(
    (answer) => answer.status,
    () => 0,
  )
  status.textContent = ANSWERS[code] ?? 'The clip could not be deleted. Try again in a moment.'
  button.hidden = code in ANSWERS
  button.disabled = false
  if (!button.hidden) button.focus()
})
