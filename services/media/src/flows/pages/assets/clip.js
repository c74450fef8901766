// Copy buttons of a clip's page; hidden without this script or the permission to write the clipboard.
const live = document.querySelector('[role=status]')

for (const button of navigator.clipboard ? document.querySelectorAll('[data-copy]') : []) {
  const label = button.textContent
  button.hidden = false
  button.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(button.dataset.copy).then(
      () => true,
      () => false,
    )
    button.textContent = isCopied ? 'Copied' : 'Not allowed'
    live.textContent = button.textContent
    setTimeout(() => {
      button.textContent = label
      live.textContent = ''
    }, 2_000)
  })
}
