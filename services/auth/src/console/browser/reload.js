// Offers to load the page anew where main.js, which stands before this module in the page, did not start. That happens
// where the service is upgraded while its modules load. A page that has started loads no module again.

const main = document.querySelector('main')
if (main && document.body.dataset.started === undefined) {
  const [text, button] = [document.createElement('p'), document.createElement('button')]
  text.textContent = 'The console did not load. The service may have been upgraded just now.'
  text.role = 'alert'
  button.textContent = 'Reload'
  button.addEventListener('click', () => location.reload())
  main.replaceChildren(text, button)
}

export {}
