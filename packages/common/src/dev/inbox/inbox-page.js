// Runs in the browser: shows new mail without a reload and times in the reader's zone, and empties the inbox.
const REFRESH_MS = 2000

async function refreshList() {
  const answer = await fetch(location.href).catch(() => undefined)
  if (!answer?.ok) return
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
  document.title = fresh.title
  const list = document.querySelector('#list')
  const freshList = fresh.querySelector('#list')
  if (!list || !freshList || list.innerHTML === freshList.innerHTML) return
  const focused = document.activeElement?.closest('#list a')?.getAttribute('href')
  list.innerHTML = freshList.innerHTML
  if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus()
}

for (const time of document.querySelectorAll('main time')) {
  time.textContent = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' })
}

setInterval(() => {
  if (!document.hidden) refreshList()
}, REFRESH_MS)
document.addEventListener('visibilitychange', refreshList)

document.querySelector('#clear')?.addEventListener('click', async () => {
  await fetch('/api/messages', { method: 'DELETE' })
  location.href = '/'
})
