// The finished clip: preview, addresses and what copies them.
import { $ } from './elements.js'
import { say } from './progress.js'

export function showResult({ page, files, embed, meta }) {
  $('facts').replaceChildren(
    ...[`${meta.width} × ${meta.height}`, meta.duration.replace(/s$/, ' s')].map((text) => withText('span', text)),
  )
  const links = [['Page', page], ...['gif', 'mp4', 'webm', 'jpg'].map((kind) => [kind.toUpperCase(), files[kind]])]
  $('links').replaceChildren(
    ...links.map(([name, url]) => {
      const link = withText('a', url.replace(/^https?:\/\//, ''))
      Object.assign(link, { href: url, ariaLabel: `${name}: ${url}` })
      const copy = withText('button', 'Copy')
      Object.assign(copy, { type: 'button', className: 'quiet', ariaLabel: `Copy the address of the ${name}` })
      copy.dataset.text = url
      const item = document.createElement('li')
      item.append(withText('span', name), link, copy)
      return item
    }),
  )
  $('embed').value = embed
  const video = $('preview')
  video.width = Number(meta.width)
  video.height = Number(meta.height)
  video.poster = files.jpg
  video.autoplay = !matchMedia('(prefers-reduced-motion: reduce)').matches
  video.replaceChildren(
    ...['webm', 'mp4'].map((kind) =>
      Object.assign(document.createElement('source'), { src: files[kind], type: `video/${kind}` }),
    ),
  )
  video.load()
  $('add').hidden = true
  $('done').hidden = false
  $('done-title').focus()
}

const withText = (name, text) => Object.assign(document.createElement(name), { textContent: text })

addEventListener('click', async ({ target }) => {
  const { copy, text } = target.dataset ?? {}
  if (!copy && !text) return
  const before = target.textContent
  try {
    await navigator.clipboard.writeText(text ?? $(copy).value)
    target.textContent = 'Copied'
    say('Copied')
  } catch {
    // Not allowed, or not https: select the text instead.
    if (copy) $(copy).select()
    say('Copy it with the keyboard')
    return
  }
  setTimeout(() => {
    target.textContent = before
  }, 2_000)
})
